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
from confrere.networks.ranks import pseudo_inverses
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


def moved(nodes: Nodes, edges: Edges, s, W, u, gaps) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Models, forces and gaps along the edges after one step."""
    pulled = W - nodes.t[:, None] * edges.pull(u, W.shape[0])
    new = blocks.products(nodes.inverse, pulled / nodes.t[:, None] - nodes.q)
    after = edges.gaps(new)
    return new, clipped(u + s * (2 * after - gaps), edges.limit), after


@jax.jit
def primal_dual(nodes: Nodes, edges: Edges, s, tol, most):
    """Iterate from zero until a step changes models and forces by less than tol of their size."""
    n, d = nodes.q.shape
    size = lambda a: jnp.sqrt(jnp.sum(a * a))  # noqa: E731

    def step(state):
        W, u, gaps, _, k = state
        new, force, gaps = moved(nodes, edges, s, W, u, gaps)
        change = size(new - W) / jnp.maximum(size(new), 1e-300) + size(force - u) / jnp.maximum(size(force), 1e-300)
        return new, force, gaps, change, k + 1

    nothing = jnp.zeros((len(edges.i), d), nodes.q.dtype)
    begin = jnp.zeros((n, d), nodes.q.dtype), nothing, nothing
    state = (*begin, jnp.asarray(jnp.inf, nodes.q.dtype), jnp.int32(0))
    W, _, _, change, k = jax.lax.while_loop(lambda s: (s[3] > tol) & (s[4] < most), step, state)
    return W, change, k


def parts_of(quadratic: Quadratic, network: Network, alpha: float, dtype) -> tuple[Nodes, Edges, float]:
    """What nodes and edges need for their steps, and the step s of forces."""
    d = quadratic.q.shape[1]
    count = np.bincount(network.edges.ravel(), minlength=network.n)
    curvature = 2 * np.trace(quadratic.Q, axis1=1, axis2=2).mean() / d
    r = 1 / curvature if curvature > 0 else 1.0
    t = r / np.maximum(count, 1)
    held = 2 * quadratic.Q + np.eye(d) / t[:, None, None]
    inverse = blocks.laid_out(pseudo_inverses(held))
    i, j = map(jnp.asarray, network.edges.T)
    nodes = Nodes(*(jnp.asarray(a, dtype) for a in (inverse, quadratic.q, t)))
    return nodes, Edges(i, j, jnp.asarray(alpha * network.weights, dtype)), 1 / (2 * r)


def solution(quadratic: Quadratic, network: Network, alpha: float, tol: float, most: int) -> np.ndarray:
    """The models [n, d], in double precision; stops when an iteration changes them by less than tol of their size."""
    with jax.enable_x64(True):
        nodes, edges, s = parts_of(quadratic, network, alpha, jnp.float64)
        W, change, k = primal_dual(nodes, edges, s, tol, most)
        W, change = np.asarray(W), float(change)
    if not change <= tol:
        raise RuntimeError(f"after {int(k)} iterations a step still changes models by {change:.1e}, not {tol:.1e}")
    return W
