"""Auto for linear models: evidence-weighted borrowing, run and reported."""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.algorithms.borrowing import EVIDENCE_ROUNDS, evidence
from confrere.answers import words
from confrere.answers.replicas import Replicas, by_messages
from confrere.answers.worth import Doubts, doubts_about
from confrere.borrowing.candidates import CANDIDATES, Verdict, second_class
from confrere.borrowing.glm import QUICK_COMPILATION, Rows, rows_of, to_params
from confrere.borrowing.summary import Share
from confrere.clients.summaries import listen
from confrere.core import Block, Tree, silo_view
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.history import History
from confrere.models import Model
from confrere.program import Setup, expected_traffic, rollout
from confrere.simulate import simulate
from confrere.simulation.inputs import outputs_of, params_spec
from confrere.simulation.rows import on_devices
from confrere.study.cases import round_up

SAY_PREVALENCE = "If you know how frequent the second class is, say so with prevalence= (confrere train: --prevalence)."
TOGETHER = "all others together"


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
    findings: str
    notes: tuple[str, ...]
    cautions: tuple[str, ...]
    advice: tuple[str, ...]
    make_history: Callable[[], History]
    replicate: Callable[[int, int], Replicas]  # (how many, seed) -> the model from rows and silos drawn anew


def by_evidence(
    silos: Silos, user: int, model: Model, share: Share, min_cell: int, prevalence: float | None, rows_each: int,
    beside: Rows | None = None,
) -> Heard:  # fmt: skip
    """Run the exchange, let the user judge, and say what came of it.

    `rows_each`: rows that every silo is padded to, the same for all users, so that they share one program. `beside`:
    a clinician's guesses, as rows that every fit heeds and no score is measured on.
    """
    recipe = evidence(user, share=share, min_cell=min_cell)
    names = CANDIDATES
    rows_of_all = silos.block("train", round_up(rows_each))
    block = on_devices(rows_of_all, model)
    params = blank_params(model, silos)
    setup = Setup(recipe.bound, model, (), False, ())
    table, verdict = jax.device_get(_exchange(setup, EVIDENCE_ROUNDS, np.int32(user), params, block, beside))
    rows = jax.device_get(rows_of(model, jax.tree.map(lambda a: a[user], rows_of_all)))
    theta, moved = verdict.theta, 0.0
    unsure = one_class(rows, model) and prevalence is None
    notes = cautions = about_few_rows(rows, silos.names[user], unsure)
    if prevalence is not None:
        theta = with_prevalence(rows, verdict.theta, model, prevalence)
        moved = float(theta[-1] - verdict.theta[-1])
        notes = (*notes, f"Its intercept was set so that {prevalence:.0%} of the patients are of the second class.")
    found = who_counted(silos, user, share, table, verdict)
    said = in_words(silos.names[user], found, verdict, model, notes)
    if is_validated(rows, model):
        doubts = doubts_of(verdict, silos.names[user], rows, model)
        doubted = (*doubts.guess, *doubts.alone)
        notes, cautions, said = (*notes, *doubted), (*cautions, *doubts.guess), " ".join([said, *doubted])
    scores = dict(zip(names, map(float, verdict.scores), strict=True)) | {"alone": float(verdict.alone)}
    return Heard(
        to_params(theta, params, model), **found,
        candidates=dict(zip(names, map(float, verdict.weights), strict=True)), scores=scores,
        shared=what_was_sent(silos, user, share, setup, EVIDENCE_ROUNDS, params, block, found["silent"]),
        findings=said, notes=notes, cautions=cautions,
        advice=(SAY_PREVALENCE,) * (unsure and has_two_classes(rows, theta, model)),
        make_history=lambda: simulate(recipe, model, silos, EVIDENCE_ROUNDS, user=user, record=("weights", "norm")),
        replicate=lambda count, seed: by_messages(
            setup, EVIDENCE_ROUNDS, user, params, block, beside, verdict.weights, verdict.believed, count, seed
        ).moved_by(moved),
    )  # fmt: skip


def blank_params(model: Model, silos: Silos) -> Tree:
    """Parameters of which only the shapes are looked at."""
    spec = params_spec(model, len(silos.feature_names), outputs_of(model, silos))
    return jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), spec)


def exchange(
    setup: Setup, rounds: int, user: jax.Array, params: Tree, block: Block, beside: Rows | None = None
) -> tuple[Tree, Verdict]:
    """The messages that reached the user, and its verdict on them: one program."""
    hyper = {"user": user}
    state = rollout(setup, rounds, hyper, jax.random.key(0), params, block, block, user).state
    inbox, private, own = silo_view(setup.algorithm(hyper).mixer, state, block, user)
    how: dict[str, Any] = dict(setup.make.static)
    return inbox.shared["table"], listen(
        setup.model, how["share"], how["candidates"], inbox, private, own, how["min_cell"], beside
    )


_exchange = jax.jit(exchange, static_argnums=(0, 1), compiler_options=QUICK_COMPILATION)


