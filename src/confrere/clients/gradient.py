"""The client that sends one gradient a round: FedSGD's, and Weight Erosion's in its first form."""

import jax
import jax.numpy as jnp

from confrere.clients.batches import Order, plan_for
from confrere.core import Client, Loss, Tree


def shared_model(inbox, private, data):
    """The personal model is the one received."""
    return inbox.shared["x"]


def with_l2(loss: Loss, l2) -> Loss:
    """loss + l2/2 |params|^2 over all parameters, biases included; `l2=None` leaves the loss as it is."""
    if l2 is None:
        return loss

    def regularised(params, batch):
        return loss(params, batch) + l2 / 2 * sum(jnp.sum(jnp.square(a)) for a in jax.tree.leaves(params))

    return regularised


def pulled(loss: Loss, anchor: Tree, pull) -> Loss:
    """loss + pull/2 |params - anchor|^2."""

    def regularised(params, batch):
        gaps = jax.tree.map(lambda a, b: jnp.sum(jnp.square(a - b)), params, anchor)
        return loss(params, batch) + pull / 2 * sum(jax.tree.leaves(gaps))

    return regularised


def gradient(loss: Loss, batch: int | None = None, order: Order = "shuffled", l2=None) -> Client:
    """Send the gradient of the received model on one batch.

    `batch=None` takes all rows. `order="shuffled"` draws a fresh batch without replacement in every round,
    `"cyclic"` takes consecutive slices in the order of the rows, as the authors of Weight Erosion did.
    """
    grad = jax.grad(with_l2(loss, l2))
    plan = plan_for(order, batch, steps=1, epochs=None)

    def update(inbox, count, data, ctx):
        only = jax.tree.map(lambda a: a[0], plan.draw(data.size, count, ctx.key, data.y.shape[0]))
        return {"x": grad(inbox.shared["x"], plan.batch(data, only))}, count + 1

    return Client(lambda params: ({"x": params}, jnp.int32(0)), update, shared_model)
