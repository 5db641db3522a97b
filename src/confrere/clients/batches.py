"""Which rows a silo uses in a round.

A plan is a function (size, count, key, m) -> (index [steps, b], live [steps, b]): `size` rows are live out of
`m`, `count` is how many rounds the silo has taken part in before. Rows outside `live` are padding. The number of
steps and the batch size are static; a silo that has fewer rows than others gets steps without a live row.
"""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

from confrere.clients.shuffle import shuffle
from confrere.core import Batch, Block

Plan = Callable[..., tuple[jax.Array, jax.Array]]
Order = Literal["shuffled", "cyclic", "full"]


def full(steps: int = 1) -> Plan:
    """All rows in every step."""

    def plan(size, count, key, m):
        rows = jnp.arange(m, dtype=jnp.int32)
        return jnp.tile(rows, (steps, 1)), jnp.tile(rows < size, (steps, 1))

    return plan


def cyclic(batch: int, steps: int | None = 1, epochs: int = 1) -> Plan:
    """Consecutive slices in a fixed order, each round going on where the last one stopped.

    The last slice of a pass may be smaller. With `steps=None` a round is `epochs` whole passes.
    """

    def plan(size, count, key, m):
        per_pass = jnp.maximum(-(-size // batch), 1)
        if steps is None:
            longest = -(-m // batch)
            number = jnp.arange(epochs * longest, dtype=jnp.int32) % longest
        else:
            number = (count * steps + jnp.arange(steps, dtype=jnp.int32)) % per_pass
        index = number[:, None] * batch + jnp.arange(batch, dtype=jnp.int32)
        return jnp.minimum(index, m - 1), index < size

    return plan


def shuffled(batch: int, steps: int | None = None, epochs: int = 1) -> Plan:
    """A fresh shuffle in every round, cut into batches.

    With `steps=None` a round is `epochs` passes, each with a shuffle of its own. With `steps` the round walks
    through one shuffle, and begins it again if it is used up.
    """

    def plan(size, count, key, m):
        longest = -(-m // batch)
        if steps is None:
            order = jax.vmap(lambda k: shuffle(k, size, m))(jax.random.split(key, epochs))
            place = jnp.tile(jnp.arange(longest * batch, dtype=jnp.int32), (epochs, 1))
            order = jnp.pad(order, ((0, 0), (0, longest * batch - m)))
            return order.reshape(-1, batch), (place < size).reshape(-1, batch)
        if steps == 1:  # the first batch alone: no need to place the rest
            place = jnp.arange(batch, dtype=jnp.int32)
            order = shuffle(key, size, m)[:batch]
            return jnp.pad(order, (0, batch - order.shape[0]))[None], (place < size)[None]
        per_pass = jnp.maximum(-(-size // batch), 1)
        place = (jnp.arange(steps, dtype=jnp.int32) % per_pass)[:, None] * batch + jnp.arange(batch)
        return shuffle(key, size, m)[jnp.minimum(place, m - 1)], place < size

    return plan


def plan_for(order: Order, batch: int | None, steps: int | None, epochs: int | None) -> Plan:
    """The plan that a user's words ask for; what does not go together is refused."""
    if order not in ("shuffled", "cyclic", "full"):
        raise ValueError(f"order must be 'shuffled', 'cyclic' or 'full', not {order!r}")
    if steps is not None and epochs is not None:
        raise ValueError("give epochs or steps, not both")
    for name, number in (("batch", batch), ("steps", steps), ("epochs", epochs)):
        if number is not None and (int(number) != number or number < 1):
            raise ValueError(f"{name} must be a whole number above 0, not {number!r}")
    if order == "full" or batch is None:
        return full(steps or epochs or 1)
    if order == "cyclic":
        return cyclic(batch, steps, epochs or 1)
    return shuffled(batch, steps, epochs or 1)


def take(data: Block, index: jax.Array, live: jax.Array) -> Batch:
    """The rows of one silo that a step of a plan names."""
    return Batch(data.X[index], data.y[index], live)


def everything(data: Block) -> Batch:
    """All rows of one silo."""
    return Batch(data.X, data.y, jnp.arange(data.y.shape[0]) < data.size)
