"""Weights by what silos told: each counts for the model that it chose.

    W[j, i] = share_i if silo i chose model j, else 0

Ghosh, Chung, Yin, Ramchandran: An efficient framework for clustered federated learning (2020), Algorithm 1, option II
(model averaging).
"""

import jax.numpy as jnp

from confrere.checks import check_counts
from confrere.core import Weights, present


def chosen(k: int, among: Weights) -> Weights:
    """One row for each of k models: the silos that told it as their choice, by the plain shares of `among`.

    A model that nobody chose has no mass, and so is kept as it is.

    >>> import confrere as cf
    >>> w = cf.weights.chosen(2, cf.weights.by_size())
    >>> ctx = cf.Ctx(round=1, active=[True, True, True], size=[10, 30, 20])
    >>> told = {"choice": jnp.array([1, 0, 1])}
    >>> w.update(cf.Geometry.from_messages([[1.0], [2.0], [3.0]], told), w.init(3), ctx)[0].tolist()
    [[0.0, 30.0, 0.0], [10.0, 0.0, 20.0]]
    """
    check_counts(k=k)

    def update(geometry, state, ctx):
        if geometry.told is None or "choice" not in geometry.told:
            raise ValueError("these weights need silos that tell a choice, as those of clients.choosing do")
        row, state = among.update(geometry, state, ctx)
        theirs = jnp.arange(k)[:, None] == geometry.told["choice"]
        return jnp.where(theirs & present(ctx), row, 0), state

    return Weights(among.init, update)
