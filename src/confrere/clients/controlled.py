"""The client of SCAFFOLD and WAFFLE: every step is corrected by control variates, so that silos do not drift apart.

    y   <- y - lr (g_i(y) - c_i + c)
    c_i <- the mean of the raw gradients g_i along the way (option II), or the gradient of all rows at x (option I)

Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD: stochastic controlled averaging for federated learning (2020),
Algorithm 1. Its option II reads c_i - c + (x - y) / (K lr), which is that mean; written as a mean it does not divide by
lr, and stays right with momentum and weight decay. The optimizer sees the corrected gradient.

Where this goes beyond the paper: a silo that takes part for the first time has no variate yet, and trains uncorrected.
In the first round that is the paper's; for a late joiner the paper's c_i = 0 would add c to its own gradient, and so
double the step. A server that remembers the c_i may hand each silo its correction, c - c_i or less, in place of c. And
a correction may be bounded:

    y <- y - lr (g_i(y) + d min(1, |g_i(y)| / |d|)),    d = c - c_i

for d is as old as the round, and after many large steps may outweigh the gradient.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import optax

from confrere.clients.batches import Plan, everything
from confrere.clients.gradient import shared_model, with_l2
from confrere.clients.sgd import walk
from confrere.core import Block, Client, Loss, Tree, rows_where

Option = Literal["I", "II"]
Sends = Literal["change", "value", "both"]
Receives = Literal["variate", "correction"]


def controlled(
    loss: Loss, tx: optax.GradientTransformation, plan: Plan, option: Option = "II", sends: Sends = "change", l2=None,
    receives: Receives = "variate", bounded: bool = False,
) -> Client:  # fmt: skip
    """Train locally with control variates, and send x - y_i with the part `c`.

    sends: as `c` the change of the silo's variate ("change": SCAFFOLD's), the variate itself ("value"), or the change
    and, as a part `raw`, the variate ("both"). receives: as `c` the server's variate, from which the silo's own is
    taken, or the silo's whole correction, from a server that remembers its variate. bounded: shorten the correction, in
    every step, to at most the length of the gradient that it corrects.
    """
    regularised = with_l2(loss, l2)
    grad = jax.grad(regularised)

    def init(params):
        zero = jax.tree.map(jnp.zeros_like, params)
        return {"x": params, "c": zero}, (jnp.int32(0), jax.tree.map(jnp.copy, zero))

    def trained(x: Tree, correction: Tree, data: Block, count, key) -> tuple[Tree, Tree, jax.Array]:
        """The local model, the sum of the raw gradients, and the number of steps."""

        def step(carry, batch):
            y, state, total, steps = carry
            raw = grad(y, batch)
            by = shortened(correction, raw) if bounded else correction
            updates, state = tx.update(jax.tree.map(jnp.add, raw, by), state, y)
            return optax.apply_updates(y, updates), state, jax.tree.map(jnp.add, total, raw), steps + 1

        start = (x, tx.init(x), jax.tree.map(jnp.zeros_like, x), jnp.int32(0))
        y, _, total, steps = walk(step, start, data, plan, count, key)
        return y, total, steps

    def update(inbox, private, data, ctx):
        count, own = private
        x, c = inbox.shared["x"], inbox.shared["c"]
        correction = c
        if receives == "variate":
            correction = jax.tree.map(lambda c, own: jnp.where(count > 0, c - own, 0), c, own)
        y, total, steps = trained(x, correction, data, count, ctx.key)
        if option == "I":
            new = grad(x, everything(data))
        else:
            new = jax.tree.map(lambda t: t / jnp.maximum(steps, 1).astype(t.dtype), total)
        new = rows_where(steps > 0, new, own)
        change = jax.tree.map(jnp.subtract, new, own)
        message = {"x": jax.tree.map(jnp.subtract, x, y), "c": new if sends == "value" else change}
        return message | ({"raw": new} if sends == "both" else {}), (count + 1, new)

    return Client(init, update, shared_model)


def shortened(correction: Tree, gradient: Tree) -> Tree:
    """The correction, at most as long as the gradient: both lengths over the whole tree; none for a zero gradient."""
    both = jax.tree.leaves((correction, gradient))
    scale = jnp.stack([jnp.abs(a).max(initial=0) for a in both]).max()  # squares of numbers up to 1 do not overflow
    scale = jnp.where(scale > 0, scale, 1)
    ours, limit = (optax.tree.norm(jax.tree.map(lambda a: a / scale, tree)) for tree in (correction, gradient))
    longer = ours > limit
    factor = jnp.where(longer, limit / jnp.where(longer, ours, 1), 1)
    return jax.tree.map(lambda a: factor.astype(a.dtype) * a, correction)
