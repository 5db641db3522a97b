"""The client of IFCA: of k models it takes the one that fits its own rows best, trains it, and tells which it was.

    j = argmin_j f_i(x_j);   message: the wrapped client's for x_j, and j, told openly

Ghosh, Chung, Yin, Ramchandran: An efficient framework for clustered federated learning (2020), Algorithm 1.

The paper starts from k random models. Here a client is given one, without a key, so the others are that one moved by
normal numbers of deviation spread / sqrt(inputs), from a key that is made of the bits of the given parameters: another
start gives other models, the same start the same ones, on every machine and in whatever order the silos stand. The
first model is the given one as it is, so that k = 1, and spread = 0, are the wrapped client.
"""

import math

import jax
import jax.numpy as jnp

from confrere.clients.batches import everything
from confrere.clients.gradient import with_l2
from confrere.clients.shuffle import mixed
from confrere.core import Block, Client, Loss, Tree


def key_of(params: Tree) -> jax.Array:
    """A key made of the parameters' own bits, in single precision."""
    word = jnp.uint32(0)
    for leaf in jax.tree.leaves(params):
        bits = jax.lax.bitcast_convert_type(leaf.astype(jnp.float32), jnp.uint32).reshape(-1)
        place = jnp.arange(bits.size, dtype=jnp.uint32)
        word = mixed(word + mixed(bits ^ mixed(place + 1)).sum(dtype=jnp.uint32))
    return jax.random.fold_in(jax.random.key(0), word)


def apart(params: Tree, k: int, spread) -> Tree:
    """k models [k, ...]: the given one, and others around it."""
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(key_of(params), len(leaves))

    def models(leaf, key):
        inputs = leaf.size if leaf.ndim < 2 else math.prod(leaf.shape[:-1])
        moves = jax.random.normal(key, (k, *leaf.shape), leaf.dtype).at[0].set(0)
        return leaf + (spread / math.sqrt(inputs) * moves).astype(leaf.dtype)

    return structure.unflatten([models(leaf, key) for leaf, key in zip(leaves, keys, strict=True)])


def choosing(client: Client, loss: Loss, k: int, spread, l2=None) -> Client:
    """The same client, trained from the one of k models with the lowest loss on the silo's own rows.

    For a mixer that hands out all k, such as `server(weighted(chosen(k, ...)), deliver="all")`. The personal model is
    the one that the silo would choose next. Equal losses, as without rows, choose the first.
    """
    objective = with_l2(loss, l2)

    def choose(models: Tree, data: Block) -> tuple[jax.Array, Tree]:
        losses = jax.vmap(lambda model: objective(model, everything(data)))(models)
        j = jnp.argmin(losses).astype(jnp.int32)
        return j, jax.tree.map(lambda a: a[j], models)

    def init(params):
        shared, private = client.init(params)
        return {"x": apart(shared["x"], k, spread)}, private

    def update(inbox, private, data, ctx):
        j, model = choose(inbox.shared["x"], data)
        message, private = client.update(inbox._replace(shared={"x": model}), private, data, ctx)
        return {**message, "told": {"choice": j}}, private

    def personal(inbox, private, data):
        model = choose(inbox.shared["x"], data)[1]
        return client.personal(inbox._replace(shared={"x": model}), private, data)

    return Client(init, update, personal)
