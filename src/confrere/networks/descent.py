"""Gradient descent over a network as one compiled loop, with the objective after every iteration.

    w_i <- w_i - lr (grad L_i(w_i) + 2 alpha sum_j A_ij (w_i - w_j))            (5.9)

All functions here take a step function and run it until the last iteration or a stopping rule (book 4.4); the numbers
of a problem are arguments of the program, so that another problem of the same size does not compile again.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from confrere.checks import check_counts, check_numbers
from confrere.core import Tree
from confrere.networks.problem import GTVMin
from confrere.networks.terms import Local, Terms, smooth_gradient, smooth_value

Schedule = Callable[[np.ndarray], Any]  # iterations counted from 1, [K] -> learning rates [K]
Projection = Callable[[Tree], Tree]


class Run(NamedTuple):
    """What an algorithm found: models W [n, d], the objective after every iteration, and how many there were."""

    W: Any
    objective: np.ndarray  # [iterations]
    iterations: int


class Stop(NamedTuple):
    """When to stop before the last iteration: `what` falls below `tol`."""

    what: str
    tol: float


def decrease(tol: float) -> Stop:
    """Stop when an iteration lowers the objective by less than tol."""
    check_numbers(tol=tol)
    return Stop("decrease", tol)


def small_gradient(tol: float) -> Stop:
    """Stop when the norm of the gradient is below tol."""
    check_numbers(tol=tol)
    return Stop("gradient", tol)


def rates(lr: Any, iterations: int) -> np.ndarray:
    """The learning rate of every iteration: a number, one per iteration, or a schedule of the iterations 1, 2, ..."""
    check_counts(iterations=iterations)
    given = lr(np.arange(1, iterations + 1)) if callable(lr) else lr
    values = np.asarray(given, float)
    if values.shape not in ((), (iterations,)) or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"lr must be a number of 0 or more, one for each of {iterations} iterations, or a schedule")
    return np.broadcast_to(values, (iterations,))


def size(tree: Tree) -> jax.Array:
    """The norm of all numbers together."""
    return jnp.linalg.norm(ravel_pytree(tree)[0])


def smooth(p: GTVMin) -> GTVMin:
    """Refuse a penalty without gradient."""
    if p.norm:
        raise ValueError("the norm as penalty has no gradient where models are equal: use solve()")
    return p


def loop(step, value, start: Any, W_of, iterations: int, stop: str | None, tol) -> tuple[Any, jax.Array, jax.Array]:
    """Repeat step(k, state) -> (state, slope) for k = 0, 1, ..., and keep the objective after each.

    Returns the state, the objectives (only the first `count` are meant) and the count.
    """
    dtype = jnp.result_type(float)

    def unfinished(carry):
        k, _, _, before, now, slope = carry
        goes_on = k < iterations
        if stop == "decrease":
            goes_on &= (k == 0) | (before - now >= tol)
        if stop == "gradient":
            goes_on &= (k == 0) | (slope >= tol)
        return goes_on

    def once(carry):
        k, state, seen, _, now, _ = carry
        state, slope = step(k, state)
        after = value(W_of(state)).astype(dtype)
        return k + 1, state, seen.at[k].set(after), now, after, slope

    begin = (jnp.int32(0), start, jnp.zeros(iterations, dtype), *(jnp.full((), jnp.inf, dtype) for _ in range(3)))
    count, state, seen, *_ = jax.lax.while_loop(unfinished, once, begin)
    return state, seen, count


def finished(p: GTVMin, W: Tree, seen: jax.Array, count: jax.Array) -> Run:
    """The run on the host; a penalty of squares is part of what was seen."""
    return Run(jax.tree.map(np.asarray, W), np.asarray(seen)[: int(count)], int(count))


@functools.partial(jax.jit, static_argnames=("local", "iterations", "project", "stop"))
def gradient_descent(local: Local, terms: Terms, W, lr, tol, iterations: int, project, stop: str | None):
    """Gradient steps, projected if asked for."""

    def step(k, W):
        g = smooth_gradient(local, terms, W)
        W = jax.tree.map(lambda a, b: a - lr[k] * b, W, g)
        return (W if project is None else project(W)), size(g).astype(lr.dtype)

    return loop(step, lambda W: smooth_value(local, terms, W), W, lambda W: W, iterations, stop, tol)


def fedgd(
    p: GTVMin, lr: Any, iterations: int = 1000, start: Tree = None, stop: Stop | None = None,
    project: Projection | None = None,
) -> Run:  # fmt: skip
    """FedGD (Algorithm 5.1): every node steps by its own gradient and its neighbours' models.

    `lr` is a number, one per iteration, or a schedule such as `inverse(0.1)`; `project` is applied to the models of all
    nodes after every step (4.17), such as `single_model`.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> h = cf.networks.fedgd(p, lr=0.2, iterations=50)
    >>> h.W.round(4).tolist(), round(float(h.objective[-1]), 4)
    ([[1.0], [2.0]], 3.0)
    """
    given = jnp.asarray(rates(lr, iterations), jnp.result_type(float))
    what, tol = stop or (None, 0.0)
    found = gradient_descent(smooth(p).local, p.terms(), p.start(start), given, tol, iterations, project, what)
    return finished(p, *found)


def single_model(W: Tree) -> Tree:
    """The nearest models that are the same for all nodes (5.14): their mean."""
    return jax.tree.map(lambda a: jnp.broadcast_to(a.mean(axis=0), a.shape), W)


def within(radius: float) -> Projection:
    """The nearest models [n, d] whose norms are at most `radius`."""
    check_numbers(radius=radius)
    return _within(float(radius))


@functools.lru_cache(32)
def _within(radius: float) -> Projection:
    def project(W):
        norms = jnp.linalg.norm(W, axis=1, keepdims=True)
        return W * jnp.minimum(1, radius / jnp.where(norms > 0, norms, 1))

    return project


def inverse(first: float, shift: float = 0.0) -> Schedule:
    """The schedule first (1 + shift) / (k + shift), which keeps to (4.3): it falls to 0, but its sum does not end."""
    return lambda k: first * (1 + shift) / (k + shift)


def inverse_root(first: float, shift: float = 0.0) -> Schedule:
    """The schedule first sqrt((1 + shift) / (k + shift)); the sum of its squares does not end, contrary to (4.3)."""
    return lambda k: first * np.sqrt((1 + shift) / (k + shift))
