"""What one silo sends so that another may borrow from it: one message.

    w_i = argmin loss_i(w) + 1/2 w'A0w,   H_i = Hessian of loss_i at w_i,   h_i = (H_i + A0) w_i

The message is (h_i, H_i, n_i): D(D + 3)/2 + 1 numbers for D parameters, from which the other reads the silo's
likelihood to second order, 1/2 w'H_i w - h_i'w. For least squares both are divided by the variance of the residuals.
One number more, the sum of losses, keeps the search for the pooled optimum from going astray.

H_i is a matrix of second moments: of a level that one patient has it would reveal that patient's row. Rows with a
value that fewer than `min_cell` rows share, in a column of two values, take no part in the message, and a silo with
fewer rows says nothing. Levels that are frequent by themselves but rare together are still counted. `share` says less:

    full        (h, H, n): the best answers
    diagonal    (h, diagonal of H, n): no correlations between columns leave the silo
    parameters  (w, n): the fitted model alone; the user supposes that the silo's rows are spread like its own
    sum         (h, H) summed over silos before anybody sees them: no silo can be told apart, or refused

Without the curvature (diagonal, parameters) there is no common search: silos are pooled by their first messages, and
the later ones are empty.
"""

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from confrere.borrowing.factor import semidefinite
from confrere.borrowing.glm import ITERATIONS, Quadratic, Rows, derivatives, minimise, total_loss
from confrere.borrowing.local import LEAST_NOISE, label_scale

Share = Literal["full", "diagonal", "parameters", "sum"]
SHARES: tuple[str, ...] = get_args(Share)
MIN_CELL = 5  # rows that must agree before anything is said about them
PASSES = 3  # rows that are left out may make other cells rare
SEARCHING = ("full", "sum")  # what silos say then is enough to search the optimum of all of them


class Summary(NamedTuple):
    """One silo's message: its likelihood to second order, and how many rows are behind it."""

    h: jax.Array  # [D]; with share="parameters" the parameters w
    H: jax.Array  # [D(D + 1)/2], [D] if diagonal, [0] if not sent
    n: jax.Array
    loss: jax.Array  # the sum of losses at the point of expansion, for the damped search; [0] if there is none


def packed(H: jax.Array, share: Share) -> jax.Array:
    """What is sent of a symmetric matrix."""
    if share == "parameters":
        return jnp.zeros(0, H.dtype)
    return jnp.diag(H) if share == "diagonal" else H[jnp.triu_indices(H.shape[0])]


def unpacked(packed: jax.Array, D: int, share: Share) -> jax.Array:
    """The symmetric matrix [D, D] from what was sent."""
    if share == "diagonal":
        return jnp.diag(packed)
    upper = jnp.zeros((D, D), packed.dtype).at[jnp.triu_indices(D)].set(packed)
    return upper + upper.T - jnp.diag(jnp.diag(upper))


def without_rare_cells(rows: Rows, least: int) -> Rows:
    """Rows of which none belongs to a cell of fewer than `least`: those with a rare value of a column of two values are
    left out altogether (else the sums of the other levels would tell them, by subtraction), and so is everything if too
    few remain. A column that has one value in all rows that remain is silent: zero.
    """
    if least <= 1:
        return rows

    def pass_over(_, weight):
        live = weight[:, None] > 0
        low, high = ends_of(rows.X, live)
        at_low, at_high = live & (low == rows.X), live & (high == rows.X)
        lows, highs = at_low.sum(axis=0), at_high.sum(axis=0)
        two = (low < high) & (lows + highs == live.sum())
        rare = (two & (lows < least) & at_low) | (two & (highs < least) & at_high)
        return jnp.where(rare.any(axis=1), 0, weight)

    weight = jax.lax.fori_loop(0, PASSES, pass_over, rows.weight)
    weight = jnp.where((weight > 0).sum() >= least, weight, 0)
    low, high = ends_of(rows.X, weight[:, None] > 0)
    silent = (low >= high).at[-1].set(False)  # the intercept speaks
    return rows._replace(X=jnp.where(silent, 0, rows.X), weight=weight)


def ends_of(X: jax.Array, live: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The lowest and the highest value of every column among live rows."""
    return jnp.where(live, X, jnp.inf).min(axis=0), jnp.where(live, X, -jnp.inf).max(axis=0)


def own_optimum(rows: Rows, task: str, prior: jax.Array, most=ITERATIONS) -> tuple[jax.Array, jax.Array]:
    """The silo's ridge optimum, the base precision its ridge, and the precision of its noise (1 for classes).

    For least squares the ridge is one in standard units of the labels; what is returned is in the labels' own. The
    noise is 1 over the variance of the residuals, whose degrees of freedom count the features that some row shows.
    """
    nothing = jnp.zeros_like(prior)
    if task != "regression":
        return minimise(rows, task, jnp.diag(prior), nothing, nothing, most), jnp.ones((), prior.dtype)
    scale = label_scale(rows)
    standard = scale.standard(rows)
    theta = minimise(standard, task, jnp.diag(prior), nothing, nothing, most)
    residual = rows.weight @ jnp.square(rows.X @ theta - standard.y)
    shown = ((rows.X != 0) & (rows.weight > 0)[:, None]).any(axis=0)
    freedom = jnp.maximum(rows.weight.sum() - shown.sum(), 5)
    variance = jnp.maximum(residual / freedom, LEAST_NOISE) * jnp.square(scale.spread)
    return scale.raw(theta), 1 / variance


def summarise(rows: Rows, point: jax.Array, precision: jax.Array, task: str, share: Share) -> Summary:
    """The message of a silo: its losses to second order around a point."""
    gradient, H = derivatives(rows, point, task)
    gradient, H = gradient * precision, H * precision
    if share == "parameters":
        h = point
    else:
        curved = jnp.diag(H) * point if share == "diagonal" else H @ point
        h = curved - gradient
    loss = total_loss(rows, point, task) * precision if share in SEARCHING else jnp.zeros(0, h.dtype)
    return Summary(h, packed(H, share), rows.weight.sum(), loss)


def believed(said: Quadratic, n: jax.Array, reach: jax.Array) -> tuple[Quadratic, jax.Array]:
    """A message as it counts, and whether it could be what it claims; one that could not counts as nothing said.

    It must be finite, from some rows, its H without a negative direction (what rounding made negative is cut off), and
    with no more curvature than n rows that curve by `reach` each could give.
    """
    finite = jnp.isfinite(said.H).all() & jnp.isfinite(said.h).all() & jnp.isfinite(n)
    clean = jnp.where(finite, said.H, 0)
    trace = jnp.trace(clean)
    F = semidefinite(clean)
    H = F @ F.T
    upright = jnp.abs(H - clean).max() <= 1e-3 * jnp.maximum(trace, 1e-6)
    real = finite & (n > 0) & upright & (trace <= n * reach * (1 + 1e-3))
    return Quadratic(jnp.where(real, H, 0), jnp.where(real, said.h, 0)), real
