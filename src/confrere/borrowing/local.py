"""What a user can do alone: the ridge optimum of its own rows, in units in which the base precision makes sense."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.factor import solve
from confrere.borrowing.glm import Quadratic, Rows, expand, minimise

LEAST_NOISE = 1e-6  # the smallest variance of residuals, in standard units: labels are never known better


class LabelScale(NamedTuple):
    """Mean and standard deviation of least-squares labels; coefficients are shrunk in these units."""

    centre: jax.Array
    spread: jax.Array

    def standard(self, rows: Rows) -> Rows:
        """The same rows with labels in standard units."""
        return rows._replace(y=(rows.y - self.centre) / self.spread)

    def raw(self, theta: jax.Array) -> jax.Array:
        """Parameters [..., D] for labels as they were."""
        return (theta * self.spread).at[..., -1].add(self.centre)

    def inverse(self, theta: jax.Array) -> jax.Array:
        """Parameters [..., D] for labels in standard units, from those for labels as they were."""
        return theta.at[..., -1].add(-self.centre) / self.spread

    def restated(self, said: Quadratic) -> Quadratic:
        """A likelihood of w = spread * u + centre e (e: the intercept), as a likelihood of u."""
        H, h = said
        return Quadratic(H * self.spread**2, (h - H[..., -1] * self.centre) * self.spread)


def label_scale(rows: Rows) -> LabelScale:
    """The scale of the rows' labels, (0, 1) if there is none."""
    n = jnp.maximum(rows.weight.sum(), 1)
    mean = rows.weight @ rows.y / n
    spread = jnp.sqrt(rows.weight @ jnp.square(rows.y - mean) / n)
    return LabelScale(mean, jnp.where(spread > 0, spread, 1))


def alone(rows: Rows, task: str, prior: jax.Array) -> tuple[Rows, jax.Array]:
    """The optimum of loss + 1/2 w'A0w; for least squares the rows are weighted by the precision of their noise.

    The variance of the residuals is that of a first fit, its degrees of freedom what the ridge leaves (3 or more).
    """
    A0, nothing = jnp.diag(prior), jnp.zeros_like(prior)
    theta = minimise(rows, task, A0, nothing, nothing)
    if task != "regression":
        return rows, theta
    H = expand(rows, theta, task).H
    used = jnp.trace(solve(H + A0, H))
    freedom = jnp.maximum(rows.weight.sum() - used, 3)
    residual = rows.weight @ jnp.square(rows.X @ theta - rows.y)
    rows = rows._replace(weight=rows.weight * freedom / jnp.maximum(residual, LEAST_NOISE * freedom))
    return rows, minimise(rows, task, A0, nothing, theta)


def ridge_optimum(rows: Rows, task: str, prior: jax.Array) -> jax.Array:
    """The same, with labels and parameters in the units of the labels."""
    if task != "regression":
        return alone(rows, task, prior)[1]
    scale = label_scale(rows)
    return scale.raw(alone(scale.standard(rows), task, prior)[1])
