"""Weights between one silo and everybody: those of the gradient of lambda f_user + (1 - lambda) sum_j p_j f_j.

    W = lambda e_user + (1 - lambda) p,   p: the shares of those present, by rows or equal

The objective is that of data interpolation (Dapper): Mansour, Mohri, Ro, Suresh: Three approaches for personalization
with applications to federated learning (2020). There a server draws rows of a common data set; here no row leaves its
silo, and what is mixed is the gradients at the user's model, whose weighted mean is the gradient of the same objective.
"""

import jax.numpy as jnp

from confrere.core import Weights, normalise, present


def interpolated(user, own_share, common: Weights) -> Weights:
    """`own_share` of the weight for the user, the rest as `common` shares it out; without the user, none.

    >>> import confrere as cf
    >>> w = cf.weights.interpolated(0, 0.5, cf.weights.by_size())
    >>> ctx = cf.Ctx(round=1, active=[True, True], size=[10, 30])
    >>> w.update(cf.Geometry.from_messages([[1.0], [2.0]]), w.init(2), ctx)[0].tolist()
    [[0.625, 0.375]]
    """

    def update(geometry, state, ctx):
        W, state = common.update(geometry, state, ctx)
        share, _ = normalise(jnp.where(present(ctx), W, 0))
        return own_share * (jnp.arange(share.shape[1]) == user) + (1 - own_share) * share, state

    return Weights(common.init, update, needs=user)
