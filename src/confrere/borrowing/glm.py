"""Models that are linear in their parameters: sums of losses, their curvature, and exact minimisation.

With rows x (the intercept a feature of its own, the last one) and parameters theta, the scores of a row are x' theta.
Three families: least squares, two classes (one score, the log-odds of class 1) and more classes (one score each).
Parameters are handled as one vector of D = (features + 1) * scores numbers, feature by feature, the intercepts last.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.factor import solve
from confrere.core import Block, Tree
from confrere.models import Model

PRIOR, INTERCEPT_PRIOR = 1.0, 0.1  # base precision of a coefficient, and of an intercept
STEPS = (1.0, 0.5, 0.2, 0.05, 0.01)  # lengths that are tried in every Newton step
ITERATIONS = 30
# Most of the time goes into small factorisations, which a library does: optimising the rest delays the first answer.
QUICK_COMPILATION = {"xla_backend_optimization_level": 1}


class Rows(NamedTuple):
    """Rows with an intercept; a weight of 0 takes a row out."""

    X: jax.Array  # [m, features + 1]
    y: jax.Array  # [m]
    weight: jax.Array  # [m]


def together(rows: Rows, more: Rows | None) -> Rows:
    """Two sets of rows as one."""
    return rows if more is None else jax.tree.map(lambda a, b: jnp.concatenate([a, b.astype(a.dtype)]), rows, more)


class Quadratic(NamedTuple):
    """A sum of losses to second order, up to a constant: 1/2 t'Ht - h't, with H its curvature."""

    H: jax.Array  # [..., D, D]
    h: jax.Array  # [..., D]


def check_linear(model: Model, why: str) -> None:
    """Refuse a model that is not linear in its parameters."""
    if model.name not in ("linear", "logistic"):
        raise TypeError(f"{why} needs a model that is linear in its parameters (models.linear() or models.logistic()), "
                        f"not {model.name}")  # fmt: skip


@functools.partial(jax.jit, static_argnames="model")
def rows_of(model: Model, data: Block) -> Rows:
    """One silo's rows, whatever its padding holds."""
    live = jnp.arange(data.y.shape[0]) < data.size
    X = jnp.where(live[:, None], data.X, 0)
    X = jnp.concatenate([X, live[:, None].astype(X.dtype)], axis=1)
    y = jnp.where(live, data.y, 0)
    return Rows(X, y.astype(X.dtype) if model.task == "regression" else y.astype(jnp.int32), live.astype(X.dtype))


def scores_of(params: Tree, model: Model) -> int:
    """How many scores a row has: one for least squares and two classes."""
    outputs = params["b"].shape[0]
    return 1 if model.task == "regression" or outputs == 2 else outputs


@functools.partial(jax.jit, static_argnames="model")
def to_params(theta: jax.Array, params: Tree, model: Model) -> Tree:
    """The vector as the model's parameters; two classes share the log-odds evenly."""
    table = theta.reshape(-1, scores_of(params, model))
    if model.task == "classification" and params["b"].shape[0] == 2:
        table = jnp.concatenate([-table / 2, table / 2], axis=1)
    like = lambda a, b: a.astype(b.dtype)  # noqa: E731
    return {"w": like(table[:-1], params["w"]), "b": like(table[-1], params["b"])}


def base_precision(width: int, scores: int) -> jax.Array:
    """The diagonal of A0 [D]: how firmly coefficients are held near zero before any row is seen.

    With more than two classes only differences of scores mean something, which halves the variance of each.
    """
    each = jnp.full(width, PRIOR).at[-1].set(INTERCEPT_PRIOR)
    return jnp.repeat(each * (1.0 if scores == 1 else 2.0), scores)


def losses(rows: Rows, z: jax.Array, task: str) -> jax.Array:
    """The loss of every row at scores z [m, scores]."""
    if task == "regression":
        return 0.5 * jnp.square(z[:, 0] - rows.y)
    if z.shape[1] == 1:
        return jax.nn.softplus(jnp.where(rows.y == 1, -z[:, 0], z[:, 0]))
    return jax.nn.logsumexp(z, axis=1) - jnp.take_along_axis(z, rows.y[:, None], axis=1)[:, 0]


