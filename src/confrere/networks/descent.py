"""Gradient descent over a network as one compiled loop, with the objective after every iteration.

    w_i <- w_i - lr (grad L_i(w_i) + 2 alpha sum_j A_ij (w_i - w_j))            (5.9)

The objective and the next gradient come from one product with the network.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_functions, check_single_numbers
from confrere.core import Tree
from confrere.networks.kinds import smooth
from confrere.networks.loops import Run, Schedule, Stop, finished, loop, rates, rule_of, smaller_rate
from confrere.networks.problem import GTVMin
from confrere.networks.terms import Local, Terms, smooth_both

Projection = Callable[[Tree], Tree]


@functools.partial(jax.jit, static_argnames=("local", "iterations", "project", "stop"))
def gradient_descent(local: Local, terms: Terms, W, lr, tol, iterations: int, project, stop: str | None):
    """Gradient steps, projected if asked for."""

    def step(k, state):
        W, g = state
        W = jax.tree.map(lambda a, b: a - lr[k] * b, W, g)
        W = W if project is None else project(W)
        value, g = smooth_both(local, terms, W)
        return (W, g), value, g

    start = W, smooth_both(local, terms, W)[1]
    (W, _), seen, count = loop(step, start, iterations, stop, tol)
    return W, seen, count


def fedgd(
    p: GTVMin, lr: Any, iterations: int = 1000, start: Tree = None, stop: Stop | None = None,
    project: Projection | None = None,
) -> Run:  # fmt: skip
    """FedGD (Algorithm 5.1): every node steps by its own gradient and its neighbours' models; for any losses.

    `lr` is a number, one per iteration, or a schedule such as `inverse(0.1)`; `project` is applied to the models of all
    nodes after every step (4.17), such as `single_model`; `stop` is a rule such as `decrease(1e-6)`. A rate that is too
    large makes models diverge, of which a warning tells.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> h = cf.networks.fedgd(p, lr=0.2, iterations=50)
    >>> h.W.round(4).tolist(), round(float(h.objective[-1]), 4)
    ([[1.0], [2.0]], 3.0)
    """
    given = jnp.asarray(rates(lr, iterations), jnp.result_type(float))
    what, tol = rule_of(stop)
    W = smooth(p).start(start)
    if project is not None:
        check_projection(project, W)
    found = gradient_descent(p.local, p.terms(), W, given, tol, iterations, project, what)
    return finished(*found, advice=smaller_rate(p, given))


def check_projection(project: Any, W: Tree) -> None:
    """Refuse what does not make models of models."""
    check_functions(project=project)
    found = jax.eval_shape(project, W)
    wanted, made = ([f"{a.dtype}{list(a.shape)}" for a in jax.tree.leaves(tree)] for tree in (W, found))
    if jax.tree.structure(found) != jax.tree.structure(W) or wanted != made:
        raise ValueError(f"project must make models of all nodes, {', '.join(wanted)}, not {', '.join(made) or found}")


def single_model(W: Tree) -> Tree:
    """The nearest models that are the same for all nodes (5.14): their mean.

    >>> import jax.numpy as jnp, confrere as cf
    >>> cf.networks.single_model(jnp.array([[0.0, 1.0], [2.0, 5.0]])).tolist()
    [[1.0, 3.0], [1.0, 3.0]]
    """
    return jax.tree.map(lambda a: jnp.broadcast_to(a.mean(axis=0), a.shape), W)


def within(radius: float) -> Projection:
    """The nearest models [n, d] whose norms are at most `radius`.

    >>> import jax.numpy as jnp, confrere as cf
    >>> cf.networks.within(5.0)(jnp.array([[3.0, 0.0], [6.0, 8.0]])).round(4).tolist()
    [[3.0, 0.0], [3.0, 4.0]]
    """
    check_single_numbers(radius=radius)
    return _within(float(radius))


@functools.lru_cache(32)
def _within(radius: float) -> Projection:
    def project(W):
        norms = jnp.linalg.norm(W, axis=1, keepdims=True)
        return W * jnp.minimum(1, radius / jnp.where(norms > 0, norms, 1))

    return project


def inverse(first: float, shift: float = 0.0) -> Schedule:
    """The schedule first (1 + shift) / (k + shift), which keeps to (4.3): it falls to 0, but its sum does not end.

    >>> import numpy as np, confrere as cf
    >>> cf.networks.inverse(0.5)(np.array([1, 2, 5])).tolist()
    [0.5, 0.25, 0.1]
    """
    check_single_numbers(first=first)
    check_single_numbers(-np.inf, shift=shift)
    return lambda k: first * (1 + shift) / (k + shift)


def inverse_root(first: float, shift: float = 0.0) -> Schedule:
    """The schedule first sqrt((1 + shift) / (k + shift)); the sum of its squares does not end, contrary to (4.3).

    >>> import numpy as np, confrere as cf
    >>> cf.networks.inverse_root(0.5)(np.array([1, 4, 25])).tolist()
    [0.5, 0.25, 0.1]
    """
    check_single_numbers(first=first)
    check_single_numbers(-np.inf, shift=shift)
    return lambda k: first * np.sqrt((1 + shift) / (k + shift))
