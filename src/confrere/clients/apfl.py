"""The client that mixes a model of its own with the common one, and learns how much of each: APFL's.

Both models and the share are stepped on every batch xi, all from the values before the step:

    m = alpha v + (1 - alpha) w
    w     <- w - lr grad f_i(w; xi)                              then w is averaged over silos, round by round
    v     <- v - lr alpha grad f_i(m; xi)
    alpha <- clip(alpha - lr <v - w, grad f_i(m; xi)>, 0, 1)     if it is adaptive

Deng, Kamani, Mahdavi: Adaptive personalized federated learning (2020), Algorithm 1 and its section on adaptive mixing.
The three steps are one gradient step on f_i(w) + f_i(alpha v + (1 - alpha) w*) with w* = w held fixed. The paper may
skip silos and averages after tau steps; here a round is a pass or some steps, and whoever is absent keeps v and alpha.
Momentum and weight decay, which are not in the paper, are those of the two models; alpha is stepped without.
"""

import jax
import jax.numpy as jnp
import optax

from confrere.clients.batches import Plan
from confrere.clients.gradient import with_l2
from confrere.clients.sgd import direction, train
from confrere.core import Client, Loss, Tree


def blend(share, own: Tree, common: Tree) -> Tree:
    """share own + (1 - share) common."""
    return jax.tree.map(lambda v, w: (share * v + (1 - share) * w).astype(w.dtype), own, common)


def share_in_unit() -> optax.GradientTransformation:
    """Shorten the step of the share, the third of three parts, so that it ends between 0 and 1."""

    def shorten(updates, params):
        common, own, step = updates
        return common, own, jnp.clip(params[2] + step, 0, 1) - params[2]

    return optax.stateless(shorten)


def apfl(loss: Loss, lr, alpha, plan: Plan, adaptive: bool = True, momentum=None, weight_decay=None, l2=None) -> Client:
    """Train w, v and alpha side by side and send x - w; the personal model is alpha v + (1 - alpha) x."""
    f = with_l2(loss, l2)
    models = optax.masked(direction(momentum, weight_decay), (True, True, False))  # w and v, not alpha
    tx = optax.chain(models, optax.scale(-lr), share_in_unit())

    def both(params, batch):
        common, own, share = params
        share = share if adaptive else jax.lax.stop_gradient(share)
        return f(common, batch) + f(blend(share, own, jax.lax.stop_gradient(common)), batch)

    def init(params):
        share = jnp.asarray(alpha, jax.tree.leaves(params)[0].dtype)
        return {"x": params}, (jnp.int32(0), params, share)

    def update(inbox, private, data, ctx):
        count, own, share = private
        x = inbox.shared["x"]
        w, own, share = train(both, tx, (x, own, share), data, plan, count, ctx.key)
        return {"x": jax.tree.map(jnp.subtract, x, w)}, (count + 1, own, jnp.clip(share, 0, 1))

    def personal(inbox, private, data):
        _, own, share = private
        return blend(share, own, inbox.shared["x"])

    return Client(init, update, personal)
