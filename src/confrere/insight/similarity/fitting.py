"""Inside a silo: its own model and its gradients, for its rows as they are and for every draw of them.

    theta = argmin  mean loss + l2/2 t'A0t            (see `selection.linear`)
    g_r   = gradient of the mean loss at theta_r      theta_r: the points of a short run of all silos together

The common run is gradient descent from zero on the mean loss of all rows, with steps of 1 / (c mean |x|^2), which never
overshoot: c bounds the curvature of a loss by its score, 1/4 for two classes, 1/2 for more, 1 for amounts.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import QUICK_COMPILATION, Rows, losses, minimise, slopes
from confrere.selection.linear import Linear

ROUNDS = 10
AT_ONCE = 4_000_000  # numbers of weighted rows that are held side by side


def fits(rows: Rows, counts: np.ndarray, penalty: np.ndarray, task: str) -> np.ndarray:
    """The optimum for every draw [1 + B, D], given how often each row counts [1 + B, m]."""
    wide = np.zeros((len(counts), rows.X.shape[0]))
    wide[:, : counts.shape[1]] = counts
    at_once = max(1, AT_ONCE // max(rows.X.size, 1))
    return np.asarray(_fits(rows, wide, np.asarray(penalty), task, min(at_once, len(wide))))


@functools.partial(jax.jit, static_argnames=("task", "at_once"), compiler_options=QUICK_COMPILATION)
def _fits(rows: Rows, counts: jax.Array, penalty: jax.Array, task: str, at_once: int) -> jax.Array:
    def one(weight):
        A = jnp.diag(penalty) * weight.sum()
        nothing = jnp.zeros_like(penalty)
        return minimise(rows._replace(weight=weight), task, A, nothing, nothing)

    return jax.lax.map(one, counts, batch_size=at_once)


@functools.partial(jax.jit, static_argnames="task")
def row_gradients(rows: Rows, theta: jax.Array, task: str) -> jax.Array:
    """The gradient of every row's loss [m, D]."""
    first, _ = slopes(rows, rows.X @ theta.reshape(rows.X.shape[1], -1), task)
    return (rows.X[:, :, None] * first[:, None, :]).reshape(rows.X.shape[0], -1)


@functools.partial(jax.jit, static_argnames="task")
def losses_under(rows: Rows, thetas: jax.Array, task: str) -> jax.Array:
    """The losses of all rows under several models [k, D] -> [k, m]."""
    return jax.vmap(lambda t: losses(rows, rows.X @ t.reshape(rows.X.shape[1], -1), task))(thetas)


def common_run(data: Linear, who: list[int], counts: list[np.ndarray], rounds: int) -> list[np.ndarray]:
    """The gradients of every silo that takes part in every round of a common run, draw by draw [1 + B, rounds * D]."""
    sizes = [c.shape[1] for c in counts]
    rows = [data.of(i) for i in who]
    squares = [float(np.square(np.asarray(r.X)[:m]).sum()) for r, m in zip(rows, sizes, strict=True)]
    bound = {1: 1.0 if data.task == "regression" else 0.25}.get(len(data.penalty) // rows[0].X.shape[1], 0.5)
    step = sum(sizes) / (bound * sum(squares))
    theta = np.zeros_like(data.penalty)
    found: list[list[np.ndarray]] = [[] for _ in who]
    for _ in range(rounds):
        total = np.zeros_like(theta)
        for k, (own, m) in enumerate(zip(rows, sizes, strict=True)):
            each = np.asarray(row_gradients(own, theta, data.task))[:m]
            found[k].append(counts[k] @ each / m)
            total += m * found[k][-1][0]
        theta = theta - step * total / sum(sizes)
    return [np.concatenate(own, axis=1) for own in found]
