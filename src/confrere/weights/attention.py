"""Attention between models: every receiver listens to the others by how close their models are to its own.

    xi_ij = attention / n exp(-|w_i - w_j|^2 / sigma)   for j other than i
    xi_ii = max(0, 1 - sum of the others' xi_ij)

Huang, Chu, Zhou, Wang, Liu, Pei, Zhang: Personalized cross-silo federated learning on non-IID data (2021), Algorithm 1
with A(z) = 1 - exp(-z / sigma), whose slope at z = |w_i - w_j|^2 is the attention.

Where this departs from the paper: its step alpha_k is `attention` sigma / n here, n being the silos that take part, so
that attention = 0 is training alone and, for a large sigma, attention = 1 is the mean of all models. The weight of a
silo's own model may become negative if attention is above n / (n - 1): it is then clipped at 0, and the others' share
its place.
"""

import jax.numpy as jnp

from confrere.checks import check_numbers, concrete
from confrere.core import Ctx, Geometry, Weights, present


def attention(attention, sigma) -> Weights:
    """Every silo is a receiver, and listens to itself and to the models near its own; W [n, n].

    A receiver that is absent is not told anything: without its model nothing is near it.

    >>> import confrere as cf
    >>> w = cf.weights.attention(attention=1.0, sigma=1.0)
    >>> ctx = cf.Ctx(round=1, active=[True, True], size=[10, 30])
    >>> W, _ = w.update(cf.Geometry.from_messages([[0.0], [1.0]]), w.init(2), ctx)
    >>> [[round(float(a), 3) for a in row] for row in W]
    [[0.816, 0.184], [0.184, 0.816]]
    """
    check_numbers(attention=attention, sigma=sigma)
    if concrete(sigma) == 0:
        raise ValueError("sigma must be above 0: it is the squared distance at which attention has fallen to 1/e")

    def update(geometry: Geometry, state, ctx: Ctx):
        here = present(ctx)
        itself = jnp.eye(len(here), dtype=bool)
        near = attention / jnp.maximum(here.sum(), 1) * jnp.exp(-geometry.sq() / sigma)
        others = jnp.where(here & ~itself, near, 0)
        own = jnp.maximum(1 - others.sum(axis=1), 0)
        return jnp.where(itself, own, others), state

    return Weights(lambda n: (), update, needs=slice(None))
