"""Conjugate gradients that read one matrix per node and iteration instead of two.

With M_i = Q_i + coupling d_i + ridge as preconditioner, A = M - ridge - coupling (adjacency), so that for z = M^-1 r
and the next direction p = z + beta p_before

    A z = r - ridge z - coupling (adjacency) z,      A p = A z + beta A p_before:

only the inverses are read, about half of what an iteration moves through memory (as in S. C. Eisenstat, Efficient
implementation of a class of preconditioned conjugate gradient methods, 1981). What the recurrence loses to rounding
shows in the residual, which is computed from A itself at the end; where the coupling is far stronger than the losses it
would be most of it, and `conjugate` is used.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from confrere.networks import blocks
from confrere.networks.conjugate import Couples, Found, System, held_diagonal, preconditioner
from confrere.networks.pieces import PIECE, handed, in_pieces, room


class Quick(NamedTuple):
    """What iterations read: inverses [j, n, i], what they hold of the diagonal beside Q_i [n, d], coupling [d]."""

    inverse: jax.Array
    held: jax.Array
    layout: Couples
    coupling: jax.Array

    def times(self, r: jax.Array, z: jax.Array) -> jax.Array:
        """A z for z = M^-1 r."""
        return r - self.held * z + self.coupling * self.layout.differences(z)


def prepared(system: System) -> Quick:
    """The preconditioner of a system whose coupling is not stiff."""
    held = diagonal_of(system)
    return Quick(inverses_of(system, held), held, system.layout, system.coupling)


diagonal_of = jax.jit(held_diagonal)


def inverses_of(system: System, held: jax.Array) -> jax.Array:
    """`preconditioner(system)`; on CPUs piece by piece."""
    d, n, _ = system.blocks.shape
    if n <= PIECE or d > blocks.UNROLLED or jax.default_backend() != "cpu":
        return preconditioner(system)
    given, more = np.asarray(system.blocks), np.asarray(held)
    made = room(given.shape, given.dtype)

    def work(part: slice) -> None:
        found = piece_inverses(np.ascontiguousarray(given[:, part]), system.scale, more[part])
        made[:, part] = np.asarray(found)

    in_pieces(n, work)
    return handed(made)


@jax.jit
def piece_inverses(given: jax.Array, scale: jax.Array, held: jax.Array) -> jax.Array:
    """The inverses of some nodes' blocks with what is held, [j, n, i]."""
    own = given.transpose(0, 2, 1) * (scale[:, None] * scale)[:, :, None]
    return blocks.gauss_jordan(own, held.T).transpose(0, 2, 1)


@jax.jit
def left_of(system: System, b: jax.Array, W: jax.Array) -> jax.Array:
    """b - A W."""
    return b - system.times(W)


weighed = jax.jit(blocks.products)


@jax.jit
def squares(r: jax.Array, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a residual: its square in the norm of the preconditioner, and as it is."""
    return jnp.sum(r * z), jnp.sum(r * r)


def share(found: tuple[jax.Array, jax.Array], whole: tuple[jax.Array, jax.Array]) -> jax.Array:
    """What is left of the right side, the larger of both norms."""
    each = [jnp.sqrt(jnp.maximum(a, 0) / jnp.where(b > 0, b, 1)) for a, b in zip(found, whole, strict=True)]
    return jnp.maximum(*each)


@jax.jit
def steps(quick: Quick, r: jax.Array, z: jax.Array, whole: tuple[jax.Array, jax.Array], tol, most):
    """Steps from the residual r, z = M^-1 r, until the recurrence has tol of the right side: W [n, d], iterations."""

    def step(state):
        W, r, p, Ap, (rz, _), k = state
        curvature = jnp.sum(p * Ap)
        a = jnp.where(curvature > 0, rz / jnp.where(curvature > 0, curvature, 1), 0)
        r = r - a * Ap
        z = blocks.products(quick.inverse, r)
        new = squares(r, z)
        b = new[0] / jnp.where(rz > 0, rz, 1)
        return W + a * p, r, z + b * p, quick.times(r, z) + b * Ap, new, k + 1

    def unfinished(state):
        return (share(state[4], whole) > tol) & (state[4][0] > 0) & (state[5] < most)

    state = jnp.zeros_like(r), r, z, quick.times(r, z), squares(r, z), jnp.int32(0)
    W, _, _, _, _, k = lax.while_loop(unfinished, step, state)
    return W, k


def quick_gradients(
    system: System, quick: Quick, b: jax.Array, start: jax.Array | None, tol: float, most: int
) -> Found:
    """Iterate from `start` (None: zeros) as `conjugate_gradients` does; the residual is that of the models found."""
    whole = squares(b, weighed(quick.inverse, b))
    r = b if start is None else left_of(system, b, start)
    W, k = steps(quick, r, weighed(quick.inverse, r), whole, tol, most)
    W = W if start is None else start + W
    r = left_of(system, b, W)
    return Found(W, k, share(squares(r, weighed(quick.inverse, r)), whole))
