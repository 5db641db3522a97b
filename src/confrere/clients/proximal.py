"""Clients that train with a pull: FedProx's towards the received model, pFedMe's on the Moreau envelope of its loss.

FedProx trains, from the received model x, on

    f(y) + mu/2 |y - x|^2

Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated optimization in heterogeneous networks (2020), Algorithm 2. How
exactly the local problem is solved (its gamma) follows from the number of local steps.

pFedMe trains on the envelope F instead of f, whose gradient needs no second derivatives:

    F(w) = min over theta of f(theta) + pull/2 |theta - w|^2,    gradient of F at w = pull (w - theta(w))
    w <- w - lr pull (w - theta(w))

Dinh, Tran, Nguyen: Personalized federated learning with Moreau envelopes (2020), Algorithm 1; theta is the silo's own
model, `pull` its lambda. The minimum is approached by `inner_steps` gradient steps from w on the rows of the step; the
paper leaves open how. The own model is theta at the received model on all rows of the silo, where the authors' program
keeps the last theta of training: so a silo that was away has one that goes with the model of today.
"""

import jax

from confrere.clients.batches import Plan, everything
from confrere.clients.gradient import pulled, with_l2
from confrere.clients.sgd import local_optimizer, training
from confrere.core import Batch, Client, Loss, Tree


def proximal(loss: Loss, lr, mu, plan: Plan, momentum=None, weight_decay=None, l2=None) -> Client:
    """Train like `sgd`, held back by mu/2 |y - x|^2, and send x - y_i; mu = 0 is `sgd`."""
    regularised = with_l2(loss, l2)
    return training(lambda x: pulled(regularised, x, mu), local_optimizer(lr, momentum, weight_decay), plan)


def prox(loss: Loss, params: Tree, batch: Batch, pull, lr, steps: int) -> Tree:
    """theta(params): the minimum of loss + pull/2 |theta - params|^2, approached by gradient steps from `params`."""
    grad = jax.grad(pulled(loss, params, pull))

    def step(theta, _):
        return jax.tree.map(lambda t, g: t - (lr * g).astype(t.dtype), theta, grad(theta, batch)), None

    return jax.lax.scan(step, params, length=steps)[0]


def envelope(loss: Loss, pull, lr, steps: int) -> Loss:
    """The Moreau envelope of a loss; its gradient is pull (params - theta)."""

    def value(params, batch):
        theta = jax.lax.stop_gradient(prox(loss, params, batch, pull, lr, steps))
        return pulled(loss, params, pull)(theta, batch)

    return value


def moreau(
    loss: Loss, lr, inner_lr, pull, inner_steps: int, plan: Plan, momentum=None, weight_decay=None, l2=None
) -> Client:
    """Train the common model on the envelopes, and send w - w_i; the personal model is theta at the one received.

    Momentum and weight decay are of the common model's steps.
    """
    own, tx = with_l2(loss, l2), local_optimizer(lr, momentum, weight_decay)
    client = training(lambda x: envelope(own, pull, inner_lr, inner_steps), tx, plan)

    def personal(inbox, private, data):
        return prox(own, inbox.shared["x"], everything(data), pull, inner_lr, inner_steps)

    return client._replace(personal=personal)
