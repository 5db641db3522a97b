"""How a network is laid out for products with the models of all nodes.

Every node has K slots for neighbours, [K, n], unrolled: on CPUs several times as fast as sparse formats, which scatter.
Free slots name the node itself, so that they add w_i - w_i = 0. Were there slots for the neighbours of a hub, all other
nodes would carry them empty: slots end at a few times the mean degree, and edges beyond are added by segments.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse

from confrere.networks.pieces import handed, room

MOST = 4  # slots up to so many times the mean degree


class Layout(NamedTuple):
    """The neighbours of every node, in slots and, for hubs, in a list of directed edges sorted by receiver."""

    neighbour: jax.Array  # [K, n] int32
    weight: jax.Array | None  # [K, n]; None: all weights are 1
    receiver: jax.Array  # [M] int32
    sender: jax.Array  # [M] int32
    strength: jax.Array  # [M]
    degree: jax.Array  # [n]

    def differences(self, W: jax.Array, among: jax.Array | None = None) -> jax.Array:
        """sum_j A_ij (w_i - w_j) for every node: L W, [n, d].

        `among`: the models that neighbours are numbered in, where these are more than the nodes' own.
        """
        among = W if among is None else among
        total = jnp.zeros_like(W)
        for k in range(self.neighbour.shape[0]):
            gap = W - among[self.neighbour[k]]
            total = total + (gap if self.weight is None else self.weight[k, :, None] * gap)
        if self.receiver.shape[0]:
            gap = self.strength[:, None] * (W[self.receiver] - among[self.sender])
            total = total + jax.ops.segment_sum(gap, self.receiver, W.shape[0], indices_are_sorted=True)
        return total

    def sums(self, W: jax.Array) -> jax.Array:
        """sum_j A_ij w_j for every node: A W, [n, d]."""
        return self.degree[:, None] * W - self.differences(W)


class Directed(NamedTuple):
    """Edges in both directions, sorted by receiver, and which edge of its receiver each is, counted from 0."""

    receiver: np.ndarray  # [2E]
    sender: np.ndarray
    weight: np.ndarray
    slot: np.ndarray


def directed(adjacency: sparse.csr_array) -> Directed:
    """The edges of a network's matrix of weights."""
    count = np.diff(adjacency.indptr)
    receiver = np.repeat(np.arange(len(count), dtype=np.int32), count)
    slot = np.arange(len(adjacency.data), dtype=np.int32) - np.repeat(adjacency.indptr[:-1], count)
    return Directed(receiver, adjacency.indices, adjacency.data, slot)


def slots_for(n: int, both: Directed) -> int:
    """K: as many slots as the largest degree wants, but not many more than the mean degree."""
    return min(int(both.slot.max(initial=-1)) + 1, -(-MOST * len(both.slot) // max(n, 1)))


def in_slots(n: int, both: Directed, K: int, *, weighted: bool) -> tuple[np.ndarray, np.ndarray | None, Directed]:
    """Neighbours [K, n] and their weights [K, n] of n receivers, and the edges that have no slot."""
    beyond = np.flatnonzero(both.slot >= K)
    inside = Directed(*(np.delete(a, beyond) for a in both)) if len(beyond) else both
    neighbour = room((K, n), np.int32)
    neighbour[:] = np.arange(n, dtype=np.int32)
    place = inside.slot.astype(np.int64) * n + inside.receiver
    neighbour.reshape(-1)[place] = inside.sender
    weight = None
    if weighted:
        weight = np.zeros((K, n))
        weight.reshape(-1)[place] = inside.weight
    return neighbour, weight, Directed(*(a[beyond] for a in both))


def lay_out(adjacency: sparse.csr_array, order: np.ndarray | None = None) -> Layout:
    """The layout of a network with this matrix of weights, on the host; with an order [n], of its nodes in that order.

    Weights are in double precision: `in_precision` hands it to JAX.
    """
    n, both = len(adjacency.indptr) - 1, directed(adjacency)
    K, weighted = slots_for(n, both), not (adjacency.data == 1).all()
    count = np.diff(adjacency.indptr).astype(float)
    degree = np.bincount(both.receiver, both.weight, minlength=n) if weighted else count
    if order is not None:
        place = np.empty(n, np.int32)
        place[order] = np.arange(n, dtype=np.int32)
        both, degree = both._replace(receiver=place[both.receiver], sender=place[both.sender]), degree[order]
    neighbour, weight, rest = in_slots(n, both, K, weighted=weighted)
    if order is not None:
        sorted_ = np.argsort(rest.receiver, kind="stable")
        rest = Directed(*(a[sorted_] for a in rest))
    arrays: Any = neighbour, weight, rest.receiver, rest.sender, rest.weight, degree
    return Layout(*arrays)


def in_precision(layout: Any, dtype: Any) -> Layout:
    """A layout from the host in JAX, whose weights are of some precision; its neighbours are not copied."""
    numbers = [None if a is None else a.astype(dtype) for a in (layout.weight, layout.strength, layout.degree)]
    weight, receiver, sender, strength, degree = jax.device_put(
        (numbers[0], layout.receiver.astype(np.int32), layout.sender.astype(np.int32), numbers[1], numbers[2])
    )
    return Layout(handed(layout.neighbour), weight, receiver, sender, strength, degree)
