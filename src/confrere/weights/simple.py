"""Weights that do not look at the messages at all."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from confrere.core import Ctx, Weights


def fixed(row: Callable[[Ctx], jax.Array]) -> Weights:
    """Stateless weights that depend on the context alone."""
    return Weights(lambda n: (), lambda geometry, state, ctx: (row(ctx), state))


def uniform() -> Weights:
    """Everybody counts the same.

    >>> import confrere as cf
    >>> w = cf.weights.uniform()
    >>> ctx = cf.Ctx(round=1, active=[True, True], size=[10, 30])
    >>> w.update(cf.Geometry.from_messages([[1.0], [2.0]]), w.init(2), ctx)[0].tolist()
    [[1.0, 1.0]]
    """
    return fixed(lambda ctx: jnp.ones((1, len(ctx.size))))


def by_size() -> Weights:
    """Everybody counts by the number of rows behind the message.

    >>> import confrere as cf
    >>> w = cf.weights.by_size()
    >>> ctx = cf.Ctx(round=1, active=[True, True], size=[10, 30])
    >>> w.update(cf.Geometry.from_messages([[1.0], [2.0]]), w.init(2), ctx)[0].tolist()
    [[10.0, 30.0]]
    """
    return fixed(lambda ctx: jnp.asarray(ctx.size, jnp.result_type(float))[None])


def self_only() -> Weights:
    """Every silo is a receiver, and listens to itself alone: W is the identity.

    >>> import confrere as cf
    >>> w = cf.weights.self_only()
    >>> ctx = cf.Ctx(round=1, active=[True, True], size=[10, 30])
    >>> w.update(cf.Geometry.from_messages([[1.0], [2.0]]), w.init(2), ctx)[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return fixed(lambda ctx: jnp.eye(len(ctx.size)))
