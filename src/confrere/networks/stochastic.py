"""FedSGD on a problem (Algorithm 5.2): the gradient of a batch of every node in place of that of all its rows.

    w_i <- w_i + lr ((2/B) sum over the batch of x (y - x'w_i) + 2 alpha sum_j A_ij (w_j - w_i))      (5.12)

The divisor is always B (or the node's rows, if it has fewer): so in a pass every row counts the same, also those of a
last slice that is smaller.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from confrere.checks import check_counts
from confrere.clients.batches import Order, plan_for
from confrere.core import Block, Tree, silo_keys
from confrere.networks.kinds import smooth
from confrere.networks.loops import Run, Stop, finished, loop, rates, rule_of, smaller_rate
from confrere.networks.problem import GTVMin
from confrere.networks.terms import QUADRATIC, Local, Terms, coupled, smooth_both


@functools.partial(jax.jit, static_argnames=("local", "iterations", "batch", "order", "stop"))
def stochastic_descent(
    local: Local, terms: Terms, block: Block, W, lr, key, tol, iterations: int, batch: int, order: Order,
    stop: str | None,
):  # fmt: skip
    """Steps by the gradient of one batch of every node and of the coupling."""
    plan = plan_for(order, batch, steps=1, epochs=None)
    divisor = jnp.maximum(jnp.minimum(block.size, batch), 1)

    def gradient(w, one, count, key, by):
        rows = plan.batch(one, jax.tree.map(lambda a: a[0], plan.draw(one.size, count, key, one.y.shape[0])))
        errors = jnp.where(rows.live, rows.X @ w - rows.y, 0)
        return 2 * errors @ jnp.where(rows.live[:, None], rows.X, 0) / by

    def step(k, W):
        _, keys = silo_keys(key, k + 1, block.id)
        own = jax.vmap(gradient, (0, 0, None, 0, 0))(W, block, k, keys, divisor.astype(W.dtype))
        W = W - lr[k] * (own + 2 * coupled(terms, W))
        return W, *smooth_both(local, terms, W)

    return loop(step, W, iterations, stop, tol)


def fedsgd(
    p: GTVMin, lr: Any, batch: int = 10, iterations: int = 1000, order: Order = "shuffled", seed: int = 0,
    start: Tree = None, stop: Stop | None = None,
) -> Run:  # fmt: skip
    """FedSGD (Algorithm 5.2) with squared errors: a fresh batch of every node in each iteration, or consecutive slices
    of its rows (`order="cyclic"`).

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]] * 4, [[1.0]] * 4], y=[[0.0] * 4, [3.0] * 4])
    >>> cf.networks.fedsgd(p, lr=0.2, batch=2, iterations=50).W.round(4).tolist()
    [[1.0], [2.0]]
    """
    check_counts(batch=batch)
    check_counts(0, seed=seed)
    if smooth(p).local is not QUADRATIC or p.rows is None:
        raise ValueError("fedsgd needs rows with squared errors: X and y without losses; cf.gtv_sgd takes other models")
    given = jnp.asarray(rates(lr, iterations), jnp.result_type(float))
    key, (what, tol) = jax.random.key(seed), rule_of(stop)
    arrays = p.terms(), p.block(), p.start(start), given, key, tol
    found = stochastic_descent(p.local, *arrays, iterations, batch, order, what)
    return finished(*found, advice=smaller_rate(p, given))
