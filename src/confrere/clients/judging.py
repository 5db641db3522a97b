"""The client of FedFomo: it judges the models of all silos on validation rows of its own, and mixes them accordingly.

    w_ij  = max(0, L_i(theta_i) - L_i(theta_j)) / |theta_j - theta_i|      L_i: the loss on silo i's validation rows
    theta_i <- theta_i + sum_j w_ij (theta_j - theta_i) / sum_j w_ij       nobody is better: theta_i stays

and from there local training, whose result is sent. theta_i is the silo's mix before its last training, so that its own
trained model is one of the theta_j, judged like the others.

Zhang, Sapra, Fidler, Yeung, Alvarez: Personalized federated learning with first order model optimization (2021).
Where this departs from the paper: everybody receives all models, while there the server picks M
of them for each, by the weights so far and with some chance; a silo that is absent is represented by its last model.
"""

import jax
import jax.numpy as jnp

from confrere.clients.batches import everything
from confrere.clients.held_out import hold_out
from confrere.core import Batch, Client, Inbox, Loss, Tree


def weights_of(models: Tree, there: jax.Array, own: Tree, loss: Loss, rows: Batch) -> jax.Array:
    """How much each of the models [n] that are there lowers the loss, per distance from the own one; sums to 1 or 0."""
    before = loss(own, rows)

    def gain(model):
        squares = jax.tree.map(lambda a, b: jnp.sum(jnp.square(a - b)), model, own)
        distance = jnp.sqrt(sum(jax.tree.leaves(squares)))
        lowered = before - loss(model, rows)
        return jnp.where((lowered > 0) & (distance > 0), lowered / jnp.where(distance > 0, distance, 1), 0)

    raw = jnp.where(there, jax.vmap(gain)(models), 0)
    total = raw.sum()
    return raw / jnp.where(total > 0, total, 1)


def judging(client: Client, loss: Loss, every: int = 5) -> Client:
    """The same client, trained from a mix of all silos' models that it weighs itself, and sending its model.

    For the mixer `exchange`. The first of `every` rows is for validation, so that a silo with a single row only judges.
    The personal model is the mix of what was received last.
    """

    def listen(inbox: Inbox, own: Tree, rows: Batch) -> tuple[jax.Array, Tree]:
        models = inbox.shared["x"]
        weights = weights_of(models, inbox.mass > 0, own, loss, rows)
        return weights, jax.tree.map(lambda a, b: b + jnp.tensordot(weights.astype(b.dtype), a - b, 1), models, own)

    def init(params):
        shared, private = client.init(params)
        return jax.tree.map(lambda a: a[None], shared), (private, params)

    def update(inbox, private, data, ctx):
        inner, own = private
        training, judged = hold_out(data, every, first=True)
        weights, mix = listen(inbox, own, everything(judged))
        given = Inbox({"x": mix}, inbox.mass)
        message, inner = client.update(given, inner, training, ctx._replace(size=training.size))
        sent = jax.tree.map(jnp.subtract, mix, message["x"])
        return {"x": sent, "told": {"weights": weights}}, (inner, mix)

    def personal(inbox, private, data):
        return listen(inbox, private[1], everything(hold_out(data, every, first=True)[1]))[1]

    return Client(init, update, personal)
