"""All cells of the study of `auto` through the method itself, in a handful of compiled programs.

Every silo but the user sends its summaries, the pooled search runs its rounds, and the user judges all six candidates.
What any policy over some of them would have answered follows from their cross-validation scores and parameters alone.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere import algorithms
from confrere.borrowing.borrow import messages, pair
from confrere.borrowing.candidates import CANDIDATES, LOCAL, second_class
from confrere.borrowing.glm import QUICK_COMPILATION, expand, rows_of
from confrere.borrowing.local import alone, label_scale
from confrere.clients.summaries import listen, what_others_say
from confrere.core import Block, Inbox, Tree, silo_view
from confrere.models import Model, linear, logistic
from confrere.reproduce.auto_cells import Cell, Dealt, Pair

ALL = (*CANDIDATES, *LOCAL)
ROUNDS = 6
AT_ONCE = 10
SHAPES = ((9, 100, 10), (9, 200, 20), (21, 200, 10), (5, 480, 32))  # silos, rows, features: one program each


class Seen(NamedTuple):
    """What came of the cases of one or more cells: E cases, C candidates, N other silos."""

    scores: np.ndarray  # [E, C] mean held-out loss of every candidate
    theta: np.ndarray  # [E, C, D] each candidate on all of the user's rows, the intercept last
    relevance: np.ndarray  # [E, N] of every other silo, as answers tell it
    chance: np.ndarray  # [E, N] that it is not unrelated, as `pair` has it
    rows: np.ndarray  # [E] of the user
    second: np.ndarray  # [E] of them not of the most frequent class


class Outcome(NamedTuple):
    """A cell's cases, seed by seed, and the rows they are tested on."""

    cell: Cell
    seen: Seen
    tests: list[Pair]


def shape_for(dealt: Sequence[Dealt]) -> tuple[int, int, int]:
    """The first shape that all the deals fit in; their own if none does."""
    silos = 1 + max(len(one.others) for one in dealt)
    rows = max(len(y) for one in dealt for _, y in [one.user, *one.others])
    needed = (silos, rows, dealt[0].user[0].shape[1])
    fitting = [shape for shape in SHAPES if all(a <= b for a, b in zip(needed, shape, strict=True))]
    return fitting[0] if fitting else needed


def block_of(dealt: Sequence[Dealt], task: str, shape: tuple[int, int, int]) -> Block:
    """Cases stacked, the user silo 0, padded with empty rows, silent silos and features that are zero everywhere.

    None of the three changes an answer: a silo without rows says nothing, and a feature that no row shows has no
    evidence and takes no degree of freedom.
    """
    silos, rows, features = shape
    X = np.zeros((len(dealt), silos, rows, features), np.float32)
    y = np.zeros((len(dealt), silos, rows), np.float32 if task == "regression" else np.int32)
    size = np.zeros((len(dealt), silos), np.int32)
    for e, one in enumerate(dealt):
        for i, (Xi, yi) in enumerate([one.user, *one.others]):
            X[e, i, : len(yi), : Xi.shape[1]], y[e, i, : len(yi)], size[e, i] = Xi, yi, len(yi)
    ids = np.broadcast_to(np.arange(silos, dtype=np.int32), size.shape)
    return Block(X, y, size, ids)  # type: ignore[arg-type]


def judged(model: Model, data: Block) -> Seen:
    """One case: the rounds, the verdict on all candidates, and how relevant every silo seems by itself."""
    algorithm = algorithms.evidence(user=0, candidates=ALL).bound.on(model, user=jnp.int32(0))
    params = model.init(jax.random.key(0), data.X.shape[-1], 1 if model.task == "regression" else 2)
    step = lambda _, state: algorithm.update(state, data, jax.random.key(0))[0]  # noqa: E731
    state = jax.lax.fori_loop(0, ROUNDS, step, algorithm.init(params, data))
    inbox, private, own = silo_view(algorithm.mixer, state, data, 0)
    verdict = listen(model, "full", ALL, inbox, private, own)
    rows, relevance, chance = rows_of(model, own), verdict.relevance[1:], chance_in_pair(model, inbox, private, own)
    return Seen(verdict.scores, verdict.each, relevance, chance, rows.weight.sum(), second_class(rows, model.task))  # type: ignore[arg-type]


def chance_in_pair(model: Model, inbox: Inbox, private: Tree, own: Block) -> jax.Array:
    """The chance [N] of every other silo to be related, in `pair`, on all of the user's rows."""
    rows = rows_of(model, own)
    problem = what_others_say(model, "full", inbox, private, own.id, rows, rows)
    if model.task == "regression":
        rows = label_scale(rows).standard(rows)
    rows, theta = alone(rows, model.task, problem.prior)
    quadratic = expand(rows, theta, model.task)
    return pair(problem.prior, messages(problem.others, 1), quadratic, theta).relevance[1:]


@jax.jit(static_argnums=0, compiler_options=QUICK_COMPILATION)
def _run(model: Model, data: Block) -> Seen:
    return jax.lax.map(lambda one: judged(model, one), data)


def run_cell(cell: Cell, seeds: Sequence[int]) -> Outcome:
    """One cell with every seed, some at a time; the last batch is filled up with its first case."""
    dealt = [cell.deal(seed) for seed in seeds]
    model = linear() if cell.task == "regression" else logistic()
    parts = []
    for first in range(0, len(dealt), AT_ONCE):
        some = dealt[first : first + AT_ONCE]
        block = block_of(some + some[:1] * (AT_ONCE - len(some)), cell.task, shape_for(dealt))
        parts.append([np.asarray(a)[: len(some)] for a in _run(model, block)])
    seen = Seen(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    d, others = dealt[0].user[0].shape[1], len(dealt[0].others)
    theta = np.concatenate([seen.theta[..., :d], seen.theta[..., -1:]], axis=-1)
    there = seen._replace(theta=theta, relevance=seen.relevance[:, :others], chance=seen.chance[:, :others])
    return Outcome(cell, there, [one.test for one in dealt])


def run_cells(
    cells: Sequence[Cell], seeds: Sequence[int], progress: Callable[[int, int], None] | None = None
) -> list[Outcome]:
    """Every cell with every seed."""
    found: list[Outcome] = []
    for cell in cells:
        found.append(run_cell(cell, seeds))
        if progress is not None:
            progress(len(found), len(cells))
    return found


def loss_on(theta: np.ndarray, test: Pair, task: str) -> tuple[float, float]:
    """Log-loss and accuracy of log-odds parameters [D] on test rows; mean square twice for amounts."""
    X, y = test
    z = X @ theta[:-1] + theta[-1]
    if task == "regression":
        square = float(np.square(z - y).mean())
        return square, square
    return float(np.logaddexp(0, np.where(y == 1, -z, z)).mean()), float(((z > 0) == (y == 1)).mean())
