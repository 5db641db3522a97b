"""FedRelax, FedAvg with a proximal step, and asynchronous FedGD on a problem with quadratic losses.

FedRelax (Algorithm 5.4): every node goes to the minimum of its loss and its coupling, its neighbours held,

    w_i <- (Q_i + alpha d_i)^-1 (-q_i/2 + alpha sum_j A_ij w_j).

The book's (5.20) has alpha/2, since it leaves out that the neighbours' terms count the edge too: its iterations solve
the problem of half the coupling (`book=True`). A node without rows gets the weighted mean of its neighbours.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_numbers, check_share
from confrere.core import Tree
from confrere.networks import blocks
from confrere.networks.descent import Run, finished, loop, rates, size, smooth
from confrere.networks.problem import GTVMin
from confrere.networks.ranks import pseudo_inverses
from confrere.networks.statistics import Quadratic
from confrere.networks.terms import QUADRATIC, Terms, quadratic_gradient, smooth_value


def quadratic_of(p: GTVMin, what: str) -> Quadratic:
    """The statistics of a problem with quadratic losses and squared penalty."""
    if smooth(p).quadratic is None:
        raise ValueError(f"{what} needs quadratic losses: X and y without losses, or Quadratic(Q, q, c)")
    return p.quadratic  # type: ignore[bad-return]


def seen_value(terms: Terms, share):
    """The objective with `share` of the coupling."""
    part = terms._replace(coupling=share * terms.coupling)
    return lambda W: smooth_value(QUADRATIC, part, W)


@functools.partial(jax.jit, static_argnames=("iterations",))
def relax(terms: Terms, inverse, W, half, iterations: int):
    """Every node to its minimum, all at once."""

    def step(k, W):
        pull = half * terms.coupling * terms.layout.sums(W)
        return blocks.products(inverse, pull - terms.data.q / 2), jnp.zeros((), W.dtype)

    return loop(step, seen_value(terms, 1), W, lambda W: W, iterations, None, 0.0)


def fedrelax(p: GTVMin, iterations: int = 1000, book: bool = False, start: Tree = None) -> Run:
    """FedRelax (Algorithm 5.4); there is no learning rate. `book=True` has alpha/2 in place of alpha, as (5.20) prints.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1), (1, 2)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]]] * 3, y=[[0.0], None, [3.0]])
    >>> cf.networks.fedrelax(p, iterations=60).W.round(4).tolist()
    [[0.75], [1.5], [2.25]]
    """
    check_counts(iterations=iterations)
    quadratic = quadratic_of(p, "fedrelax")
    half = 0.5 if book else 1.0
    own = half * p.coupling() * p.network.degrees[:, None]
    inverse = blocks.laid_out(pseudo_inverses(quadratic.Q + own[:, :, None] * np.eye(p.d)))
    dtype = jnp.result_type(float)
    return finished(p, *relax(p.terms(), jnp.asarray(inverse, dtype), p.start(start), half, iterations))


@functools.partial(jax.jit, static_argnames=("iterations",))
def average_proxes(terms: Terms, inverse, W, eta, iterations: int):
    """The mean of every node's proximal step from the common model."""

    def step(k, W):
        moved = blocks.products(inverse, W / eta - terms.data.q / 2)
        return jnp.broadcast_to(moved.mean(axis=0), W.shape), jnp.zeros((), W.dtype)

    return loop(step, seen_value(terms, 0), W, lambda W: W, iterations, None, 0.0)


def fedavg(p: GTVMin, eta: float, iterations: int = 1000, start: Tree = None) -> Run:
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
    check_numbers(eta=eta)
    if eta == 0:
        raise ValueError("eta must be above 0: with 0 no model would ever move")
    inverse = blocks.laid_out(pseudo_inverses(quadratic_of(p, "fedavg").Q + np.eye(p.d) / eta))
    dtype = jnp.result_type(float)
    common = jax.tree.map(lambda a: jnp.broadcast_to(a.mean(axis=0), a.shape), p.start(start))
    return finished(
        p, *average_proxes(p.terms(), jnp.asarray(inverse, dtype), common, jnp.asarray(eta, dtype), iterations)
    )


