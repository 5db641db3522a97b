"""The client of FedAMP: it trains from the model that was mixed for it, is pulled towards it, and sends its own.

    w_i = argmin_w f_i(w) + pull/2 |w - u_i|^2, by some steps from u_i

Huang, Chu, Zhou, Wang, Liu, Pei, Zhang: Personalized cross-silo federated learning on non-IID data (2021), Algorithm 1;
`pull` is its lambda / alpha_k. The paper solves for w_i; here a few steps go towards it.
"""

import jax.numpy as jnp

from confrere.clients.batches import Plan
from confrere.clients.gradient import pulled, with_l2
from confrere.clients.sgd import local_optimizer, train
from confrere.core import Client, Loss


def attentive(loss: Loss, lr, pull, plan: Plan, momentum=None, weight_decay=None, l2=None) -> Client:
    """Train from the received model, pulled towards it, and send the model itself: a client for `peers`.

    The personal model is the silo's own, as it last sent it.
    """
    objective = with_l2(loss, l2)
    tx = local_optimizer(lr, momentum, weight_decay)

    def update(inbox, private, data, ctx):
        count, _ = private
        u = inbox.shared["x"]
        own = train(pulled(objective, u, pull), tx, u, data, plan, count, ctx.key)
        return {"x": own}, (count + 1, own)

    def init(params):
        return {"x": params}, (jnp.int32(0), params)

    return Client(init, update, lambda inbox, private, data: private[1])
