"""Products and inverses of one small matrix per node, laid out as [j, n, i]: rows of all nodes beside one another.

Unrolled over j, XLA turns them into plain vector code, several times as fast as a batched product on a CPU.
"""

import jax
import jax.numpy as jnp
import numpy as np

CHUNK = 2000  # nodes whose matrices fit in the cache together
UNROLLED = 32  # matrices larger than that are left to batched products


def laid_out(Q: np.ndarray) -> np.ndarray:
    """[n, d, d] as [j, n, i]."""
    return np.ascontiguousarray(Q.transpose(2, 0, 1))


def placed(Q: np.ndarray, dtype, order: np.ndarray | None = None) -> jax.Array:
    """Symmetric matrices like that in JAX, in some precision and, if asked for, with the nodes in another order."""
    given = np.asarray(Q, dtype)
    given = given if order is None else given.reshape(len(Q), -1)[order].reshape(Q.shape)
    return _rows_beside(given)


@jax.jit
def _rows_beside(Q: jax.Array) -> jax.Array:
    return Q.transpose(1, 0, 2)  # [i, n, j] is [j, n, i], and keeps rows together


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


def gauss_jordan(M: jax.Array) -> jax.Array:
    """The inverses of positive definite matrices [d, d, n], which need no pivoting."""
    for k in range(M.shape[0]):
        pivot = 1 / M[k, k]
        row, column = M[k] * pivot, M[:, k]
        M = M - column[:, None] * row[None]
        M = M.at[k].set(row)
        M = M.at[:, k].set(-column * pivot)
        M = M.at[k, k].set(pivot)
    return M
