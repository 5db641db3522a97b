"""The client of multi-task learning: a model of its own, drawn to the mean of everybody's.

All silos together minimise

    sum_i p_i (f_i(w_i) + pull/2 |w_i - mean|^2),    mean = sum_i p_i w_i,

by proximal gradient steps: a silo steps on its own loss alone, from w_i to z_i, and sends z_i; from the mean of the z
it makes

    w_i = (z_i + s mean) / (1 + s),    s = lr pull (steps taken)

which with one step a round is the exact minimum of the coupling near the z, so that any pull is stable: 0 is training
alone, a large one averages.

Evgeniou, Pontil: Regularized multi-task learning (2004), section 2; Smith, Chiang, Sanjabi, Talwalkar: Federated
multi-task learning (2017), mean-regularised form. They solve the dual; in this form Hanzely, Richtárik: Federated
learning of a mixture of global and local models (2020) take gradient steps on either term at random, here both in turn.
With several steps a round the optimum is missed, as FedAvg misses its own. An absent silo counts by its last z; one
that was never there does not count, and has the starting model for z.
"""

import jax
import jax.numpy as jnp

from confrere.clients.batches import Order, live_steps, plan_for
from confrere.clients.gradient import with_l2
from confrere.clients.sgd import local_optimizer, train
from confrere.core import Client, Loss


def coupled(
    loss: Loss, lr, pull, batch: int | None = None, epochs: int | None = None, steps: int | None = None,
    order: Order = "shuffled", l2=None,
) -> Client:  # fmt: skip
    """Train the silo's own model and send it; what comes back is the mean of all, to which it is drawn."""
    plan, tx, own = plan_for(order, batch, steps, epochs), local_optimizer(lr), with_l2(loss, l2)

    def drawn(inbox, z, data):
        s = lr * pull * live_steps(data.size, order, batch, steps, epochs)
        share = 1 / (1 + 1 / s)  # s / (1 + s), also where s is infinite
        return jax.tree.map(lambda a, mean: a + share.astype(a.dtype) * (mean - a), z, inbox.shared["x"])

    def update(inbox, private, data, ctx):
        count, z = private
        z = train(own, tx, drawn(inbox, z, data), data, plan, count, ctx.key)
        return {"x": z}, (count + 1, z)

    def init(params):
        return {"x": params}, (jnp.int32(0), params)

    return Client(init, update, lambda inbox, private, data: drawn(inbox, private[1], data))
