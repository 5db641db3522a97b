"""Conjugate gradients that read one matrix per node and iteration instead of two.

With M_i = Q_i + coupling d_i + ridge as preconditioner, A = M - ridge - coupling (adjacency), so that for z = M^-1 r
and the next direction p = z + beta p_before

    A z = r - ridge z - coupling (adjacency) z,      A p = A z + beta A p_before:

only the inverses are read, about half of what an iteration moves through memory (as in S. C. Eisenstat, Efficient
implementation of a class of preconditioned conjugate gradient methods, 1981). What the recurrence loses to rounding
shows in the residual, which is computed from A itself in double precision at the end; where the coupling is far
stronger than the losses it would be most of it, and `conjugate` is used.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from confrere.networks import blocks
from confrere.networks.conjugate import Found, held_beside
from confrere.networks.layout import Layout
from confrere.networks.pieces import handed, in_pieces, room
from confrere.networks.posed import Posed

Norms = tuple[jax.Array, jax.Array]


class Quick(NamedTuple):
    """What iterations read: inverses [j, n, i], what they hold of the diagonal beside Q_i [n, d], coupling [d]."""

    inverse: jax.Array
    held: jax.Array
    layout: Layout
    coupling: jax.Array

    def times(self, r: jax.Array, z: jax.Array) -> jax.Array:
        """A z for z = M^-1 r."""
        return r - self.held * z + self.coupling * self.layout.differences(z)


def prepared(given: Posed, dtype: Any) -> Quick:
    """The preconditioner of a problem whose coupling is not stiff, in some precision: made piece by piece."""
    n, d, _ = given.Q.shape
    inverse, held = room((d, n, d), dtype), room((n, d), dtype)
    scale, strength, degree = (a.astype(dtype) for a in (given.scale, given.strength, given.degrees()))

    def work(part: slice) -> None:
        found = piece_inverses(given.matrices(part).astype(dtype), scale, strength, degree[part])
        inverse[:, part], held[part] = map(np.asarray, found)

    in_pieces(n, work)
    return Quick(handed(inverse), handed(held), given.layout(dtype), jax.device_put(strength))


@jax.jit
def piece_inverses(
    Q: jax.Array, scale: jax.Array, strength: jax.Array, degree: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Of some nodes: the inverses of their blocks [j, m, i], and what these hold on the diagonal beside Q_i [m, d]."""
    own = Q.transpose(1, 2, 0) * (scale[:, None] * scale)[:, :, None]
    diagonal = jnp.stack([own[k, k] for k in range(len(scale))])
    held = held_beside(diagonal, strength[:, None] * degree)
    return blocks.inverted(own, held).transpose(0, 2, 1), held.T


def squares(r: jax.Array, z: jax.Array) -> Norms:
    """Of a residual: its square in the norm of the preconditioner, and as it is."""
    return jnp.sum(r * z), jnp.sum(r * r)


@jax.jit
def norms(quick: Quick, r: jax.Array) -> Norms:
    """The same of a residual alone."""
    return squares(r, blocks.products(quick.inverse, r))


def share(found: Norms, whole: Norms) -> jax.Array:
    """What is left of the right side, the larger of both norms."""
    each = [jnp.sqrt(jnp.maximum(a, 0) / jnp.where(b > 0, b, 1)) for a, b in zip(found, whole, strict=True)]
    return jnp.maximum(*each)


left_share = jax.jit(lambda quick, r, whole: share(norms(quick, r), whole))


@jax.jit
def steps(quick: Quick, r: jax.Array, whole: Norms | None, tol, most) -> tuple[jax.Array, jax.Array]:
    """Steps from the residual r until the recurrence has tol of the right side: W [n, d], iterations.

    `whole`: the norms of the right side; None: they are those of r.
    """

    def step(state):
        W, r, z, p, Ap, beta, (rz, _), k = state
        p, Ap = z + beta * p, quick.times(r, z) + beta * Ap
        curvature = jnp.sum(p * Ap)
        a = jnp.where(curvature > 0, rz / jnp.where(curvature > 0, curvature, 1), 0)
        W, r = W + a * p, r - a * Ap
        z = blocks.products(quick.inverse, r)
        new = squares(r, z)
        return W, r, z, p, Ap, new[0] / jnp.where(rz > 0, rz, 1), new, k + 1

    z, zeros = blocks.products(quick.inverse, r), jnp.zeros_like(r)
    first = squares(r, z)

    def unfinished(state):
        _, _, _, _, _, _, left, k = state
        return (share(left, first if whole is None else whole) > tol) & (left[0] > 0) & (k < most)

    state = zeros, r, z, zeros, zeros, jnp.zeros((), r.dtype), first, jnp.int32(0)
    W, *_, k = lax.while_loop(unfinished, step, state)
    return W, k


def quick_gradients(
    given: Posed, quick: Quick, b: np.ndarray, start: np.ndarray | None, tol: float, most: int
) -> Found:
    """Iterate from `start` (None: zeros) as `conjugate_gradients` does; models and their residual are in double."""
    dtype = quick.inverse.dtype
    right = jnp.asarray(b, dtype)
    whole = norms(quick, right)
    first = right if start is None else jnp.asarray(b - given.times(start), dtype)
    found, k = steps(quick, first, whole, tol, most)
    W = np.asarray(found, float) if start is None else start + np.asarray(found, float)
    left = jnp.asarray(b - given.times(W), dtype)
    return Found(W, k, left_share(quick, left, whole))
