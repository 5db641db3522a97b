"""Conjugate gradients over a network: (Q_i + coupling L) W = b, preconditioned by the block of every node.

The block of node i is Q_i + coupling d_i, so that one step solves for every node with its neighbours held. A millionth
of its diagonal is added, by which blocks of nodes without rows or with too few can be inverted too; this changes the
way, not where it leads. Where the coupling is by far the larger part, models of a component hardly move against one
another, and a step for all of them together is added (`Common`): without it their common part would take as many
iterations, and lose as many digits, as the coupling is larger.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.networks import blocks
from confrere.networks.layout import Layout

RIDGE = 1e-6


class Common(NamedTuple):
    """A step of whole components: the component of every node [n] (None: there is one), and inverses [C, d, d]."""

    labels: jax.Array | None
    inverse: jax.Array

    def step(self, r: jax.Array) -> jax.Array:
        """For every component the step that its nodes would take as one, [n, d] or [1, d]."""
        if self.labels is None:
            return (r.sum(axis=0) @ self.inverse[0])[None]
        total = jax.ops.segment_sum(r, self.labels, self.inverse.shape[0])
        return jnp.einsum("ci,cij->cj", total, self.inverse)[self.labels]


class System(NamedTuple):
    """The left side, of features times `scale` [d]: blocks [j, n, i] of features as they are, the network, and the
    strength of the coupling of every scaled coordinate [d]."""

    blocks: jax.Array
    layout: Layout
    coupling: jax.Array
    scale: jax.Array
    common: Common | None

    def times(self, W: jax.Array) -> jax.Array:
        """(Q_i + coupling L) W, [n, d]."""
        own = self.scale * blocks.products(self.blocks, self.scale * W)
        return own + self.coupling * self.layout.differences(W)


class Found(NamedTuple):
    """Where the iterations ended: models [n, d], their number, and what is left of the right side, as a share of it."""

    W: jax.Array
    iterations: jax.Array
    residual: jax.Array


def preconditioner(system: System) -> jax.Array:
    """The inverses of all nodes' blocks, [j, n, i]."""
    d, _, _ = system.blocks.shape
    own = jnp.eye(d, dtype=system.blocks.dtype)[:, None, :]
    held = system.blocks * system.scale[:, None, None] * system.scale
    held = held + own * (system.coupling * system.layout.degree[:, None])[None]
    size = jnp.einsum("jnj->nj", held)
    return blocks.inverses(held + own * jnp.where(size > 0, RIDGE * size, 1)[None])


def norm(a: jax.Array) -> jax.Array:
    """The Euclidean norm of all numbers together."""
    return jnp.sqrt(jnp.sum(a * a))


@jax.jit
def conjugate_gradients(system: System, b: jax.Array, whole: jax.Array, tol, most) -> Found:
    """Iterate from zero until what is left of b is tol of `whole`, or `most` times; b must be in the range of A.

    Both are measured in the norm of the preconditioner, and as they are if there is no step of whole components: with
    it the coupling is so large that rounding of the models alone leaves more.
    """
    inverse = preconditioner(system)

    def moved(r):
        z = blocks.products(inverse, r)
        return z if system.common is None else z + system.common.step(r)

    weighed, plain = jnp.sqrt(jnp.sum(whole * moved(whole))), norm(whole)

    def share(r, rz):
        left = jnp.sqrt(jnp.maximum(rz, 0)) / jnp.where(weighed > 0, weighed, 1)
        return left if system.common is not None else jnp.maximum(left, norm(r) / jnp.where(plain > 0, plain, 1))

    def step(state):
        W, r, p, rz, k = state
        Ap = system.times(p)
        curvature = jnp.sum(p * Ap)
        a = jnp.where(curvature > 0, rz / jnp.where(curvature > 0, curvature, 1), 0)
        r = r - a * Ap
        z = moved(r)
        new = jnp.sum(r * z)
        return W + a * p, r, z + new / jnp.where(rz > 0, rz, 1) * p, new, k + 1

    def unfinished(state):
        _, r, _, rz, k = state
        return (share(r, rz) > tol) & (rz > 0) & (k < most)

    z = moved(b)
    state = (jnp.zeros_like(b), b, z, jnp.sum(b * z), jnp.int32(0))
    W, r, _, rz, k = jax.lax.while_loop(unfinished, step, state)
    return Found(W, k, share(r, rz))


@jax.jit
def left(system: System, b: jax.Array, W: jax.Array) -> jax.Array:
    """b - AW."""
    return b - system.times(W)
