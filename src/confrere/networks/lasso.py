"""The network Lasso: GTVMin with the norm as penalty, which makes models of well-connected nodes equal.

    minimise sum_i w_i'Q_i w_i + q_i'w_i + alpha sum over edges of A_ij |w_i - w_j|

Hallac, Leskovec, Boyd: Network Lasso (2015). By a primal-dual method: a node moves against the forces u_e on its edges
and its own loss, an edge's force follows the difference of its two models and never exceeds alpha A_e,

    w_i <- argmin_w L_i(w) + |w - (w_i - t_i sum_e +-u_e)|^2 / (2 t_i),    u_e <- clip(u_e + s (2w - w_old)_ij)

with t_i = r/(edges of i), s = 1/(2r): Pock, Chambolle: Diagonal preconditioning for first order primal-dual algorithms
(2011). It needs no more than messages between neighbours.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.networks import blocks
from confrere.networks.network import Network
from confrere.networks.statistics import Quadratic


class Edges(NamedTuple):
    """The two ends of every edge [E] and the largest force on it."""

    i: jax.Array
    j: jax.Array
    limit: jax.Array

    def gaps(self, W: jax.Array) -> jax.Array:
        """w_i - w_j [E, d]."""
        return W[self.i] - W[self.j]

    def pull(self, u: jax.Array, n: int) -> jax.Array:
        """The forces on every node, added up [n, d]."""
        return jnp.zeros((n, u.shape[1]), u.dtype).at[self.i].add(u).at[self.j].add(-u)


class Nodes(NamedTuple):
    """What a node needs for its step: (2 Q_i + 1/t_i)^-1 as [j, n, i], q [n, d], and t [n]."""

    inverse: jax.Array
    q: jax.Array
    t: jax.Array


def clipped(u: jax.Array, limit: jax.Array) -> jax.Array:
    """Forces no longer than their limit."""
    size = jnp.sqrt(jnp.sum(u * u, axis=1))
    return u * jnp.where(size > limit, limit / jnp.where(size > 0, size, 1), 1)[:, None]


@jax.jit
def primal_dual(nodes: Nodes, edges: Edges, s, tol, most):
    """Iterate from zero until a step changes models and forces by less than tol of their size."""
    n, d = nodes.q.shape
    size = lambda a: jnp.sqrt(jnp.sum(a * a))  # noqa: E731

    def step(state):
        W, u, _, k = state
        moved = W - nodes.t[:, None] * edges.pull(u, n)
        new = blocks.products(nodes.inverse, moved / nodes.t[:, None] - nodes.q)
        force = clipped(u + s * edges.gaps(2 * new - W), edges.limit)
        change = size(new - W) / jnp.maximum(size(new), 1e-300) + size(force - u) / jnp.maximum(size(force), 1e-300)
        return new, force, change, k + 1

    begin = jnp.zeros((n, d), nodes.q.dtype), jnp.zeros((len(edges.i), d), nodes.q.dtype)
    state = (*begin, jnp.asarray(jnp.inf, nodes.q.dtype), jnp.int32(0))
    W, _, change, k = jax.lax.while_loop(lambda s: (s[2] > tol) & (s[3] < most), step, state)
    return W, change, k


def network_lasso(quadratic: Quadratic, network: Network, alpha: float, tol: float, most: int) -> np.ndarray:
    """The models [n, d], in double precision; stops when an iteration changes them by less than tol of their size."""
    count = np.bincount(network.edges.ravel(), minlength=network.n)
    curvature = 2 * np.trace(quadratic.Q, axis1=1, axis2=2).mean() / quadratic.q.shape[1]
    r = 1 / curvature if curvature > 0 else 1.0
    t = r / np.maximum(count, 1)
    with jax.enable_x64(True):
        held = 2 * quadratic.Q + np.eye(quadratic.q.shape[1]) / t[:, None, None]
        inverse = jax.jit(blocks.inverses)(jnp.asarray(blocks.laid_out(held)))
        nodes = Nodes(inverse, jnp.asarray(quadratic.q), jnp.asarray(t))
        i, j = map(jnp.asarray, network.edges.T)
        edges = Edges(i, j, jnp.asarray(alpha * network.weights))
        W, change, k = primal_dual(nodes, edges, 1 / (2 * r), tol, most)
        W, change = np.asarray(W), float(change)
    if not change <= tol:
        raise RuntimeError(f"after {int(k)} iterations a step still changes models by {change:.1e}, not {tol:.1e}")
    return W
