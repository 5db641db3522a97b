"""Asynchronous FedGD (Algorithm 8.1): some nodes step, with models of neighbours that may be old."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_share, real_array
from confrere.core import Tree
from confrere.networks.kinds import smooth
from confrere.networks.layout import Layout
from confrere.networks.loops import Run, Stop, finished, loop, rates, rule_of, smaller_rate
from confrere.networks.problem import GTVMin
from confrere.networks.terms import Local, Terms, flat, smooth_both, strengths_like


def late_sums(layout: Layout, past: jax.Array, key) -> jax.Array:
    """sum_j A_ij w_j, every link with a delay of its own: past[0] is now, [delay + 1, n, d]."""
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


def late_gradient(local: Local, terms: Terms, past: Tree, key) -> Tree:
    """The gradient of every node's own loss now and of its coupling to what it knows of its neighbours."""
    W = jax.tree.map(lambda a: a[0], past)

    def one(g, strength, a):
        known = a.reshape(*a.shape[:2], -1)
        pull = terms.layout.degree[:, None] * flat(a[0]) - late_sums(terms.layout, known, key)
        return g + 2 * strength * pull.reshape(g.shape)

    return jax.tree.map(one, local.gradient(terms.data, W), strengths_like(terms.coupling, W), past)


@functools.partial(jax.jit, static_argnames=("local", "iterations", "delay", "stop"))
def asynchronous(local: Local, terms: Terms, W, lr, active, key, tol, iterations: int, delay: int, stop: str | None):
    """Active nodes step with models of neighbours up to `delay` iterations old; the others stay."""

    def step(k, past):
        draw, links = jax.random.split(jax.random.fold_in(key, k))
        row = active[jnp.minimum(k, active.shape[0] - 1)]
        here = jax.random.uniform(draw, row.shape) < row

        def moved(a, g):
            new = jnp.where(here.reshape(-1, *(1,) * (g.ndim - 1)), a[0] - lr[k] * g, a[0])
            return jnp.concatenate([new[None], a[:-1]])

        past = jax.tree.map(moved, past, late_gradient(local, terms, past, links))
        return past, *smooth_both(local, terms, jax.tree.map(lambda a: a[0], past))

    past = jax.tree.map(lambda a: jnp.broadcast_to(a, (delay + 1, *a.shape)), W)
    state, seen, count = loop(step, past, iterations, stop, tol)
    return jax.tree.map(lambda a: a[0], state), seen, count


def async_fedgd(
    p: GTVMin, lr: Any, activation: Any = 0.5, delay: int = 0, iterations: int = 1000, seed: int = 0,
    start: Tree = None, stop: Stop | None = None,
) -> Run:  # fmt: skip
    """Asynchronous FedGD (Algorithm 8.1): some nodes are active, and what they know of neighbours may be old; for any
    losses.

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
    smooth(p)
    check_counts(iterations=iterations)
    check_counts(0, delay=delay, seed=seed)
    given = real_array("activation", activation)
    if given.shape not in ((), (p.n,), (iterations, p.n)):
        raise ValueError(f"activation must be one number, one per node, or [{iterations}, {p.n}], not {given.shape}")
    check_share(activation=float(given.min()))
    check_share(activation=float(given.max()))
    dtype = jnp.result_type(float)
    steps = jnp.asarray(rates(lr, iterations), dtype)
    rows = np.broadcast_to(given, (given.shape[0] if given.ndim == 2 else 1, p.n))
    key, (what, tol) = jax.random.key(seed), rule_of(stop)
    given = p.start(start), steps, jnp.asarray(rows, dtype), key, tol
    found = asynchronous(p.local, p.terms(), *given, iterations, delay, what)
    return finished(*found, advice=smaller_rate(p, steps, share=0.5))
