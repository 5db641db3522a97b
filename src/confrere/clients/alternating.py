"""The client that trains one part of its model while the other is frozen, and then the other way round: FedRep's.

    h_i <- steps on f_i(h, b) from h = h_i with the body b as received
    b_i <- steps on f_i(h_i, b) from there with the head h_i as it now is

Collins, Hassani, Mokhtari, Shakkottai: Exploiting shared representations for personalized federated learning (2021),
Algorithm 1. The message is x - y_i of both parts; `keep` sees to it that the head stays where it is.
"""

import jax
import jax.numpy as jnp

from confrere.clients.batches import Plan
from confrere.clients.gradient import shared_model, with_l2
from confrere.clients.sgd import local_optimizer, train
from confrere.core import Client, Loss
from confrere.layers import Filter, merge, split


def alternating(
    loss: Loss, lr, head: Filter, head_plan: Plan, body_plan: Plan, momentum=None, weight_decay=None, l2=None
) -> Client:
    """Train the leaves that `head` chooses by `head_plan`, then the others by `body_plan`; send x - y_i."""
    regularised = with_l2(loss, l2)
    tx = local_optimizer(lr, momentum, weight_decay)

    def update(inbox, count, data, ctx):
        x = inbox.shared["x"]
        own, body = split(x, head)
        head_key, body_key = jax.random.split(ctx.key)

        def with_body(h, batch):
            return regularised(merge(h, body), batch)

        own = train(with_body, tx, own, data, head_plan, count, head_key)

        def with_head(b, batch):
            return regularised(merge(own, b), batch)

        body = train(with_head, tx, body, data, body_plan, count, body_key)
        return {"x": jax.tree.map(jnp.subtract, x, merge(own, body))}, count + 1

    return Client(lambda params: ({"x": params}, jnp.int32(0)), update, shared_model)
