"""Weights along the edges of a network: every silo listens to its neighbours, by the weight of the edge."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from confrere.core import Weights


def graph(network: Any) -> Weights:
    """Every silo is a receiver, and W is the adjacency matrix of a `networks.Network`; its mass is the degree.

    >>> import confrere as cf
    >>> w = cf.weights.graph(cf.networks.Network.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0]))
    >>> ctx = cf.Ctx(round=1, active=[True, True, True], size=[10, 30, 20])
    >>> w.update(cf.Geometry.from_messages([[1.0], [2.0], [3.0]]), w.init(3), ctx)[0].tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 2.0], [0.0, 2.0, 0.0]]
    """
    adjacency = np.asarray(network.adjacency().toarray())

    def update(geometry, state, ctx):
        n = len(ctx.size)
        if n != network.n:
            raise ValueError(f"the network has {network.n} nodes, but there are {n} silos")
        return jnp.asarray(adjacency, jnp.result_type(float)), state

    return Weights(lambda n: (), update)
