"""The client of personalised MAML: it trains the model that is best after a step on the silo's own rows.

    F(w) = f(w - a g(w)),    gradient of F at w = (1 - a H(w)) g(w - a g(w))

with g and H the gradient and the second derivatives of the silo's loss f; H is never formed, only multiplied with a
vector. To first order H is left out.

Fallah, Mokhtari, Ozdaglar: Personalized federated learning with theoretical guarantees: a model-agnostic meta-learning
approach (2020), Algorithm 1. There every step draws three batches, for the inner gradient, the outer one and H; here H
is taken on the batch of the inner gradient, so that a step follows the exact gradient of f(w - a g(w; D); D').
"""

import jax

from confrere.clients.batches import Plan
from confrere.clients.gradient import with_l2
from confrere.clients.sgd import fine_tuned, local_optimizer, training
from confrere.core import Batch, Client, Loss, Tree


def in_pairs(plan: Plan) -> Plan:
    """Two independent batches for every step, stacked: the rows of the inner gradient and those of the outer."""

    def draw(size, count, key, m):
        one = lambda k: plan.draw(size, count, k, m)  # noqa: E731
        return jax.vmap(one, out_axes=1)(jax.random.split(key))

    return Plan(draw, jax.vmap(plan.batch, (None, 0)))


def both(batch: Batch) -> tuple[Batch, Batch]:
    """The batches of the inner and the outer gradient; one that is no pair is both."""
    if batch.live.ndim == 1:
        return batch, batch
    first, second = (jax.tree.map(lambda a, k=k: a[k], batch) for k in (0, 1))
    return first, second


def after_steps(loss: Loss, lr, steps: int = 1, first_order: bool = False) -> Loss:
    """The loss after some gradient steps on it: F above. `first_order` takes those steps for constants."""
    grad = jax.grad(loss)

    def value(params, batch):
        inner, outer = both(batch)

        def move(p: Tree) -> Tree:
            g = grad(p, inner)
            g = jax.lax.stop_gradient(g) if first_order else g
            return jax.tree.map(lambda a, b: a - (lr * b).astype(a.dtype), p, g)

        for _ in range(steps):
            params = move(params)
        return loss(params, outer)

    return value


def meta(
    loss: Loss, lr, inner_lr, plan: Plan, inner_steps: int = 1, first_order: bool = False, momentum=None,
    weight_decay=None, l2=None,
) -> Client:  # fmt: skip
    """Train on the loss after inner steps, and send x - y_i; the personal model takes those steps on all own rows.

    Momentum and weight decay are of the outer steps.
    """
    ahead = after_steps(with_l2(loss, l2), inner_lr, inner_steps, first_order)
    client = training(lambda x: ahead, local_optimizer(lr, momentum, weight_decay), plan)
    return fine_tuned(client, loss, inner_lr, inner_steps, l2)
