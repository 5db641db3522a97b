"""Weight Erosion (Grimberg et al. 2020) from the contract's parts, on the Titanic: whom does each group listen to?

Every silo starts with weight 1. In each round a silo's weight wears away by how far its gradient is from the user's,
and the user's model moves along the weighted mean of the gradients. See docs/algorithms.md.
"""

import sys

import jax.numpy as jnp
import optax

import confrere as cf


def erosion(user, p_d, p_s, batch):
    """Who counts, and for how much. A weight rule sees distances between messages, never a message."""

    def start(silos):
        return jnp.ones(silos), jnp.zeros((), int)  # the weights, and the rounds that are over

    def erode(geometry, state, ctx):
        alpha, rounds = state
        distance = jnp.sqrt(geometry.sq(user)) / geometry.norm(user)  # |g_i - g_user| / |g_user|
        passes = rounds * batch // ctx.size  # how often silo i's rows have been used
        alpha = jnp.maximum(0, alpha - (1 + p_s * passes) * p_d * distance)
        return alpha[None], (alpha, rounds + 1)

    return cf.Weights(start, erode, needs=user)


def weight_erosion(loss, user, lr, p_d, p_s, batch):
    """A client, which works inside a silo, and a server, which works between silos."""
    rule = cf.weighted(erosion(user, p_d, p_s, batch))
    server = cf.mixers.server(rule, x=cf.mixers.step(optax.sgd(lr)))
    return cf.federate(cf.clients.gradient(loss, batch), server)


silos = cf.data.titanic("age-strict", seed=0)  # four groups of passengers by age; half of each is for test
for user in map(silos.index, sys.argv[1:] or silos.names):  # or: python weight_erosion_in_50_lines.py 36+
    numbers = {"user": user, "lr": 1.5, "p_d": 0.01, "p_s": 0.2}
    recipe = cf.Recipe.of(weight_erosion, "erosion by hand", {"batch": 161}, **numbers)
    history = cf.simulate(recipe, cf.models.logistic(), silos.for_user(user), rounds=30, user=user)
    weights = history.weights[:, 0]  # [rounds, silos]
    print(f"{silos.names[user]}: accuracy {history.metrics['accuracy'][-1].item():.3f}. It listened to")
    for name, alpha in zip(silos.names, weights.T, strict=True):
        print(f"    {name:8} {'#' * round(40 * alpha.mean()):40} {alpha[0]:.2f} at first, {alpha[-1]:.2f} at last")
