"""Which rows a silo uses in a round.

A `Plan` draws, once a round, what its steps need (an array per step), and turns that into a batch step by step. The
number of steps and the batch size are static; a silo with fewer rows than others gets steps without a live row.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from confrere.checks import check_counts, those_given
from confrere.clients.shuffle import shuffle
from confrere.clients.subset import subset
from confrere.core import Batch, Block

Order = Literal["shuffled", "cyclic", "full"]
IN_PLACE = 4  # up to so many times the batch, looking at all rows is quicker than gathering some


class Plan(NamedTuple):
    """draw: (size, count, key, m) -> a tree whose leaves have one row per step, where `size` of m rows are live and
    the silo has taken part `count` times before; batch: (data, row of that tree) -> the rows of the step."""

    draw: Callable[[jax.Array, jax.Array, jax.Array, int], Any]
    batch: Callable[[Block, Any], Batch]


def everything(data: Block) -> Batch:
    """All rows of one silo."""
    return Batch(data.X, data.y, jnp.arange(data.y.shape[0]) < data.size)


def full(steps: int = 1) -> Plan:
    """All rows in every step."""
    return Plan(lambda size, count, key, m: jnp.arange(steps), lambda data, _: everything(data))


def cyclic(batch: int, steps: int | None = 1, epochs: int = 1) -> Plan:
    """Consecutive slices in a fixed order, each round going on where the last one stopped.

    The last slice of a pass may be smaller. With `steps=None` a round is `epochs` whole passes.
    """

    def draw(size, count, key, m):
        if steps is None:
            longest = -(-m // batch)
            return jnp.arange(epochs * longest, dtype=jnp.int32) % longest * batch
        per_pass = jnp.maximum(-(-size // batch), 1)
        return (count * steps + jnp.arange(steps, dtype=jnp.int32)) % per_pass * batch

    def slice_from(data: Block, first: jax.Array) -> Batch:
        length = min(batch, data.y.shape[0])
        start = jnp.minimum(first, data.y.shape[0] - length)  # a slice cannot reach beyond the block
        rows = start + jnp.arange(length)
        cut = lambda a: jax.lax.dynamic_slice_in_dim(a, start, length)  # noqa: E731
        return Batch(cut(data.X), cut(data.y), (rows >= first) & (rows < data.size))

    return Plan(draw, slice_from)


def shuffled(batch: int, steps: int | None = None, epochs: int = 1) -> Plan:
    """A fresh shuffle in every round, cut into batches.

    With `steps=None` a round is `epochs` passes, each with a shuffle of its own. With `steps` the round walks
    through one shuffle, and begins it again if it is used up.
    """
    if steps == 1:
        return drawn(batch)

    def one_order(size, key, m):
        order = shuffle(key, size, m)
        per_pass = jnp.maximum(-(-size // batch), 1)
        place = (jnp.arange(steps, dtype=jnp.int32) % per_pass)[:, None] * batch + jnp.arange(batch)
        return order[jnp.minimum(place, m - 1)], place < size

    def draw(size, count, key, m):
        if steps is not None:
            return one_order(size, key, m)
        length = -(-m // batch) * batch
        keys = key[None] if epochs == 1 else jax.random.split(key, epochs)
        order = jax.vmap(lambda k: shuffle(k, size, m))(keys)
        order = jnp.pad(order, ((0, 0), (0, length - m)))
        live = jnp.broadcast_to(jnp.arange(length) < size, order.shape)
        return order.reshape(-1, batch), live.reshape(-1, batch)

    def gather(data: Block, chosen) -> Batch:
        index, live = chosen
        return Batch(data.X[index], data.y[index], live)

    return Plan(draw, gather)


def drawn(batch: int) -> Plan:
    """One batch without replacement: the rows that a shuffle would put first, found without sorting.

    Where the batch is a good part of the rows, all rows stay in place and those that were not drawn do not count: no
    row is moved, and experiments that share their rows share the products with them.
    """

    def stays(m: int) -> bool:
        return m <= IN_PLACE * batch

    def draw(size, count, key, m):
        chosen = subset(key, size, m, batch)
        if stays(m):
            return chosen[None]
        index = jnp.nonzero(chosen, size=batch, fill_value=0)[0].astype(jnp.int32)
        return index[None], (jnp.arange(batch) < size)[None]

    def batch_of(data: Block, chosen) -> Batch:
        if stays(data.y.shape[0]):
            return Batch(data.X, data.y, chosen, jnp.arange(data.y.shape[0]) < data.size)
        index, live = chosen
        return Batch(data.X[index], data.y[index], live)

    return Plan(draw, batch_of)


def plan_for(order: Order, batch: int | None, steps: int | None, epochs: int | None) -> Plan:
    """The plan that a user's words ask for; what does not go together is refused."""
    if order not in ("shuffled", "cyclic", "full"):
        raise ValueError(f"order must be 'shuffled', 'cyclic' or 'full', not {order!r}")
    if steps is not None and epochs is not None:
        raise ValueError("give epochs or steps, not both")
    check_counts(**those_given(batch=batch, steps=steps, epochs=epochs))
    if order == "full" or batch is None:
        return full(steps or epochs or 1)
    if order == "cyclic":
        return cyclic(batch, steps, epochs or 1)
    return shuffled(batch, steps, epochs or 1)


def live_steps(size: jax.Array, order: Order, batch: int | None, steps: int | None, epochs: int | None) -> jax.Array:
    """How many steps of such a plan have a live row; at least one, also for a silo without rows."""
    passes = epochs or 1
    if steps is not None or order == "full" or batch is None:
        return jnp.full_like(size, steps or passes)
    return jnp.maximum(passes * -(-size // batch), 1)
