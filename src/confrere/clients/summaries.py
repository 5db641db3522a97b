"""The client of evidence-weighted borrowing: it sends its losses to second order, and weighs what it hears.

The first message is around the silo's own ridge optimum; the later ones are around the common point that the mixer
searches, so that silos can be pooled. The personal model is made from the silo's own rows and the others' messages.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.candidates import Problem, Verdict, judge
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
from confrere.borrowing.local import LabelScale, alone, label_scale
from confrere.borrowing.summary import (
    SEARCHING,
    Share,
    believed,
    own_optimum,
    summarise,
    unpacked,
    without_rare_cells,
)
from confrere.core import Block, Client, Inbox, Tree
from confrere.models import Model

FOLD_KEY = 20201  # with the silo's number it makes the key of its folds: the same silo, the same folds
SHARPEST = 1e12  # the most that one row of a least-squares silo may curve, in units of the user's labels


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
        own, noise = own_optimum(rows, model.task, prior, jnp.where(count == 0, ITERATIONS, 0))
        precision = jnp.where(count == 0, noise, precision)
        point = jnp.where(count == 0, own, inbox.shared["x"])
        message = summarise(rows, point, precision, model.task, share)
        if share not in SEARCHING:  # once is enough
            message = jax.tree.map(lambda a: jnp.where(count == 0, a, 0), message)
        return {"x": message, "told": {"id": data.id}}, (count + 1, precision, params)

    def personal(inbox, private, data):
        verdict = listen(model, share, candidates, inbox, private, data, min_cell)
        return to_params(verdict.theta, private[2], model)

    return Client(init, update, personal)


def prior_of(rows: Rows, params: Tree, model: Model) -> jax.Array:
    """The base precision [D] for these rows."""
    return base_precision(rows.X.shape[1], scores_of(params, model)).astype(rows.X.dtype)


class Known(NamedTuple):
    """What a silo knows once it has heard the others."""

    rows: Rows  # its own, in standard units of their labels
    scale: LabelScale | None  # of these units; None where labels are classes
    problem: Problem
    beside: Rows | None  # guesses, in the same units


def known_to(
    model: Model, share: Share, inbox: Inbox, private: Tree, data: Block, min_cell: int = 1, beside: Rows | None = None
) -> Known:
    """Its rows, and what the others say, in standard units of its labels."""
    rows = rows_of(model, data)
    problem = what_others_say(model, share, inbox, private, data.id, rows, without_rare_cells(rows, min_cell))
    if model.task != "regression":
        return Known(rows, None, problem, beside)
    scale = label_scale(rows)
    return Known(scale.standard(rows), scale, problem, None if beside is None else scale.standard(beside))


def listen(
    model: Model, share: Share, candidates: tuple[str, ...], inbox: Inbox, private: Tree, data: Block,
    min_cell: int = 1, beside: Rows | None = None,
) -> Verdict:  # fmt: skip
    """The verdict of one silo on all it has heard, in the units of its labels; `private` is the client's.

    `beside`: rows that every fit heeds and no score is measured on.
    """
    known = known_to(model, share, inbox, private, data, min_cell, beside)
    key = jax.random.fold_in(jax.random.key(FOLD_KEY), data.id)
    scores = scores_of(private[2], model)
    verdict = judge(known.rows, model.task, scores, known.problem, key, candidates, known.beside)
    if known.scale is None:
        return verdict
    return verdict._replace(theta=known.scale.raw(verdict.theta), each=known.scale.raw(verdict.each))


def what_others_say(
    model: Model, share: Share, inbox: Inbox, private: Tree, own_id: jax.Array, rows: Rows, sent: Rows
) -> Problem:
    """The others' likelihoods, one by one and pooled, in standard units of the user's labels.

    rows: the user's; sent: the same as its own message described them (see `without_rare_cells`).
    """
    _, precision, params = private
    prior, task = prior_of(rows, params, model), model.task
    scale = label_scale(rows) if task == "regression" else None
    table, pool = inbox.shared["table"], inbox.shared["pool"]
    said = likelihoods(table, rows if scale is None else scale.standard(rows), prior, scale, share, task)
    together = without_own(pool, sent, jnp.where(is_own(table, own_id).any(), precision, 0), task)
    together = together if scale is None else scale.restated(together)
    reach = most_curvature(rows, scores_of(params, model), task)
    return what_counts(table, own_id, said, together, pool["n"] > 0, prior, reach)


def is_own(table: dict[str, jax.Array], own_id: jax.Array) -> jax.Array:
    """Which row of the table is the silo's own [N]; blank rows are nobody's."""
    return (table["id"] == own_id) & (table["n"] > 0)


def likelihoods(
    table: dict[str, jax.Array], rows: Rows, prior: jax.Array, scale: LabelScale | None, share: Share, task: str
) -> Quadratic:
    """The table as the user reads it [N, ...], in standard units of the user's labels.

    Where only parameters came, the curvature of the user's own rows (per row) stands in: h_i = (H_i + A0) w_i.
    """
    if share != "parameters":
        said = Quadratic(jax.vmap(lambda H: unpacked(H, prior.shape[0], share))(table["H"]), table["h"])
        return said if scale is None else scale.restated(said)
    weighted, theta = alone(rows, task, prior)
    per_row = expand(weighted, theta, task).H / jnp.maximum(rows.weight.sum(), 1)
    w = table["h"] if scale is None else scale.inverse(table["h"])
    H = table["n"][:, None, None] * per_row
    return Quadratic(H, jnp.einsum("nij,nj->ni", H, w) + prior * w)


def without_own(pool: dict[str, jax.Array], sent: Rows, precision: jax.Array, task: str) -> Quadratic:
    """The others' summed losses around their common point, less the silo's own as it sent them (precision 0: never)."""
    own = expand(sent, pool["point"], task)
    return Quadratic(pool["H"] - precision * own.H, pool["h"] - precision * own.h)


def what_counts(
    table: dict[str, jax.Array], own_id: jax.Array, said: Quadratic, together: Quadratic, searched: jax.Array,
    prior: jax.Array, reach: jax.Array,
) -> Problem:  # fmt: skip
    """The others' likelihoods, one by one and pooled; a message that cannot be true counts as none.

    If there is one, or the pooled sums cannot be true, or there was no search, the pool is the sum of what counts.
    """
    own, n = is_own(table, own_id), table["n"]
    each, real = jax.vmap(lambda H, h, n: believed(Quadratic(H, h), n, reach))(said.H, said.h, n)
    each = Quadratic(jnp.where(own[:, None, None], 0, each.H), jnp.where(own[:, None], 0, each.h))
    together, possible = believed(together, jnp.where(own, 0, n).sum(), reach)
    searched = searched & possible & (real | own | (n == 0)).all()
    pool = Quadratic(jnp.where(searched, together.H, each.H.sum(0)), jnp.where(searched, together.h, each.h.sum(0)))
    return Problem(prior, each, pool, real & ~own)


def most_curvature(rows: Rows, scores: int, task: str) -> jax.Array:
    """The largest trace of the second derivatives of one row's loss that the user believes.

    It grows with |x|^2: as far as the user's own rows reach, but at least as far as those of standardised features do.
    """
    farthest = jnp.maximum(jnp.square(rows.X).sum(axis=1).max(), 4 * rows.X.shape[1])
    if task == "regression":
        return farthest * SHARPEST
    return farthest * (0.25 if scores == 1 else 1 - 1 / scores)
