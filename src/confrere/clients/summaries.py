"""The client of evidence-weighted borrowing: it sends its losses to second order, and weighs what it hears.

The first message is around the silo's own ridge optimum; the later ones are around the common point that the mixer
searches, so that silos can be pooled. The personal model is made from the silo's own rows and the others' messages.
"""

from typing import Any

import jax
import jax.numpy as jnp

from confrere.borrowing.candidates import Problem, Verdict, judge, total
from confrere.borrowing.glm import (
    ITERATIONS,
    Quadratic,
    Rows,
    base_precision,
    check_linear,
    expand,
    rows_of,
    scores_of,
    to_params,
)
from confrere.borrowing.local import LabelScale, label_scale
from confrere.borrowing.summary import (
    Share,
    Summary,
    believable,
    noise_precision,
    own_optimum,
    quadratic_of,
    summarise,
    without_rare_cells,
)
from confrere.core import Block, Client, Inbox, Tree
from confrere.models import Model

FOLD_KEY = 20201  # folds are drawn anew for no reason: the same silo, the same folds


def summaries(model: Model, share: Share, min_cell: int, candidates: tuple[str, ...]) -> Client:
    """Send `Summary` messages; the personal model is the average of the candidates."""
    check_linear(model, "evidence-weighted borrowing")

    def init(params):
        weights = params["w"]
        D = (weights.shape[0] + 1) * scores_of(params, model)
        return {"x": jnp.zeros(D, weights.dtype)}, (jnp.int32(0), jnp.ones((), weights.dtype), params)

    def update(inbox, private, data, ctx):
        count, precision, params = private
        rows = without_rare_cells(rows_of(model, data), min_cell)
        prior = prior_of(rows, params, model)
        own = own_optimum(rows, model.task, prior, jnp.where(count == 0, ITERATIONS, 0))
        precision = jnp.where(count == 0, noise_precision(rows, own, model.task), precision)
        point = jnp.where(count == 0, own, inbox.shared["x"])
        message = summarise(rows, point, precision, model.task, share)
        return {"x": message, "told": {"id": data.id}}, (count + 1, precision, params)

    def personal(inbox, private, data):
        verdict = listen(model, share, candidates, inbox, private, data)
        return to_params(verdict.theta, private[2], model)

    return Client(init, update, personal)


def prior_of(rows: Rows, params: Tree, model: Model) -> jax.Array:
    """The base precision [D] for these rows."""
    return base_precision(rows.X.shape[1], scores_of(params, model)).astype(rows.X.dtype)


def listen(
    model: Model, share: Share, candidates: tuple[str, ...], inbox: Inbox, private: Tree, data: Block
) -> Verdict:
    """The verdict of one silo on all it has heard, in the units of its labels."""
    _, precision, params = private
    rows = rows_of(model, data)
    prior, task = prior_of(rows, params, model), model.task
    problem = what_others_say(inbox.shared, rows, prior, precision, data.id, share, task)
    key = jax.random.fold_in(jax.random.key(FOLD_KEY), data.id)
    scores = scores_of(params, model)
    if task == "classification":
        return judge(rows, task, scores, problem, key, candidates)
    scale = label_scale(rows)
    standard = restated(problem, scale)
    verdict = judge(scale.standard(rows), task, scores, standard, key, candidates)
    return verdict._replace(theta=scale.raw(verdict.theta), each=scale.raw(verdict.each))


def what_others_say(
    shared: dict[str, Any], rows: Rows, prior: jax.Array, precision, own_id, share: Share, task: str
) -> Problem:
    """The others' likelihoods, one by one and pooled; a message that cannot be true counts as none."""
    table, D = shared["table"], prior.shape[0]
    A0 = jnp.diag(prior)
    weight = rows.weight.sum()
    centre = own_optimum(rows, task, prior) if share == "parameters" else prior
    own = expand(rows, centre, task) if share == "parameters" else Quadratic(A0, prior)
    messages = Summary(table["h"], table["H"], table["n"], table["n"])
    read = lambda one: quadratic_of(one, own, weight, prior, share)  # noqa: E731
    each = jax.vmap(read)(messages)
    is_own = (table["id"] == own_id) & (table["n"] > 0)
    reach = None if task == "regression" else jnp.square(rows.X).sum(axis=1).max() * most_curvature(D, rows)
    fit = jax.vmap(lambda H, h, n: believable(H, h, n, reach))(each.H, each.h, table["n"])
    counts = fit & ~is_own
    each = Quadratic(jnp.where(counts[:, None, None], each.H, 0), jnp.where(counts[:, None], each.h, 0))
    pool = pooled(shared["pool"], rows, precision, is_own.any(), task)
    searched = (shared["pool"]["n"] > 0) & (fit | is_own | (table["n"] == 0)).all()
    one_shot = total(each)
    pool = Quadratic(jnp.where(searched, pool.H, one_shot.H), jnp.where(searched, pool.h, one_shot.h))
    return Problem(prior, each, pool, counts)


def most_curvature(D: int, rows: Rows) -> float:
    """The largest sum of second derivatives of one row's loss by its scores."""
    scores = D // rows.X.shape[1]
    return 0.25 if scores == 1 else 1 - 1 / scores


def pooled(pool: dict[str, jax.Array], rows: Rows, precision, included, task: str) -> Quadratic:
    """The others' summed losses around their common point: without the silo's own, if they are in the sum."""
    own = expand(rows, pool["point"], task)
    factor = jnp.where(included, precision, 0)
    return Quadratic(pool["H"] - factor * own.H, pool["h"] - factor * own.h)


def restated(problem: Problem, scale: LabelScale) -> Problem:
    """The others' likelihoods of w = spread * u + centre e, as likelihoods of u."""

    def of(quadratic: Quadratic) -> Quadratic:
        (H, h), (centre, spread) = quadratic, scale
        return Quadratic(H * spread**2, (h - H[..., -1] * centre) * spread)

    return problem._replace(others=of(problem.others), pool=of(problem.pool))