def who_counted(silos: Silos, user: int, share: Share, table: Tree, verdict: Verdict) -> dict[str, Any]:
    """Shares, relevance, and who was refused or had too few rows to be heard, by name."""
    own, together = silos.names[user], share == "sum"
    labels = (TOGETHER,) if together else silos.names
    others = [k for k, name in enumerate(labels) if together or k != user]
    silent = tuple(labels[k] for k in others if table["n"][k] == 0)
    refused = tuple(labels[k] for k in others if table["n"][k] != 0 and not verdict.believed[k])
    relevance = {labels[k]: 0.0 if labels[k] in (*silent, *refused) else float(verdict.relevance[k]) for k in others}
    shares = {labels[k]: float(verdict.shares[k]) for k in others} | {own: float(verdict.own)}
    weights = {name: shares[name] for name in (own, *labels) if together} or {n: shares[n] for n in silos.names}
    return {
        "weights": weights, "prior": 1 - sum(weights.values()), "relevance": relevance, "refused": refused,
        "silent": silent,
    }  # fmt: skip


def in_words(user: str, found: dict[str, Any], verdict: Verdict, model: Model, notes: tuple[str, ...]) -> str:
    """Whom the model listened to, who was left out, and whether it was worth it."""
    what = "log-loss" if model.task == "classification" else "half the log of the mean squared error"
    score = float(np.dot(verdict.weights, verdict.scores))
    worth = words.was_it_worth_it(score, float(verdict.alone), what)
    return " ".join([
        words.whom_it_listened_to(user, found["weights"], found["prior"]),
        *words.who_was_left_out(found["relevance"], found["refused"], found["silent"], found["weights"]),
        *(notes or (worth,)),
    ])  # fmt: skip


def is_validated(rows: Rows, model: Model) -> bool:
    """Whether the user's rows can tell how good a model is."""
    return int(rows.weight.sum()) > 0 and int(second_class(rows, model.task)) >= 2


def doubts_of(verdict: Verdict, user: str, rows: Rows, model: Model) -> Doubts:
    """The doubts about the average of the candidates."""
    score, alone = float(np.dot(verdict.weights, verdict.scores)), float(verdict.alone)
    y = np.asarray(rows.y)[np.asarray(rows.weight) > 0]
    if model.task == "regression":  # scores are logarithms of the RMSE of labels in standard units
        spread = float(np.std(y)) or 1.0
        score, alone = spread * math.exp(score), spread * math.exp(alone)
    return doubts_about(model.task, user, y, score, alone)


def one_class(rows: Rows, model: Model) -> bool:
    """Whether the user's rows are of one class, or all but one are."""
    return model.task == "classification" and int(rows.weight.sum()) > 0 and int(second_class(rows, model.task)) < 2


def about_few_rows(rows: Rows, user: str, unsure: bool) -> tuple[str, ...]:
    """What a reader must know about a user with too few rows, or too few of all but one class (`unsure`)."""
    count = int(rows.weight.sum())
    if count == 0:
        return (f"{user} has no training rows: its model is that of all others together.",)
    if unsure:
        return (
            f"{user} has fewer than two rows outside its most frequent class: nothing could be validated on them, and "
            "the model trusts that its patients are like its rows.",
        )
    if count < 25:
        return (f"{user} has only {count} training rows: expect little of the validation on them.",)
    return ()


def has_two_classes(rows: Rows, theta: np.ndarray, model: Model) -> bool:
    """Whether the model tells two classes apart, so that one intercept says how frequent the second is."""
    return model.task == "classification" and theta.shape[0] == rows.X.shape[1]


def with_prevalence(rows: Rows, theta: np.ndarray, model: Model, prevalence: float) -> np.ndarray:
    """The model with an intercept that gives the user's rows, on average, the prevalence that is known.

    The rows' labels say nothing of the intercept where only one class occurs, but their features are the user's. Of a
    user without rows the mean patient (zero in standardised features) stands for all.
    """
    theta = np.array(theta, float)
    if not has_two_classes(rows, theta, model):
        raise ValueError("prevalence is for labels of two classes")
    live = np.asarray(rows.weight) > 0
    margin = np.asarray(rows.X, float)[live] @ theta if live.any() else theta[-1:]
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        mean = float((1 / (1 + np.exp(-np.clip(margin + middle, -500, 500)))).mean())
        low, high = (middle, high) if mean < prevalence else (low, middle)
    theta[-1] += (low + high) / 2
    return theta.astype(np.float32 if jnp.result_type(float) == jnp.float32 else float)


def what_was_sent(
    silos: Silos, user: int, share: Share, setup: Setup, rounds: int, params: Tree, block: Block,
    silent: Collection[str],
) -> tuple[Shared, ...]:  # fmt: skip
    """The numbers that left each silo for this answer; those of silos with too few rows to be heard are zeros."""
    what = {
        "full": "coefficients, the curvature of the loss around them, the loss, the numbers of rows and of the silo",
        "diagonal": "coefficients, the diagonal of the curvature, the numbers of rows and of the silo",
        "parameters": "coefficients, the numbers of rows and of the silo",
        "sum": "coefficients, curvature, rows and loss, summed over silos before anybody sees them",
    }[share]
    sent = expected_traffic(setup, {"user": np.int32(user)}, params, block).up
    numbers = rounds * sent // np.dtype(jnp.result_type(float)).itemsize
    why = f"{rounds} messages from which {silos.names[user]} may borrow"
    empty = [name for name in silos.names if name in silent or TOGETHER in silent]
    return tuple(
        Shared(name, f"zeros in place of {what}, as its rows are too few" if name in empty else what, numbers, why)
        for i, name in enumerate(silos.names)
        if i != user and silos.sizes("train")[i]
    )
