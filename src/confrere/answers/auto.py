"""Auto for linear models: evidence-weighted borrowing, run and reported."""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.algorithms import evidence
from confrere.answers import words
from confrere.answers.answer import AnswerWarning
from confrere.borrowing.candidates import Verdict, second_class
from confrere.borrowing.glm import Rows, rows_of, scores_of, to_params
from confrere.borrowing.summary import Share
from confrere.clients.summaries import listen
from confrere.core import Block, Inbox, Tree
from confrere.data.silos import Shared, Silos
from confrere.history import History
from confrere.models import Model
from confrere.simulate import initial_params, on_devices, simulate


class Heard(NamedTuple):
    """What came of listening: parameters and everything that the answer says about them."""

    params: Tree
    weights: dict[str, float]
    prior: float
    relevance: dict[str, float]
    candidates: dict[str, float]
    scores: dict[str, float]
    refused: tuple[str, ...]
    silent: tuple[str, ...]
    shared: tuple[Shared, ...]
    reason: str
    notes: tuple[str, ...]
    history: History


def by_evidence(
    silos: Silos, user: int, model: Model, share: Share, min_cell: int, prevalence: float | None
) -> Heard:
    """Run the exchange, let the user judge, and say what came of it."""
    recipe = evidence(user, share=share, min_cell=min_cell)
    names = recipe.static["candidates"]
    history = simulate(recipe, model, silos, recipe.rounds or 1, user=user, metrics=(), record=("weights",))
    block = on_devices(silos.block("train"), model)
    own: Block = jax.tree.map(lambda a: a[user], block)
    params = initial_params(model, silos, jax.random.key(0))
    inbox = Inbox(history.state.inbox.shared, history.state.inbox.mass)
    verdict = jax.device_get(_listen(model, share, names, inbox, params, own))
    notes = warn_about(rows_of(model, own), model, silos.names[user], prevalence)
    theta = verdict.theta
    if prevalence is not None:
        theta = with_prevalence(rows_of(model, own), verdict, names, model, prevalence)
    table = inbox.shared["table"]
    labels = silos.names if share != "sum" else ("all others together",)
    sent = np.asarray(table["n"]) > 0
    others = [k for k, name in enumerate(labels) if name != silos.names[user]]
    silent = tuple(labels[k] for k in others if not sent[k] and share != "sum")
    weights = {name: float(verdict.shares[k]) for k, name in enumerate(labels) if k in others}
    weights = {silos.names[user]: float(verdict.own), **weights}
    if share != "sum":
        weights = {name: weights[name] for name in silos.names}
    refused = tuple(labels[k] for k in others if sent[k] and refused_message(verdict, k))
    relevance = {labels[k]: 0.0 if labels[k] in (*silent, *refused) else float(verdict.relevance[k]) for k in others}
    prior = 1 - sum(weights.values())
    scores = dict(zip(names, map(float, verdict.scores), strict=True)) | {"alone": float(verdict.alone)}
    best = float(np.dot(verdict.weights, verdict.scores))
    what = "log-loss" if model.task == "classification" else "half the log of the mean squared error"
    reason = " ".join([
        words.whom_it_listened_to(silos.names[user], weights, prior),
        *words.who_was_left_out(relevance, refused, silent),
        *([words.was_it_worth_it(best, float(verdict.alone), what)] if not notes else notes),
    ])  # fmt: skip
    return Heard(
        to_params(jnp.asarray(theta), params, model), weights, prior, relevance,
        dict(zip(names, map(float, verdict.weights), strict=True)), scores, refused, silent,
        what_was_sent(silos, user, share, history), reason, notes, history,
    )  # fmt: skip


@jax.jit(static_argnums=(0, 1, 2))
def _listen(model: Model, share: Share, names: tuple[str, ...], inbox: Inbox, params: Tree, own: Block) -> Verdict:
    return listen(model, share, names, inbox, jnp.ones(()), params, own)


def refused_message(verdict: Verdict, k: int) -> bool:
    """Whether a message was sent but not believed: nothing at all was taken from it."""
    return float(verdict.shares[k]) == 0.0


def warn_about(rows: Rows, model: Model, user: str, prevalence: float | None) -> tuple[str, ...]:
    """What a reader must know about a user with too few rows; also said as a warning."""
    said = []
    count = int(rows.weight.sum())
    if count == 0:
        said.append(f"{user} has no training rows: its model is that of all others together.")
    elif model.task == "classification" and int(second_class(rows, model.task)) < 2 and prevalence is None:
        said.append(
            f"{user} has fewer than two rows outside its most frequent class: nothing could be validated on them, and "
            "the model trusts that its patients are like its rows. If you know how frequent the second class is, "
            "say so with prevalence=."
        )
    elif count < 25:
        said.append(f"{user} has only {count} training rows: expect little of the validation on them.")
    for text in said:
        warnings.warn(text, AnswerWarning, stacklevel=4)
    return tuple(said)


def with_prevalence(rows: Rows, verdict: Verdict, names: Any, model: Model, prevalence: float) -> np.ndarray:
    """The pooled model with an intercept that gives the user's rows, on average, the prevalence that is known.

    The rows' labels say nothing of the intercept where only one class occurs, but their features are the user's.
    """
    theta = np.array(verdict.each[list(names).index("pool")] if "pool" in names else verdict.theta, float)
    if model.task != "classification" or theta.shape[0] != rows.X.shape[1]:
        raise ValueError("prevalence= is for two classes")
    live = np.asarray(rows.weight) > 0
    margin = np.asarray(rows.X, float)[live] @ theta if live.any() else np.zeros(1)
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        mean = float((1 / (1 + np.exp(-np.clip(margin + middle, -500, 500)))).mean())
        low, high = (middle, high) if mean < prevalence else (low, middle)
    theta[-1] += (low + high) / 2
    return theta.astype(np.asarray(verdict.theta).dtype)


def what_was_sent(silos: Silos, user: int, share: Share, history: History) -> tuple[Shared, ...]:
    """The numbers that left each silo for this answer."""
    what = {
        "full": "fitted coefficients, the curvature of the loss around them, the number of rows and the summed loss",
        "diagonal": "fitted coefficients, the diagonal of the curvature, the number of rows and the summed loss",
        "parameters": "fitted coefficients, the number of rows and the summed loss",
        "sum": "the same as 'full', summed over silos before anybody sees it",
    }[share]
    numbers = history.bytes_up.sum(axis=0) // np.dtype(jnp.result_type(float)).itemsize
    return tuple(
        Shared(name, what, int(numbers[i]), f"to let {silos.names[user]} borrow")
        for i, name in enumerate(silos.names)
        if i != user and numbers[i] > 0
    )