def late_sums(terms: Terms, past: jax.Array, key) -> jax.Array:
    """sum_j A_ij w_j, every link with a delay of its own: past[0] is now, [delay + 1, n, d]."""
    layout = terms.layout
    depth, n, _ = past.shape
    slots, more = jax.random.split(key)
    ages = jax.random.randint(slots, layout.neighbour.shape, 0, depth)
    total = jnp.zeros_like(past[0])
    for k in range(layout.neighbour.shape[0]):
        there = layout.neighbour[k]
        weight = (there != jnp.arange(n)) if layout.weight is None else layout.weight[k]
        total = total + weight[:, None] * past[ages[k], there]
    if layout.receiver.shape[0]:
        late = jax.random.randint(more, layout.sender.shape, 0, depth)
        heard = layout.strength[:, None] * past[late, layout.sender]
        total = total + jax.ops.segment_sum(heard, layout.receiver, n, indices_are_sorted=True)
    return total


@functools.partial(jax.jit, static_argnames=("iterations", "delay"))
def asynchronous(terms: Terms, W, lr, active, key, iterations: int, delay: int):
    """Active nodes step with models of neighbours up to `delay` iterations old; the others stay."""

    def step(k, past):
        draw, links = jax.random.split(jax.random.fold_in(key, k))
        W = past[0]
        own = terms.layout.degree[:, None] * W
        g = quadratic_gradient(terms.data, W) + 2 * terms.coupling * (own - late_sums(terms, past, links))
        row = active[jnp.minimum(k, active.shape[0] - 1)]
        here = jax.random.uniform(draw, row.shape) < row
        new = jnp.where(here[:, None], W - lr[k] * g, W)
        return jnp.concatenate([new[None], past[:-1]]), size(g)

    past = jnp.broadcast_to(W, (delay + 1, *W.shape))
    state, seen, count = loop(step, seen_value(terms, 1), past, lambda past: past[0], iterations, None, 0.0)
    return state[0], seen, count


def async_fedgd(
    p: GTVMin, lr: Any, activation: Any = 0.5, delay: int = 0, iterations: int = 1000, seed: int = 0, start: Tree = None
) -> Run:
    """Asynchronous FedGD (Algorithm 8.1): some nodes are active, and what they know of neighbours may be old.

    `activation`: the probability with which a node is active, one for all, one per node [n], or one per iteration and
    node [iterations, n] (0 and 1: a schedule). `delay`: models arrive 0 to so many iterations late, drawn for every
    link and iteration. If every Q_i is positive definite and lr <= 1/(2 max_i (largest eigenvalue of Q_i + alpha d_i)),
    it ends at the minimum whatever the delay (Bertsekas, Tsitsiklis: Parallel and distributed computation, chapter 6).

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> cf.networks.async_fedgd(p, lr=0.2, activation=0.5, delay=3, iterations=300).W.round(4).tolist()
    [[1.0], [2.0]]
    """
    quadratic_of(p, "async_fedgd")
    check_counts(delay=delay or None)
    given = np.asarray(activation, float)
    if given.shape not in ((), (p.n,), (iterations, p.n)):
        raise ValueError(f"activation must be one number, one per node, or [{iterations}, {p.n}], not {given.shape}")
    check_share(activation=float(given.min()))
    check_share(activation=float(given.max()))
    dtype = jnp.result_type(float)
    steps = jnp.asarray(rates(lr, iterations), dtype)
    rows = np.broadcast_to(given, (given.shape[0] if given.ndim == 2 else 1, p.n))
    key = jax.random.key(seed)
    found = asynchronous(p.terms(), p.start(start), steps, jnp.asarray(rows, dtype), key, iterations, delay)
    return finished(p, *found)
