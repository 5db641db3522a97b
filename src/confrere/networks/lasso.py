"""The network Lasso: GTVMin with the norm as penalty, which makes models of well-connected nodes equal.

    minimise sum_i w_i'Q_i w_i + q_i'w_i + alpha sum over edges of A_ij |w_i - w_j|

Hallac, Leskovec, Boyd: Network Lasso (2015). Up to some size by Newton steps, exactly (`fused`). In large networks, and
as a loop, by a primal-dual method: a node moves against the forces u_e on its edges and its own loss, an edge's force
follows the difference of its two models and never exceeds alpha A_e,

    w_i <- argmin_w L_i(w) + |w - (w_i - t_i sum_e +-u_e)|^2 / (2 t_i),    u_e <- clip(u_e + s_e (2w - w_old)_ij)

with t_i = 1/(sum of c_e over the edges of i), s_e = c_e/2 for any c_e above 0, here the geometric mean of both ends'
curvatures: Pock, Chambolle: Diagonal preconditioning for first order primal-dual algorithms (2011). It needs no more
than messages between neighbours.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.networks import blocks
from confrere.networks.free import least_norm
from confrere.networks.fused import Found, minimum
from confrere.networks.network import Network
from confrere.networks.optimality import Coupled, missed_by, sizes_of
from confrere.networks.posed import scales_of
from confrere.networks.ranks import pseudo_inverses
from confrere.networks.statistics import Quadratic

FACTORED = 50_000  # unknowns up to which a factor of their matrix is made, for Newton steps
CHUNK = 500  # primal-dual steps after which it is looked at what they miss


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
def steps(nodes: Nodes, edges: Edges, s, state, count):
    """So many primal-dual steps from models, forces and gaps."""
    return jax.lax.fori_loop(0, count, lambda _, state: moved(nodes, edges, s, *state), state)


def parts_of(quadratic: Quadratic, network: Network, alpha: float, dtype) -> tuple[Nodes, Edges, jax.Array]:
    """What nodes and edges need for their steps, and the steps s of forces [E, 1]."""
    (n, d), (i, j) = quadratic.q.shape, network.edges.T
    curvature = 2 * np.trace(quadratic.Q, axis1=1, axis2=2) / d
    mean = curvature.mean() if curvature.any() else 1.0
    curvature = np.where(curvature > 0, curvature, mean)
    c = np.sqrt(curvature[i] * curvature[j])
    total = np.bincount(i, c, n) + np.bincount(j, c, n)
    t = 1 / np.where(total > 0, total, curvature)
    inverse = blocks.laid_out(pseudo_inverses(2 * quadratic.Q + np.eye(d) / t[:, None, None]))
    nodes = Nodes(*(jnp.asarray(a, dtype) for a in (inverse, quadratic.q, t)))
    edges = Edges(jnp.asarray(i), jnp.asarray(j), jnp.asarray(alpha * network.weights, dtype))
    return nodes, edges, jnp.asarray(c[:, None] / 2, dtype)


def coupled_of(quadratic: Quadratic, network: Network, alpha: float) -> tuple[Coupled, np.ndarray]:
    """The problem on the host, and the component of every node: without coupling each is one by itself."""
    i, j = network.edges.T if alpha > 0 else np.zeros((2, 0), int)
    limit = alpha * network.weights[: len(i)]
    return Coupled(quadratic.Q, quadratic.q, i, j, limit), network.labels if alpha > 0 else np.arange(network.n)


def by_steps(
    p: Coupled, quadratic: Quadratic, network: Network, alpha: float, start: np.ndarray | None, tol: float, most: int
) -> tuple[Found, int]:
    """Primal-dual steps until the conditions of optimality are missed by no more than tol."""
    W, count = np.zeros(p.q.shape) if start is None else start, 0
    found = Found(W, np.zeros((len(p.i), p.q.shape[1])), np.inf)
    with jax.enable_x64(True):
        given = parts_of(quadratic, network, alpha, jnp.float64)
        state = tuple(map(jnp.asarray, (W, found.u, p.gaps(W))))
        while count < most and found.missed > tol:
            more = min(CHUNK, most - count)
            state, count = steps(*given, state, more), count + more
            W, u = np.asarray(state[0]), np.asarray(state[1])
            found = Found(W, u, missed_by(p, sizes_of(p, scales_of(p.Q), W), W, u))
    return found, count


def solution(
    quadratic: Quadratic, network: Network, alpha: float, tol: float, most: int, start: np.ndarray | None = None
) -> np.ndarray:
    """The models [n, d], in double precision, that miss the conditions of optimality (`missed_by`) by at most tol."""
    p, labels = coupled_of(quadratic, network, alpha)
    if p.q.size <= FACTORED or not len(p.i):
        found, count = minimum(p, scales_of(p.Q), labels, start, tol, most)
    else:
        found, count = by_steps(p, quadratic, network, alpha, start, tol, most)
    if not found.missed <= tol:
        raise RuntimeError(
            f"after {count} iterations the conditions of optimality are missed by {found.missed:.1e}, not {tol:.1e}: "
            "give a larger tol or `most`"
        )
    return least_norm(found.W, quadratic, network, np.full(p.q.shape[1], alpha))
