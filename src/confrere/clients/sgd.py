"""The client that trains for a while on its own rows and sends how far it came: FedAvg's.

To a server the message is the pseudo-gradient x - y_i, so that a plain step of size one is the average of the
local models.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from confrere.clients.batches import Order, Plan, everything, plan_for
from confrere.clients.gradient import shared_model, with_l2
from confrere.core import Batch, Block, Client, Loss, Tree, rows_where


def local_optimizer(lr, momentum=None, weight_decay=None) -> optax.GradientTransformation:
    """SGD with optional momentum and decoupled weight decay."""
    return optax.chain(direction(momentum, weight_decay), optax.scale(-lr))


def direction(momentum=None, weight_decay=None) -> optax.GradientTransformation:
    """Where SGD goes, before it is known how far: the gradient, with optional momentum and weight decay."""
    parts = [optax.trace(momentum)] if momentum is not None else []
    parts += [optax.add_decayed_weights(weight_decay)] if weight_decay is not None else []
    return optax.chain(*parts) if parts else optax.identity()


def walk(step: Callable[[Tree, Batch], Tree], start: Tree, data: Block, plan: Plan, count, key) -> Tree:
    """Step through the batches of a plan; one without a live row changes nothing."""

    def through(carry, drawn):
        batch = plan.batch(data, drawn)
        return rows_where(batch.live.any(), step(carry, batch), carry), None

    return jax.lax.scan(through, start, plan.draw(data.size, count, key, data.y.shape[0]))[0]


def train(loss: Loss, tx: optax.GradientTransformation, params: Tree, data: Block, plan: Plan, count, key) -> Tree:
    """Walk through a plan from `params`; a step without a live row changes nothing, not even momentum."""
    grad = jax.grad(loss)

    def step(carry, batch):
        params, state = carry
        updates, state = tx.update(grad(params, batch), state, params)
        return optax.apply_updates(params, updates), state

    return walk(step, (params, tx.init(params)), data, plan, count, key)[0]


def training(objective: Callable[[Tree], Loss], tx: optax.GradientTransformation, plan: Plan) -> Client:
    """Train on objective(x) from the received model x, and send x - y_i."""

    def update(inbox, count, data, ctx):
        x = inbox.shared["x"]
        y = train(objective(x), tx, x, data, plan, count, ctx.key)
        return {"x": jax.tree.map(jnp.subtract, x, y)}, count + 1

    return Client(lambda params: ({"x": params}, jnp.int32(0)), update, shared_model)


def sgd(
    loss: Loss,
    lr,
    batch: int | None = 32,
    epochs: int | None = None,
    steps: int | None = None,
    order: Order = "shuffled",
    momentum=None,
    weight_decay=None,
    l2=None,
) -> Client:
    """Train locally for `epochs` passes (default 1) or `steps` steps, and send x - y_i.

    `l2` is part of the objective (l2/2 |params|^2); `weight_decay` is decoupled from it and from momentum.
    The optimizer starts afresh in every round.
    """
    regularised = with_l2(loss, l2)
    tx = local_optimizer(lr, momentum, weight_decay)
    return training(lambda x: regularised, tx, plan_for(order, batch, steps, epochs))


def fine_tuned(client: Client, loss: Loss, lr, steps: int, l2=None) -> Client:
    """The same client, whose personal model is the received one after some full-batch steps on its own rows."""
    grad = jax.grad(with_l2(loss, l2))

    def personal(inbox, private, data):
        batch = everything(data)

        def step(params, _):
            new = jax.tree.map(lambda p, g: p - (lr * g).astype(p.dtype), params, grad(params, batch))
            return rows_where(data.size > 0, new, params), None

        return jax.lax.scan(step, client.personal(inbox, private, data), length=steps)[0]

    return client._replace(personal=personal)