def slopes(rows: Rows, z: jax.Array, task: str) -> tuple[jax.Array, jax.Array]:
    """First and second derivatives of every row's loss by its scores: [m, s] and [m, s, s]."""
    if task == "regression":
        return z - rows.y[:, None], jnp.ones((*z.shape, 1), z.dtype)
    if z.shape[1] == 1:
        p = jax.nn.sigmoid(z)
        return p - rows.y[:, None], (p * (1 - p))[:, :, None]
    p = jax.nn.softmax(z, axis=1)
    one_hot = jax.nn.one_hot(rows.y, z.shape[1], dtype=z.dtype)
    return p - one_hot, jax.vmap(jnp.diag)(p) - p[:, :, None] * p[:, None, :]


def total_loss(rows: Rows, theta: jax.Array, task: str) -> jax.Array:
    """The weighted sum of losses."""
    z = rows.X @ theta.reshape(rows.X.shape[1], -1)
    return rows.weight @ losses(rows, z, task)


@functools.partial(jax.jit, static_argnames="task")
def expand(rows: Rows, theta: jax.Array, task: str) -> Quadratic:
    """The sum of losses to second order around theta: 1/2 t'Ht - h't, h = H theta - gradient."""
    gradient, H = derivatives(rows, theta, task)
    return Quadratic(H, H @ theta - gradient)


def derivatives(rows: Rows, theta: jax.Array, task: str) -> tuple[jax.Array, jax.Array]:
    """Gradient [D] and Hessian [D, D] of the weighted sum of losses."""
    z = rows.X @ theta.reshape(rows.X.shape[1], -1)
    first, second = slopes(rows, z, task)
    weighted = rows.X * rows.weight[:, None]
    gradient = (weighted.T @ first).reshape(-1)
    if z.shape[1] == 1:
        return gradient, (weighted * second[:, :, 0]).T @ rows.X
    D = theta.shape[0]
    return gradient, jnp.einsum("mj,mcd,mk->jckd", weighted, second, rows.X).reshape(D, D)


@functools.partial(jax.jit, static_argnames="task")
def minimise(rows: Rows, task: str, A: jax.Array, b: jax.Array, start: jax.Array, most=ITERATIONS) -> jax.Array:
    """The minimum of total_loss + 1/2 t'At - b't by Newton's method with the best of a few step lengths.

    A is positive definite, so the minimum is one. `most` limits the iterations; 0 returns the start, and so does what
    overflows (A and b may come from forged messages).
    """
    lengths = jnp.asarray(STEPS, start.dtype)
    tolerance = 1e-8 if start.dtype == jnp.float64 else 1e-5  # before the last step, which about squares it

    def go_on(carry):
        _, count, gain = carry
        return (count < most) & (gain > tolerance)

    def step(carry):
        theta, count, _ = carry
        gradient, H = derivatives(rows, theta, task)
        slope = gradient + A @ theta - b
        direction = -solve(H + A, slope)
        z, dz = (rows.X @ t.reshape(rows.X.shape[1], -1) for t in (theta, direction))

        def change(length):  # of the objective, without its value: small differences keep their digits
            new = losses(rows, z + length * dz, task) - losses(rows, z, task)
            quadratic = length * (direction @ (A @ theta - b)) + 0.5 * length**2 * direction @ (A @ direction)
            return rows.weight @ new + quadratic

        changes = jax.vmap(change)(lengths)
        best = jnp.argmin(changes)
        decrement = -slope @ direction
        moved = theta + jnp.where(changes[best] < 0, lengths[best], 0) * direction
        # near the minimum the change drowns in rounding, but the full step is safe there
        theta = jnp.where(decrement < 1e-4, theta + direction, moved)
        return theta, count + 1, decrement

    start_gain = jnp.asarray(jnp.inf, start.dtype)
    theta = jax.lax.while_loop(go_on, step, (start, jnp.int32(0), start_gain))[0]
    return jnp.where(jnp.isfinite(theta).all(), theta, start)
