"""Conjugate gradients over a network: (Q_i + coupling L) W = b, preconditioned by the block of every node.

The block of node i is Q_i + coupling d_i, so that one step solves for every node with its neighbours held. A millionth
of its size is added, by which blocks of nodes without rows or with too few can be inverted too; this changes the way,
not where it leads.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.networks import blocks
from confrere.networks.layout import Layout

RIDGE = 1e-6


class System(NamedTuple):
    """The left side: blocks [j, n, i], the network, and the strength of the coupling of every coordinate [d]."""

    blocks: jax.Array
    layout: Layout
    coupling: jax.Array

    def times(self, W: jax.Array) -> jax.Array:
        """(Q_i + coupling L) W, [n, d]."""
        return blocks.products(self.blocks, W) + self.coupling * self.layout.differences(W)


class Found(NamedTuple):
    """Where the iterations ended: models [n, d], their number, and the norm of what is left, |b - AW|."""

    W: jax.Array
    iterations: jax.Array
    residual: jax.Array


def preconditioner(system: System) -> jax.Array:
    """The inverses of all nodes' blocks, [j, n, i]."""
    d, _, _ = system.blocks.shape
    own = jnp.eye(d, dtype=system.blocks.dtype)[:, None, :]
    held = system.blocks + own * (system.coupling * system.layout.degree[:, None])[None]
    size = jnp.einsum("jnj->n", held) / d
    return blocks.inverses(held + own * jnp.where(size > 0, RIDGE * size, 1)[None, :, None])


def norm(a: jax.Array) -> jax.Array:
    """The Euclidean norm of all numbers together."""
    return jnp.sqrt(jnp.sum(a * a))


@jax.jit
def conjugate_gradients(system: System, b: jax.Array, goal, most) -> Found:
    """Iterate from zero until |b - AW| <= goal, or `most` times; b must be in the range of A."""
    inverse = preconditioner(system)

    def step(state):
        W, r, p, rz, k = state
        Ap = system.times(p)
        curvature = jnp.sum(p * Ap)
        a = jnp.where(curvature > 0, rz / jnp.where(curvature > 0, curvature, 1), 0)
        r = r - a * Ap
        z = blocks.products(inverse, r)
        new = jnp.sum(r * z)
        return W + a * p, r, z + new / jnp.where(rz > 0, rz, 1) * p, new, k + 1

    def unfinished(state):
        return (norm(state[1]) > goal) & (state[3] > 0) & (state[4] < most)

    z = blocks.products(inverse, b)
    state = (jnp.zeros_like(b), b, z, jnp.sum(b * z), jnp.int32(0))
    W, r, _, _, k = jax.lax.while_loop(unfinished, step, state)
    return Found(W, k, norm(r))


@jax.jit
def left(system: System, b: jax.Array, W: jax.Array) -> jax.Array:
    """b - AW."""
    return b - system.times(W)
