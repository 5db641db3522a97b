"""Cholesky factors of small matrices, and what is solved with them, without LAPACK.

The batched LAPACK calls of jaxlib 0.10 on the CPU hand their work to the pool of threads they themselves run on, and
wait for it: as soon as there are as many of them at once as there are threads, all wait for ever (seen with two
threads, nine silos and 20 features). The matrices here are small and many: a loop over columns, all at once, will do.
"""

import jax
import jax.numpy as jnp


@jax.jit
def cholesky(A: jax.Array) -> jax.Array:
    """The lower factor of a positive definite matrix [D, D]; not finite if it is none.

    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    place = jnp.arange(A.shape[0])

    def column(j, L):
        rest = A[:, j] - L @ L[j]
        return L.at[:, j].set(jnp.where(place >= j, rest / jnp.sqrt(rest[j]), 0))

    return jax.lax.fori_loop(0, A.shape[0], column, jnp.zeros_like(A))


@jax.jit
def forward(L: jax.Array, b: jax.Array) -> jax.Array:
    """L^-1 b for a lower triangle L and b [D] or [D, k].

    >>> forward(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([4.0, 3.0])).tolist()
    [2.0, 1.0]
    """
    row = lambda j, x: x.at[j].set((b[j] - L[j] @ x) / L[j, j])  # noqa: E731
    return jax.lax.fori_loop(0, L.shape[0], row, jnp.zeros_like(b))


@jax.jit
def backward(L: jax.Array, b: jax.Array) -> jax.Array:
    """L'^-1 b for a lower triangle L and b [D] or [D, k].

    >>> backward(jnp.array([[2.0, 0.0], [1.0, 1.0]]), jnp.array([5.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    last = L.shape[0] - 1

    def row(i, x):
        j = last - i
        return x.at[j].set((b[j] - L[:, j] @ x) / L[j, j])

    return jax.lax.fori_loop(0, L.shape[0], row, jnp.zeros_like(b))


@jax.jit
def semidefinite(A: jax.Array) -> jax.Array:
    """F with F F' = A for an A [D, D] without a negative direction; what rounding alone could have left is nothing.

    >>> semidefinite(jnp.array([[4.0, 2.0], [2.0, 1.0]])).tolist()
    [[2.0, 0.0], [1.0, 0.0]]
    """
    D = A.shape[0]
    place, least = jnp.arange(D), 8 * D * jnp.finfo(A.dtype).eps * jnp.diag(A)

    def column(j, F):
        rest = A[:, j] - F @ F[j]
        there = rest[j] > least[j]
        return F.at[:, j].set(jnp.where((place >= j) & there, rest / jnp.sqrt(jnp.where(there, rest[j], 1)), 0))

    return jax.lax.fori_loop(0, D, column, jnp.zeros_like(A))


def scaled(A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(L, s) with L L' = s A s, whose diagonal is 1, for a positive definite A.

    Features of any scale keep their digits so. What rounding leaves uncertain is added to the diagonal: Cholesky's
    method then succeeds also where columns are copies of one another, or a message is forged.
    """
    D = A.shape[0]
    s = jax.lax.rsqrt(jnp.maximum(jnp.diag(A), jnp.finfo(A.dtype).tiny))
    uncertain = 4 * D * jnp.finfo(A.dtype).eps
    return cholesky(s[:, None] * A * s + uncertain * jnp.eye(D, dtype=A.dtype)), s


@jax.jit
def solve(A: jax.Array, b: jax.Array) -> jax.Array:
    """A^-1 b for a positive definite A and b [D] or [D, k], to rounding."""
    L, s = scaled(A)
    across = s.reshape(-1, *(1,) * (b.ndim - 1))
    return across * backward(L, forward(L, across * b))
