"""How a network is laid out for products with the models of all nodes.

Every node has K slots for neighbours, [K, n], unrolled: on CPUs several times as fast as sparse formats, which scatter.
Free slots name the node itself, so that they add w_i - w_i = 0. Were there slots for the neighbours of a hub, all other
nodes would carry them empty: slots end at a few times the mean degree, and edges beyond are added by segments.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

MOST = 4  # slots up to so many times the mean degree


class Layout(NamedTuple):
    """The neighbours of every node, in slots and, for hubs, in a list of directed edges sorted by receiver."""

    neighbour: jax.Array  # [K, n] int32
    weight: jax.Array | None  # [K, n]; None: all weights are 1
    receiver: jax.Array  # [M] int32
    sender: jax.Array  # [M] int32
    strength: jax.Array  # [M]
    degree: jax.Array  # [n]

    def differences(self, W: jax.Array) -> jax.Array:
        """sum_j A_ij (w_i - w_j) for every node: L W, [n, d]."""
        total = jnp.zeros_like(W)
        for k in range(self.neighbour.shape[0]):
            gap = W - W[self.neighbour[k]]
            total = total + (gap if self.weight is None else self.weight[k, :, None] * gap)
        if self.receiver.shape[0]:
            gap = self.strength[:, None] * (W[self.receiver] - W[self.sender])
            total = total + jax.ops.segment_sum(gap, self.receiver, W.shape[0], indices_are_sorted=True)
        return total

    def sums(self, W: jax.Array) -> jax.Array:
        """sum_j A_ij w_j for every node: A W, [n, d]."""
        return self.degree[:, None] * W - self.differences(W)


def lay_out(n: int, edges: np.ndarray, weights: np.ndarray, dtype) -> Layout:
    """The layout of a network whose edges [E, 2] have these weights [E]."""
    receiver, sender = np.concatenate([edges, edges[:, ::-1]]).T
    both = np.concatenate([weights, weights])
    order = np.argsort(receiver, kind="stable")
    receiver, sender, both = receiver[order], sender[order], both[order]
    count = np.bincount(receiver, minlength=n)
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    slot = np.arange(len(receiver)) - first[receiver]
    K = min(int(count.max(initial=0)), -(-MOST * len(receiver) // max(n, 1)))
    inside = slot < K
    neighbour = np.tile(np.arange(n, dtype=np.int32), (K, 1))
    neighbour[slot[inside], receiver[inside]] = sender[inside]
    weight = None
    if not (weights == 1).all():
        padded = np.zeros((K, n))
        padded[slot[inside], receiver[inside]] = both[inside]
        weight = jnp.asarray(padded, dtype)
    rest = [jnp.asarray(a[~inside], jnp.int32) for a in (receiver, sender)]
    degree = np.bincount(receiver, both, minlength=n)
    return Layout(
        jnp.asarray(neighbour), weight, rest[0], rest[1], jnp.asarray(both[~inside], dtype), jnp.asarray(degree, dtype)
    )
