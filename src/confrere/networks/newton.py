"""GTVMin with any differentiable losses: Newton steps, each found by conjugate gradients, with a line search."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import cg

from confrere.core import Tree
from confrere.networks.terms import Local, Terms, smooth_both, smooth_gradient, smooth_value

ENOUGH = 1e-4  # the share of the promised decrease that a step must bring
SHORTEST = 1e-9


class Step(NamedTuple):
    """Where a Newton step led, the gradient's norm before it, and how long it was (0: no decrease was found)."""

    W: Tree
    slope: jax.Array
    length: jax.Array


@functools.partial(jax.jit, static_argnums=0)
def newton_step(local: Local, terms: Terms, W: Tree, first) -> Step:
    """One step; `first` is the gradient's norm at the start, which says how exact the step should be."""
    flat, shaped = ravel_pytree(W)
    value = lambda x: smooth_value(local, terms, shaped(x))  # noqa: E731
    gradient = lambda x: ravel_pytree(smooth_gradient(local, terms, shaped(x)))[0]  # noqa: E731
    g = gradient(flat)
    size = jnp.linalg.norm(g)
    curvature = lambda v: jax.jvp(gradient, (flat,), (v,))[1]  # noqa: E731
    exact = jnp.minimum(0.1, jnp.sqrt(size / jnp.where(first > 0, first, 1)))
    direction, _ = cg(curvature, -g, tol=exact, maxiter=500)
    descends = (jnp.vdot(g, direction) < 0) & jnp.isfinite(direction).all()
    direction = jnp.where(descends, direction, -g)
    promised = jnp.vdot(g, direction)
    now = value(flat)
    noise = 10 * jnp.finfo(flat.dtype).eps * jnp.abs(now)

    def too_long(t):
        enough = value(flat + t * direction) <= now + ENOUGH * t * promised + noise
        return ~enough & (t > SHORTEST)  # what is not a number is not enough

    t = jax.lax.while_loop(too_long, lambda t: t / 2, jnp.ones((), flat.dtype))
    return Step(shaped(flat + t * direction), size, jnp.where(t > SHORTEST, t, 0))


@functools.partial(jax.jit, static_argnums=0)
def slope_at(local: Local, terms: Terms, W: Tree) -> jax.Array:
    """The norm of the gradient."""
    return jnp.linalg.norm(ravel_pytree(smooth_gradient(local, terms, W))[0])


def check_beginning(local: Local, terms: Terms, W: Tree) -> None:
    """Refuse a start at which the objective or its gradient is not finite, naming the node."""
    value, g = smooth_both(local, terms, W)
    finite = [np.isfinite(a).reshape(len(a), -1).all(axis=1) for a in map(np.asarray, jax.tree.leaves(g))]
    broken = ~np.logical_and.reduce(finite)
    what = f"the gradient of node {int(broken.argmax())}" if broken.any() else "the objective"
    if broken.any() or not np.isfinite(value):
        raise ValueError(f"{what} is not finite at the start, from which no step leads on: give another start")


def minimise(local: Local, terms: Terms, W: Tree, tol: float, most: int) -> Tree:
    """Step until the gradient's norm is below tol times that at the start."""
    check_beginning(local, terms, W)
    first = slope_at(local, terms, W)
    slope = first
    for _ in range(most):
        if not float(slope) > tol * float(first):
            break
        step = newton_step(local, terms, W, first)
        if float(step.length) == 0:
            break
        W = step.W
        slope = slope_at(local, terms, W)
    if not float(slope) <= tol * float(first):
        raise RuntimeError(
            f"no step lowers the objective any more, at a gradient of {float(slope):.1e} that was {float(first):.1e} "
            "at the start: the losses are not smooth or not finite there, or tol is below their rounding"
        )
    return W
