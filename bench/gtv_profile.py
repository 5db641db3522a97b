"""Task G: the parts of our setup and of one of our iterations as functions to time, each by itself."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import gtv_task
from confrere.networks import GTVMin, Network, Quadratic, blocks
from confrere.networks.layout import in_precision, lay_out
from confrere.networks.posed import Posed, posed
from confrere.networks.quick import Quick, prepared

SETUP, ITERATION = "setup: ", "iteration: "
LOOP = 10  # of every part of an iteration in one call


def setup_parts(given: Posed, quadratic: Quadratic, dtype: Any) -> dict[str, Callable[[], Any]]:
    """What setup does, one after the other; `given` has all that is made on the way."""
    net, order = given.network, given.order
    matrix = net.adjacency()
    parts = {
        "checks": lambda: GTVMin(net, quadratic, alpha=gtv_task.ALPHA),
        "matrix and order of the nodes": lambda: ordered(fresh(net), order is not None),
        "slots for neighbours": lambda: in_precision(lay_out(matrix, order), dtype),
        "scales and right side": lambda: posed(quadratic, net, given.strength).right_side(quadratic.q),
        "inverses of all blocks": lambda: prepared(given, dtype),
    }
    return {SETUP + name: run for name, run in parts.items()}


def fresh(net: Network) -> Network:
    """The network without anything that it keeps."""
    return Network(net.n, net.edges, net.weights)


def ordered(net: Network, order: bool) -> Any:
    """The network's matrix and, for a large one, the order that is found from it."""
    return net.near_order if order else net.adjacency()


def iteration_parts(quick: Quick, b: jax.Array) -> dict[str, Callable[[], Any]]:
    """What an iteration does, `LOOP` times each."""
    parts = {
        "inverses times residuals": lambda: inverses_times(quick, b),
        "models of neighbours": lambda: neighbours(quick, b),
        "three sums over all nodes": lambda: sums(b, b),
        "three vectors renewed": lambda: updates(b, b, b),
    }
    return {ITERATION + name: run for name, run in parts.items()}


@jax.jit
def inverses_times(quick: Quick, b: jax.Array) -> jax.Array:
    """z = M^-1 r."""
    return lax.fori_loop(0, LOOP, lambda _, z: blocks.products(quick.inverse, z), b)


@jax.jit
def neighbours(quick: Quick, b: jax.Array) -> jax.Array:
    """A p."""
    return lax.fori_loop(0, LOOP, lambda _, z: quick.times(b, z) + 0.5 * z, b)


@jax.jit
def sums(a: jax.Array, b: jax.Array) -> jax.Array:
    """p'Ap, r'z and r'r; each needs the one before, so that none is left out."""
    return lax.fori_loop(0, 3 * LOOP, lambda _, t: jnp.sum(a * b + 1e-20 * t), jnp.zeros((), a.dtype))


@jax.jit
def updates(W: jax.Array, r: jax.Array, p: jax.Array) -> Any:
    """W, r and p."""
    return lax.fori_loop(0, LOOP, lambda _, s: (s[0] + 0.1 * s[2], s[1] - 0.1 * s[2], s[1] + 0.9 * s[2]), (W, r, p))
