"""The client whose personal model lies between the common model and one that it trained alone.

    w_i <- w_i - lr grad f_i(w_i)                    alone, beside the training of the common model x
    personal = lambda w_i + (1 - lambda) x           lambda given, or the best of 0, 0.1, ..., 1 on held-out own rows

Mansour, Mohri, Ro, Suresh: Three approaches for personalization with applications to federated learning (2020), the
section on model interpolation. Where it departs from the paper: there the common model, the local models and lambda are
trained jointly (its algorithm Mapper); here the common model is FedAvg's and lambda is chosen afterwards, so that the
common model is of use to everybody (`apfl` trains the mixture itself). Parameters are mixed rather than predictions,
which is the same for scores of linear models alone.
"""

import jax
import jax.numpy as jnp

from confrere.clients.apfl import blend
from confrere.clients.batches import Plan, everything
from confrere.clients.gradient import with_l2
from confrere.clients.held_out import hold_out
from confrere.clients.sgd import local_optimizer, train
from confrere.core import Client, Loss

CANDIDATES = 11  # shares that are tried, from 0 to 1


def interpolated(
    client: Client, loss: Loss, lr, plan: Plan, own_share=None, momentum=None, weight_decay=None, l2=None
) -> Client:
    """The same client, whose personal model is mixed with one that is trained alone.

    Without `own_share` every fifth row trains neither model, and the share with the least loss on those rows is taken;
    of equal ones the smallest, so that a silo of fewer than five rows has the common model.
    """
    tx = local_optimizer(lr, momentum, weight_decay)
    own_loss = with_l2(loss, l2)
    chooses = own_share is None

    def init(params):
        shared, private = client.init(params)
        return shared, (private, params)

    def update(inbox, private, data, ctx):
        count, own = private
        rows = hold_out(data)[0] if chooses else data
        message, new = client.update(inbox, count, rows, ctx)
        return message, (new, train(own_loss, tx, own, rows, plan, count, ctx.key))

    def personal(inbox, private, data):
        own, common = private[1], inbox.shared["x"]
        if not chooses:
            return blend(own_share, own, common)
        held = everything(hold_out(data)[1])
        shares = jnp.linspace(0, 1, CANDIDATES, dtype=jax.tree.leaves(common)[0].dtype)
        losses = jax.vmap(lambda share: loss(blend(share, own, common), held))(shares)
        return blend(shares[losses.argmin()], own, common)

    return Client(init, update, personal)
