"""The candidates, their cross-validation on the user's own rows, and the average that comes out.

::

    pair      the user's loss and what every silo by itself earns
    pair.3    the same with 0.3 of the borrowed information (it corrects double counting, where the user differs from
              all others in the same way)
    joint     every silo judged on top of all others, in three sweeps around the current optimum
    pool      the user's loss and the others' summed losses to second order, as if all were one population
    local     the user alone;  local.1: with a tenth of the base precision

Everything is done anew for each of five folds of the user's rows; candidates are weighted by exp(-loss on the rows
held out), and since all are linear models, their average is one, too.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.borrow import Borrowed, information_shares, messages, pair, relevance_by_itself, sweep
from confrere.borrowing.glm import Quadratic, Rows, expand, losses, minimise, together
from confrere.borrowing.local import alone

CANDIDATES = ("pair", "pair.3", "joint", "pool")
LOCAL = ("local", "local.1")
FOLDS = 5
SWEEPS = 3


class Fitted(NamedTuple):
    """One candidate on one set of rows, and where its information came from."""

    theta: jax.Array  # [D]
    own: jax.Array  # the user's share of the information
    shares: jax.Array  # [N] every silo's


class Verdict(NamedTuple):
    """The average of the candidates, and how it came about."""

    theta: jax.Array  # [D]
    weights: jax.Array  # [candidates]
    scores: jax.Array  # [candidates] mean loss on held-out rows (half the log of the mean square, for least squares)
    own: jax.Array
    shares: jax.Array  # [N]
    relevance: jax.Array  # [N]
    each: jax.Array  # [candidates, D] the candidates on all rows
    alone: jax.Array  # the score of `local`, whether it is a candidate or not
    believed: jax.Array  # [N]


class Problem(NamedTuple):
    """What a user knows: the base precision, every other silo's likelihood, and the others' pooled one."""

    prior: jax.Array  # [D]
    others: Quadratic  # [N, ...]
    pool: Quadratic
    believed: jax.Array  # [N] whose message could be true; that of others counts as none


def fold_of_rows(y: jax.Array, live: jax.Array, key: jax.Array, task: str, k: int = FOLDS) -> jax.Array:
    """A fold 0..k-1 for every live row: class by class in random order, dealt out in turn; k for padding."""
    m = y.shape[0]
    shuffle_key, offset_key = jax.random.split(key)
    classes = jnp.where(live, y.astype(jnp.int32) if task == "classification" else 0, jnp.iinfo(jnp.int32).max)
    order = jnp.lexsort((jax.random.uniform(shuffle_key, (m,), jnp.float32), classes))
    place = jnp.zeros(m, jnp.int32).at[order].set(jnp.arange(m, dtype=jnp.int32))
    return jnp.where(live, (place + jax.random.randint(offset_key, (), 0, k, jnp.int32)) % k, k)


def fit(rows: Rows, task: str, problem: Problem, said: Quadratic, names: tuple[str, ...]) -> Fitted:
    """Every candidate on one set of rows (those with weight), stacked in the order of the names."""
    rows, local = alone(rows, task, problem.prior)
    own = expand(rows, local, task)
    paired = pair(problem.prior, said, own, local)
    borrowed = what_is_borrowed(problem, paired.from_each)
    at_once = ["pair", *(name for name in names if name not in ("pair", "joint"))]
    priors = {name: problem.prior * (0.1 if name == "local.1" else 1) for name in at_once}
    A, b = (jnp.stack(each) for each in zip(*(with_prior(priors[k], borrowed[k]) for k in at_once), strict=True))
    thetas = jax.vmap(lambda A, b: minimise(rows, task, A, b, local))(A, b)
    found: dict[str, Fitted] = {}
    for name, theta in zip(at_once, thetas, strict=True):
        shares = information_shares(priors[name], own, borrowed[name].H)
        found[name] = Fitted(theta, *shares)
    if "joint" in names:
        together, theta, around = joint(rows, task, problem.prior, said, paired, found["pair"].theta)
        shares = information_shares(problem.prior, around, together.from_each.H)
        found["joint"] = Fitted(theta, *shares)
    return jax.tree.map(lambda *a: jnp.stack(a), *[found[name] for name in names])


def what_is_borrowed(problem: Problem, paired: Quadratic) -> dict[str, Quadratic]:
    """From every silo [N, ...], for every candidate but `joint`; `pool` is known as a whole, and dealt out in parts."""
    nothing = jax.tree.map(jnp.zeros_like, problem.others)
    return {
        "pair": paired,
        "pair.3": Quadratic(0.3 * paired.H, 0.3 * paired.h),
        "pool": jax.tree.map(lambda whole: parts_of(problem.others.H, whole), problem.pool),
        "local": nothing,
        "local.1": nothing,
    }


def with_prior(prior: jax.Array, from_each: Quadratic) -> Quadratic:
    """The base precision and all that is borrowed."""
    return Quadratic(jnp.diag(prior) + from_each.H.sum(0), from_each.h.sum(0))


def joint(
    rows: Rows, task: str, prior: jax.Array, said: Quadratic, paired: Borrowed, theta: jax.Array
) -> tuple[Borrowed, jax.Array, Quadratic]:
    """Sweeps over the silos, the user's likelihood expanded anew around the current optimum before each."""

    def body(_, carry):
        borrowed, theta, _ = carry
        around = expand(rows, theta, task)
        borrowed = sweep(prior, said, around, theta, borrowed)
        A, b = with_prior(prior, borrowed.from_each)
        return borrowed, minimise(rows, task, A, b, theta), around

    return jax.lax.fori_loop(0, SWEEPS, body, (paired, theta, expand(rows, theta, task)))


