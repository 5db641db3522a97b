"""Conjugate gradients over a network: (Q_i + coupling L) W = b, preconditioned by the block of every node.

The block of node i is Q_i + coupling d_i, so that one step solves for every node with its neighbours held. A little
of its diagonal is added, by which blocks of nodes without rows or with too few can be inverted too; this changes the
way, not where it leads. Where the coupling is by far the larger part, models of a component hardly move against one
another, and a step for all of them together is added (`Common`): without it their common part would take as many
iterations, and lose as many digits, as the coupling is larger.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from confrere.networks import blocks

RIDGE = {4: 3e-5, 8: 1e-6}  # of the diagonal, by bytes of a number

ROUNDED = 1e-10  # a residual from which it may be rounding that keeps it from becoming smaller,
PATIENCE = 500  # if it has not for so many iterations

Best = tuple[jax.Array, jax.Array, jax.Array]  # models, what they leave, and the iteration that found them
Total = Callable[[jax.Array], jax.Array]  # adds up sums over the nodes that are here, where others are elsewhere


def alone(sums: jax.Array) -> jax.Array:
    """Sums over all nodes, where all are here."""
    return sums


class Couples(Protocol):
    """A network in JAX, whole (`Layout`) or one shard of it (`Halo`)."""

    @property
    def degree(self) -> jax.Array:
        """The weight of every node's edges [n]."""
        ...

    def differences(self, W: jax.Array) -> jax.Array:
        """L W, [n, d]."""
        ...


class Common(NamedTuple):
    """A step of whole components: the component of every node [n] (None: there is one), and inverses [C, d, d]."""

    labels: jax.Array | None
    inverse: jax.Array

    def step(self, r: jax.Array, total: Total) -> jax.Array:
        """For every component the step that its nodes would take as one, [n, d] or [1, d]."""
        if self.labels is None:
            return (total(r.sum(axis=0)) @ self.inverse[0])[None]
        sums = total(jax.ops.segment_sum(r, self.labels, self.inverse.shape[0]))
        return jnp.einsum("ci,cij->cj", sums, self.inverse)[self.labels]


class System(NamedTuple):
    """The left side, of features times `scale` [d]: blocks [j, n, i] of features as they are, the network, and the
    strength of the coupling of every scaled coordinate [d]."""

    blocks: jax.Array
    layout: Couples
    coupling: jax.Array
    scale: jax.Array
    common: Common | None

    def times(self, W: jax.Array) -> jax.Array:
        """(Q_i + coupling L) W, [n, d]."""
        own = self.scale * blocks.products(self.blocks, self.scale * W)
        return own + self.coupling * self.layout.differences(W)


class Found(NamedTuple):
    """Where the iterations ended: models [n, d], their number, and what is left of the right side, as a share of it."""

    W: Any
    iterations: jax.Array
    residual: jax.Array


@jax.jit
def preconditioner(system: System) -> jax.Array:
    """The inverses of all nodes' blocks, [j, n, i]."""
    own = system.blocks * system.scale[:, None, None] * system.scale
    return blocks.inverses(own + jnp.eye(len(own), dtype=own.dtype)[:, None] * held_diagonal(system)[None])


def held_diagonal(system: System) -> jax.Array:
    """What nodes' blocks have on their diagonals beside Q_i, [n, d]."""
    pull = system.coupling * system.layout.degree[:, None]
    return held_beside(blocks.diagonals(system.blocks) * system.scale**2, pull)


def held_beside(diagonal: jax.Array, pull: jax.Array) -> jax.Array:
    """Beside the diagonals of Q_i: the pull of neighbours, coupling d_i, and what makes blocks invertible."""
    whole = diagonal + pull
    return pull + jnp.where(whole > 0, RIDGE[whole.dtype.itemsize] * whole, 1)


def better(best: Best, W: jax.Array, left: jax.Array, k: jax.Array) -> Best:
    """The models that leave less, the earlier ones or these of iteration k."""
    less = left < best[1]
    return jnp.where(less, W, best[0]), jnp.where(less, left, best[1]), jnp.where(less, k, best[2])


def iterate(
    system: System, inverse: jax.Array, b: jax.Array, start: jax.Array, tol, most, total: Total = alone
) -> Found:
    """Iterate from `start` until what is left of b is tol of it, or `most` times; b must be in the range of A.

    Where rounding leaves more than tol, and worse the longer it goes on, the models are those that left least; it ends
    when none were better for long.

    Both are measured in the norm of the preconditioner, and as they are if there is no step of whole components: with
    it the coupling is so large that rounding of the models alone leaves more. `inverse` is the preconditioner.
    """

    def moved(r):
        z = blocks.products(inverse, r)
        return z if system.common is None else z + system.common.step(r, total)

    def squares(r, z):
        rz, rr = total(jnp.stack([jnp.sum(r * z), jnp.sum(r * r)]))
        return rz, rr

    (weighed, plain), start = lax.optimization_barrier((squares(b, moved(b)), start))  # one exchange at a time

    def share(rz, rr):
        left = jnp.sqrt(jnp.maximum(rz, 0) / jnp.where(weighed > 0, weighed, 1))
        return left if system.common is not None else jnp.maximum(left, jnp.sqrt(rr / jnp.where(plain > 0, plain, 1)))

    def step(state):
        (W, r, p, rz, _, k), best = state
        Ap = system.times(p)
        curvature = total(jnp.sum(p * Ap))
        a = jnp.where(curvature > 0, rz / jnp.where(curvature > 0, curvature, 1), 0)
        r = r - a * Ap
        z = moved(r)
        W, (new, rr) = W + a * p, squares(r, z)
        return (W, r, z + new / jnp.where(rz > 0, rz, 1) * p, new, rr, k + 1), better(best, W, share(new, rr), k + 1)

    def unfinished(state):
        (_, _, _, rz, rr, k), (_, least, since) = state
        stagnant = (least < ROUNDED) & (k - since > PATIENCE)
        return (share(rz, rr) > tol) & (rz > 0) & (k < most) & ~stagnant

    r = b - system.times(start)
    z = moved(r)
    first, none = squares(r, z), jnp.zeros_like(b)
    state = (none, r, z, *first, jnp.int32(0)), (none, share(*first), jnp.int32(0))
    (*_, k), (W, least, _) = lax.while_loop(unfinished, step, state)
    return Found(start + W, k, least)


conjugate_gradients = jax.jit(iterate, static_argnames="total")
