"""Many linear models of the same rows at once, which differ in the rows' weights or in the features they may use.

The objective is that of `selection.linear`: mean loss + l2/2 w'A0w.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows, derivatives, total_loss
from confrere.data.silo import fold_numbers
from confrere.selection.linear import row_losses

REPEATS, FOLDS = 3, 4
MOST_STEPS, MOST_HALVINGS, DECREMENT = 40, 20, 1e-10
TINY = 1e-9  # curvature where a feature is masked, or an intercept is free


class Task(NamedTuple):
    """What all models have in common."""

    task: str
    penalty: np.ndarray  # [D]


def optima(
    rows: Rows, weights: np.ndarray, masks: np.ndarray, task: Task, start: np.ndarray | None = None
) -> np.ndarray:
    """The optimum for each weighting [B, m] of the rows, with the features of a mask [B, features + 1]; [B, D].

    Newton's method for all at once; a step that leads upwards is halved.
    """
    precision = weights.sum(axis=1, keepdims=True) * task.penalty  # [B, D]
    theta = np.zeros_like(precision) if start is None else start
    look = lambda t: tuple(map(np.asarray, around(rows, t, weights, masks, task.task)))  # noqa: E731
    loss, slope, H = look(theta)
    value = loss + 0.5 * (precision * theta**2).sum(axis=1)
    for _ in range(MOST_STEPS):
        slope = slope + precision * theta
        curvature = H + (precision + TINY)[:, :, None] * np.eye(precision.shape[1])
        step = -np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        if (-(slope * step).sum(axis=1) <= DECREMENT * np.maximum(1.0, np.abs(value))).all():
            break
        for _ in range(MOST_HALVINGS):
            loss, slope, H = look(theta + step)
            moved = loss + 0.5 * (precision * (theta + step) ** 2).sum(axis=1)
            worse = moved > value + 1e-9 * np.maximum(1.0, np.abs(value))
            if not worse.any():
                break
            step = np.where(worse[:, None], step / 2, step)
        theta, value = theta + step, moved
    return theta


@functools.partial(jax.jit, static_argnames="task")
def around(
    rows: Rows, theta: jax.Array, weights: jax.Array, masks: jax.Array, task: str
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Sums of losses [B], gradients [B, D] and curvatures [B, D, D]."""

    def one(point: jax.Array, weight: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        seen = rows._replace(X=rows.X * mask.astype(rows.X.dtype), weight=weight.astype(rows.X.dtype))
        return total_loss(seen, point, task), *derivatives(seen, point, task)

    return jax.vmap(one)(theta, weights, masks)


def foldings(y: np.ndarray, length: int, seed: int, repeats: int = REPEATS, folds: int = FOLDS) -> np.ndarray:
    """Several ways to part rows in folds [repeats, length]; padding is in fold -1."""
    rng = np.random.default_rng(seed)
    found = np.full((repeats, length), -1)
    for each in found:
        each[: len(y)] = fold_numbers(y, min(folds, len(y)), rng)
    return found


def losses_out_of_fold(rows: Rows, weight: np.ndarray, fold: np.ndarray, masks: np.ndarray, task: Task) -> np.ndarray:
    """The loss of every row under models of the other folds, for each mask, mean over repeats [masks, m].

    `weight` [m]: how much each row counts in training; a row that counts 0 has no loss of its own (NaN).
    """
    repeats, folds = fold.shape[0], int(fold.max()) + 1
    training = np.stack([weight * (fold[r] != k) for r in range(repeats) for k in range(folds)])
    total = np.full((len(masks), len(weight)), 0.0)
    for j, mask in enumerate(masks):
        theta = optima(rows, training, np.tile(mask, (len(training), 1)), task)
        seen = rows._replace(X=rows.X * jnp.asarray(mask, rows.X.dtype))
        each = np.asarray(jax.vmap(lambda t, seen=seen: row_losses(seen, t, task.task))(jnp.asarray(theta)))
        for number, losses in enumerate(each):
            tested = fold[number // folds] == number % folds
            total[j] += np.where(tested, losses, 0.0) / repeats
    return np.where(weight > 0, total, np.nan)
