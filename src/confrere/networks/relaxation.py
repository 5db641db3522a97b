"""FedRelax and FedAvg with a proximal step on a problem with quadratic losses.

FedRelax (Algorithm 5.4): every node goes to the minimum of its loss and its coupling, its neighbours held,

    w_i <- (Q_i + alpha d_i)^-1 (-q_i/2 + alpha sum_j A_ij w_j).

The book's (5.20) has alpha/2, since it leaves out that the neighbours' terms count the edge too: its iterations solve
the problem of half the coupling (`book=True`). A node without rows gets the weighted mean of its neighbours.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_above_zero, check_counts, check_switches
from confrere.core import Tree
from confrere.networks import blocks
from confrere.networks.kinds import quadratic_of
from confrere.networks.loops import Run, Stop, finished, loop, rule_of
from confrere.networks.problem import GTVMin
from confrere.networks.ranks import pseudo_inverses
from confrere.networks.terms import QUADRATIC, Terms, quadratic_both, smooth_both


@functools.partial(jax.jit, static_argnames=("iterations", "stop"))
def relax(terms: Terms, inverse, W, half, tol, iterations: int, stop: str | None):
    """Every node to its minimum, all at once."""

    def step(k, W):
        pull = half * terms.coupling * terms.layout.sums(W)
        W = blocks.products(inverse, pull - terms.data.q / 2)
        return W, *smooth_both(QUADRATIC, terms, W)

    return loop(step, W, iterations, stop, tol)


def fedrelax(
    p: GTVMin, iterations: int = 1000, book: bool = False, start: Tree = None, stop: Stop | None = None
) -> Run:
    """FedRelax (Algorithm 5.4); there is no learning rate. `book=True` has alpha/2 in place of alpha, as (5.20) prints.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1), (1, 2)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]]] * 3, y=[[0.0], None, [3.0]])
    >>> cf.networks.fedrelax(p, iterations=60).W.round(4).tolist()
    [[0.75], [1.5], [2.25]]
    """
    check_counts(iterations=iterations)
    check_switches(book=book)
    quadratic = quadratic_of(p, "fedrelax")
    half = 0.5 if book else 1.0
    own = half * p.coupling() * p.network.degrees[:, None]
    inverse = blocks.laid_out(pseudo_inverses(quadratic.Q + own[:, :, None] * np.eye(p.d)))
    dtype = jnp.result_type(float)
    what, tol = rule_of(stop)
    return finished(*relax(p.terms(), jnp.asarray(inverse, dtype), p.start(start), half, tol, iterations, what))


@functools.partial(jax.jit, static_argnames=("iterations", "stop"))
def average_proxes(terms: Terms, inverse, W, eta, tol, iterations: int, stop: str | None):
    """The mean of every node's proximal step from the common model."""

    def step(k, W):
        moved = blocks.products(inverse, W / eta - terms.data.q / 2)
        W = jnp.broadcast_to(moved.mean(axis=0), W.shape)
        value, g = quadratic_both(terms.data, W)
        return W, value, g.sum(axis=0)

    return loop(step, W, iterations, stop, tol)


def fedavg(p: GTVMin, eta: float, iterations: int = 1000, start: Tree = None, stop: Stop | None = None) -> Run:
    """FedAvg with the step argmin_v L_i(v) + |v - w|^2/eta and the plain mean of clients (Algorithm 5.3).

    One model for all: the coupling does not count, the objective is the sum of the losses. For a finite eta its fixed
    point is not their minimum; it tends to it as eta goes to 0, and to the mean of the local minimisers as eta grows.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [5.0]])
    >>> cf.networks.fedavg(p, eta=0.001, iterations=4000).W.round(2).tolist()  # 2 is the least of w^2 + (5 - 2w)^2
    [[2.0], [2.0]]
    """
    check_counts(iterations=iterations)
    check_above_zero(eta=eta)
    inverse = blocks.laid_out(pseudo_inverses(quadratic_of(p, "fedavg").Q + np.eye(p.d) / eta))
    dtype = jnp.result_type(float)
    common = jax.tree.map(lambda a: jnp.broadcast_to(a.mean(axis=0), a.shape), p.start(start))
    what, tol = rule_of(stop)
    given = jnp.asarray(inverse, dtype), common, jnp.asarray(eta, dtype)
    return finished(*average_proxes(p.terms(), *given, tol, iterations, what))