def parts_of(each: jax.Array, together: jax.Array) -> jax.Array:
    """Every silo's part [N, ...] of a sum that is only known as a whole, in proportion to its own curvature."""
    parts = jnp.trace(each, axis1=1, axis2=2)
    return jnp.tensordot(parts / jnp.maximum(parts.sum(), 1e-12), together, 0)


def judge(
    rows: Rows, task: str, scores: int, problem: Problem, key: jax.Array, names: tuple[str, ...],
    beside: Rows | None = None,
) -> Verdict:  # fmt: skip
    """All candidates on all folds and on all rows, and their average.

    `beside` are rows that every fit heeds and no score is measured on: a clinician's guesses.
    """
    live = rows.weight > 0
    n = rows.weight.sum()
    fold = fold_of_rows(rows.y, live, key, task)
    masks = jnp.concatenate([fold[None] != jnp.arange(FOLDS)[:, None], jnp.ones((1, len(fold)), bool)])
    said = messages(problem.others, scores)
    scored = names if "local" in names else (*names, "local")

    def on(mask) -> Fitted:
        chosen = rows._replace(weight=jnp.where(mask, rows.weight, 0))
        return fit(together(chosen, beside), task, problem, said, scored)

    fits = jax.vmap(on)(masks)  # [K + 1, candidates, ...]
    held_out = fits.theta[jnp.minimum(fold, FOLDS - 1)]  # [m, candidates, D]
    table = held_out.reshape(*held_out.shape[:2], rows.X.shape[1], -1)
    z = jnp.einsum("mj,mcjs->cms", rows.X, table)
    loss = jax.vmap(lambda z: rows.weight @ losses(rows, z, task))(z)  # [candidates]
    mean = loss / jnp.maximum(n, 1)
    score = 0.5 * jnp.log(jnp.maximum(2 * mean, 1e-30)) if task == "regression" else mean
    alone_score, score = score[scored.index("local")], score[: len(names)]
    weights = candidate_weights(rows, task, n * score, names)
    last = jax.tree.map(lambda a: a[-1, : len(names)], fits)
    mixed = jax.tree.map(lambda a: jnp.tensordot(weights, a, 1), last)
    relevance = jnp.where(problem.believed, relevances(rows, task, problem, said), 0)  # who says nothing has none
    return Verdict(
        mixed.theta, weights, score, mixed.own, mixed.shares, relevance, last.theta, alone_score, problem.believed
    )


def relevances(rows: Rows, task: str, problem: Problem, said: Quadratic) -> jax.Array:
    """The relevance [N] of every silo, judged by all of the user's rows."""
    rows, local = alone(rows, task, problem.prior)
    return relevance_by_itself(problem.prior, said, expand(rows, local, task), local)


def candidate_weights(rows: Rows, task: str, losses_held_out: jax.Array, names: tuple[str, ...]) -> jax.Array:
    """exp(-loss), normalised. Without two rows of a second class there is nothing to validate on: `pair` alone;
    without any row, `pool`."""
    weights = jax.nn.softmax(-losses_held_out)
    only = lambda name: jnp.array([1.0 if n == name else 0.0 for n in names], weights.dtype)  # noqa: E731
    if "pair" in names:
        weights = jnp.where(second_class(rows, task) >= 2, weights, only("pair"))
    if "pool" in names:
        weights = jnp.where(rows.weight.sum() > 0, weights, only("pool"))
    return weights


@functools.partial(jax.jit, static_argnames="task")
def second_class(rows: Rows, task: str) -> jax.Array:
    """How many rows do not belong to the most frequent class; for least squares, all but one."""
    n = rows.weight.sum()
    if task == "regression":
        return n - 1
    same = (rows.y[:, None] == rows.y[None]) & (rows.weight[None] > 0)
    return n - jnp.where(rows.weight > 0, same.sum(axis=1), 0).max()
