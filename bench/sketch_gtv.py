"""The sketch of task G: block-preconditioned conjugate gradients in single precision as two bare JAX programs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from confrere.networks import Network, Quadratic
from gtv_task import ALPHA

CHUNK = 1000


class Arrays(NamedTuple):
    """Blocks [j, n, i], neighbours in slots [K, n], degrees [n] and the right side [n, d]."""

    blocks: jax.Array
    neighbour: jax.Array
    degree: jax.Array
    b: jax.Array


def arrays(net: Network, quadratic: Quadratic) -> Arrays:
    """What the sketch began from: nodes in the order given, free slots naming the node itself."""
    A = net.adjacency()
    count = np.diff(A.indptr)
    receiver = np.repeat(np.arange(net.n), count)
    neighbour = np.repeat(np.arange(net.n, dtype=np.int32)[None], count.max(), axis=0)
    neighbour[np.arange(len(A.indices)) - A.indptr[receiver], receiver] = A.indices
    blocks = np.ascontiguousarray(quadratic.Q.astype(np.float32).transpose(2, 0, 1))
    given = blocks, neighbour, count.astype(np.float32), (-quadratic.q / 2).astype(np.float32)
    return Arrays(*map(jnp.asarray, given))


def products(Q: jax.Array, w: jax.Array) -> jax.Array:
    """Q_i w_i."""
    total = Q[0] * w[:, 0:1]
    for j in range(1, len(Q)):
        total = total + Q[j] * w[:, j : j + 1]
    return total


@jax.jit
def setup(blocks: jax.Array, degree: jax.Array) -> jax.Array:
    """The inverses of all blocks, by Gauss-Jordan in chunks."""
    d, n, _ = blocks.shape
    width = min(CHUNK, n)

    def one(given):
        M, g = given
        M = M.transpose(0, 2, 1) + ALPHA * g[None, None] * jnp.eye(d)[:, :, None]
        for k in range(d):
            pivot = 1 / M[k, k]
            row, column = M[k] * pivot, M[:, k]
            M = M - column[:, None] * row[None]
            M = M.at[k].set(row).at[:, k].set(-column * pivot).at[k, k].set(pivot)
        return M.transpose(0, 2, 1)

    chunks = blocks.reshape(d, n // width, width, d).transpose(1, 0, 2, 3), degree.reshape(n // width, width)
    return lax.map(one, chunks).transpose(1, 0, 2, 3).reshape(d, n, d)


@jax.jit
def solve(given: Arrays, inverse: jax.Array, iterations) -> jax.Array:
    """So many iterations from zero."""
    slots = len(given.neighbour)

    def times(w):
        gaps = slots * w
        for k in range(slots):
            gaps = gaps - w[given.neighbour[k]]
        return products(given.blocks, w) + ALPHA * gaps

    def step(_, state):
        w, r, p, rz = state
        q = times(p)
        a = rz / (p * q).sum()
        w, r = w + a * p, r - a * q
        z = products(inverse, r)
        new = (r * z).sum()
        return w, r, z + new / rz * p, new

    z = products(inverse, given.b)
    return lax.fori_loop(0, iterations, step, (jnp.zeros_like(z), given.b, z, (given.b * z).sum()))[0]
