"""What one silo sends so that another may borrow from it: one message.

    w_i = argmin loss_i(w) + 1/2 w'A0w,   H_i = Hessian of loss_i at w_i,   h_i = (H_i + A0) w_i

The message is (h_i, H_i, n_i): d(d + 3)/2 + 1 numbers for d parameters, from which the other reads the silo's
likelihood to second order, 1/2 w'H_i w - h_i'w. For least squares both are divided by the variance of the residuals.

H_i is a matrix of second moments: with rare levels of a category it would reveal how few rows have them. `min_cell`
keeps a column of zeros and ones silent unless that many rows have either. `share` says less:

    full        (h, H, n): the best answers
    diagonal    (h, diagonal of H, n): no correlations between columns leave the silo
    parameters  (w, n): the fitted model alone; the user supposes that the silo's rows are spread like its own
    sum         (h, H) summed over silos before anybody sees them: no silo can be told apart, or refused
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.glm import ITERATIONS, Quadratic, Rows, derivatives, minimise, total_loss

Share = Literal["full", "diagonal", "parameters", "sum"]
SHARES = ("full", "diagonal", "parameters", "sum")


class Summary(NamedTuple):
    """One silo's message: its likelihood to second order, and how many rows are behind it."""

    h: jax.Array  # [D]; with share="parameters" the parameters w
    H: jax.Array  # [D(D + 1)/2], [D] if diagonal, [0] if not sent
    n: jax.Array
    loss: jax.Array  # the sum of losses at the point of expansion, for a damped common search


def packed(H: jax.Array, share: Share) -> jax.Array:
    """What is sent of a symmetric matrix."""
    if share == "parameters":
        return jnp.zeros(0, H.dtype)
    return jnp.diag(H) if share == "diagonal" else H[jnp.triu_indices(H.shape[0])]


def unpacked(packed: jax.Array, D: int, share: Share) -> jax.Array:
    """The symmetric matrix [D, D] from what was sent; zeros where nothing was."""
    if share == "parameters":
        return jnp.zeros((D, D))
    if share == "diagonal":
        return jnp.diag(packed)
    upper = jnp.zeros((D, D), packed.dtype).at[jnp.triu_indices(D)].set(packed)
    return upper + upper.T - jnp.diag(jnp.diag(upper))


def without_rare_cells(rows: Rows, least: int) -> Rows:
    """Rows whose columns of zeros and ones are silenced where fewer than `least` rows have either value."""
    if least <= 1:
        return rows
    live = rows.weight[:, None] > 0
    ones, zeros = ((live & (v == rows.X)).sum(axis=0) for v in (1, 0))
    binary = ones + zeros == live.sum()
    rare = binary & (jnp.minimum(ones, zeros) < least)
    rare = rare.at[-1].set(False)  # the intercept
    return rows._replace(X=jnp.where(rare, 0, rows.X))


def own_optimum(rows: Rows, task: str, prior: jax.Array, most=ITERATIONS) -> jax.Array:
    """The silo's ridge optimum, the base precision its ridge."""
    D = prior.shape[0]
    return minimise(rows, task, jnp.diag(prior), jnp.zeros(D, prior.dtype), jnp.zeros(D, prior.dtype), most)


def noise_precision(rows: Rows, theta: jax.Array, task: str) -> jax.Array:
    """1 over the variance of a least-squares silo's residuals; 1 for classes."""
    if task != "regression":
        return jnp.ones((), theta.dtype)
    residual = rows.weight @ jnp.square(rows.X @ theta - rows.y)
    freedom = jnp.maximum(rows.weight.sum() - theta.shape[0], 5)
    return freedom / jnp.maximum(residual, 1e-12 * freedom)


def summarise(rows: Rows, point: jax.Array, precision: jax.Array, task: str, share: Share) -> Summary:
    """The message of a silo: its losses to second order around a point."""
    gradient, H = derivatives(rows, point, task)
    H, gradient = H * precision, gradient * precision
    loss = total_loss(rows, point, task) * precision
    h = point if share == "parameters" else H @ point - gradient
    if share == "diagonal":
        h = jnp.diag(H) * point - gradient
    return Summary(h, packed(H, share), rows.weight.sum(), loss)


def believable(H: jax.Array, h: jax.Array, n: jax.Array, reach: jax.Array | None) -> jax.Array:
    """Whether a message could be what it claims: finite, from some rows, H without a negative direction, and not
    more curvature than n rows as far out as `reach` (the user's own largest |x|^2 / 4) could give."""
    finite = jnp.isfinite(H).all() & jnp.isfinite(h).all() & jnp.isfinite(n)
    clean = jnp.where(finite, H, 0)
    trace = jnp.trace(clean)
    lowest = jnp.linalg.eigvalsh(clean)[0]
    possible = jnp.bool_(True) if reach is None else trace <= n * reach * (1 + 1e-3)
    return finite & (n > 0) & (lowest >= -1e-3 * jnp.maximum(trace, 1e-6)) & possible


def quadratic_of(message: Summary, own: Quadratic, own_rows: jax.Array, prior: jax.Array, share: Share) -> Quadratic:
    """The silo's likelihood as the user reads it; where only parameters came, its own curvature stands in."""
    D = prior.shape[0]
    if share == "parameters":
        H = own.H * (message.n / jnp.maximum(own_rows, 1))
        return Quadratic(H, H @ message.h + prior * message.h)
    return Quadratic(unpacked(message.H, D, share), message.h)
