"""What the published Weight Erosion experiments did otherwise, behind names of its own.

Two things in the authors' public program differ from what the paper says, and shape its figures:

* Their FedAvg is not an average. The updates are folded with Python's `sum(a, start)`, which adds up the *rows* of `a`
  and spreads that over the next silo's update. Only FedAvg with more than one silo is hit. See `fedavg_as_published`.
* Their accuracy is the plain mean over batches of the batch's accuracy. A last batch of one row then counts as much as
  one of 161: the "over 90 %" of agent 2 is 0.846 by rows. See `batch_mean_accuracy`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from confrere import clients, mixers
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, Mixed, Rule, Tree, federate, present, silo_count
from confrere.recipe import Recipe


def fold_rows(one: jax.Array, two: jax.Array) -> jax.Array:
    """`sum(one, two)` of Python on arrays: the rows of the first, added up, plus the second."""
    return two + one.sum(axis=0)


def row_summing_mean(user) -> Rule:
    """The authors' averaging helper, with its defect. The user comes first, then the others in order."""

    def update(message: Tree, state, ctx):
        n = silo_count(message)
        order = jnp.argsort(jnp.arange(n) != user, stable=True)
        updates = [jax.tree.map(lambda a, i=order[k]: a[i], message) for k in range(n)]
        total = functools.reduce(lambda one, two: jax.tree.map(fold_rows, one, two), updates)
        mass = present(ctx).sum()[None] * 1.0
        return Mixed(jax.tree.map(lambda a: a[None] / n, total), mass, jnp.ones((1, n))), state

    return Rule(lambda message: (), update)


def fedavg_as_published(
    user: int | str, lr: float, batch: int | None = None, order: Order = "cyclic", l2: float | None = None
) -> Recipe:
    """FedAvg as the authors ran it, defect included: only to reproduce their figures."""
    static = {"batch": batch, "order": order}
    return Recipe.of(_fedavg_as_published, "fedavg_as_published", static, user=user, lr=lr, l2=l2)


def _fedavg_as_published(loss: Loss, user, lr, batch, order, l2=None) -> Algorithm:
    mixer = mixers.server(row_summing_mean(user), x=mixers.step(optax.sgd(lr)))
    return federate(clients.gradient(loss, batch, order, l2), mixer)


def batch_mean_accuracy(correct: np.ndarray, batch: int) -> float:
    """The mean over consecutive batches of each batch's accuracy, as published."""
    return float(np.mean([correct[i : i + batch].mean() for i in range(0, len(correct), batch)]))
