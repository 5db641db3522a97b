"""Products and inverses of one small matrix per node, laid out as [j, n, i]: rows of all nodes beside one another.

Unrolled over j, XLA turns them into plain vector code, several times as fast as a batched product on a CPU.
"""

import jax
import jax.numpy as jnp
import numpy as np

from confrere.networks.pieces import handed, in_pieces, room

CHUNK = 1000  # nodes whose matrices fit in the cache together
UNROLLED = 32  # matrices larger than that are left to batched products


def laid_out(Q: np.ndarray) -> np.ndarray:
    """[n, d, d] as [j, n, i]."""
    return np.ascontiguousarray(Q.transpose(2, 0, 1))


def placed(Q: np.ndarray, dtype, order: np.ndarray | None = None) -> jax.Array:
    """Symmetric matrices like that in JAX, in some precision and, if asked for, with the nodes in another order."""
    n, d, _ = Q.shape
    made = room((d, n, d), dtype)

    def work(part: slice) -> None:
        piece = (Q[part] if order is None else Q[order[part]]).astype(dtype)
        made[:, part] = piece.transpose(1, 0, 2)  # [i, n, j] is [j, n, i], and keeps rows together

    in_pieces(n, work)
    return handed(made)


def diagonals(blocks: jax.Array) -> jax.Array:
    """The diagonals of all matrices [n, d]; entry by entry, where a batched sum would go through all of them."""
    return jnp.stack([blocks[k, :, k] for k in range(blocks.shape[0])], axis=1)


def products(blocks: jax.Array, W: jax.Array) -> jax.Array:
    """Q_i w_i for every node, [n, d]."""
    d = blocks.shape[0]
    if d > UNROLLED:
        return jnp.einsum("jni,nj->ni", blocks, W)
    total = blocks[0] * W[:, 0:1]
    for j in range(1, d):
        total = total + blocks[j] * W[:, j : j + 1]
    return total


def inverses(blocks: jax.Array) -> jax.Array:
    """The inverses of positive definite matrices, [j, n, i] like themselves."""
    d, n, _ = blocks.shape
    if d > UNROLLED:
        return jnp.linalg.inv(blocks.transpose(1, 2, 0)).transpose(2, 0, 1)
    width = min(CHUNK, n)
    count = -(-n // width)
    spare = jnp.broadcast_to(jnp.eye(d, dtype=blocks.dtype)[:, None], (d, count * width - n, d))
    chunks = jnp.concatenate([blocks, spare], axis=1).reshape(d, count, width, d).transpose(1, 0, 3, 2)
    done = jax.lax.map(gauss_jordan, chunks)  # [count, d, d, width]
    return done.transpose(1, 0, 3, 2).reshape(d, count * width, d)[:, :n]


def inverted(M: jax.Array, more: jax.Array) -> jax.Array:
    """The inverses of positive definite matrices [d, d, n] to whose diagonals `more` [d, n] is added."""
    if len(M) > UNROLLED:
        whole = M + jnp.eye(len(M), dtype=M.dtype)[:, :, None] * more
        return jnp.linalg.inv(whole.transpose(2, 0, 1)).transpose(1, 2, 0)
    return gauss_jordan(M, more)


def gauss_jordan(M: jax.Array, more: jax.Array | None = None) -> jax.Array:
    """The inverses of positive definite matrices [d, d, n], which need no pivoting; `more` [d, n] adds to diagonals."""
    for k in range(M.shape[0]):
        pivot = 1 / (M[k, k] if more is None else M[k, k] + more[k])
        row, column = M[k] * pivot, M[:, k]
        M = M - column[:, None] * row[None]
        M = M.at[k].set(row)
        M = M.at[:, k].set(-column * pivot)
        M = M.at[k, k].set(pivot)
    return M


def pivots(M: jax.Array) -> jax.Array:
    """The pivots [d, n] of elimination in symmetric matrices [d, d, n]: all above 0 if they are positive definite."""
    found = [M[0, 0]]
    while len(M) > 1:
        rest = M[1:, 1:] - M[1:, :1] * (M[:1, 1:] / M[0, 0])
        M = jax.lax.optimization_barrier(rest)  # else every pivot would be computed from the beginning
        found.append(M[0, 0])
    return jnp.stack(found)
