"""Directions in which GTVMin with quadratic losses is flat: neither a row nor the coupling sees them.

Such a direction is the same for all nodes of a component in every coupled coordinate, and no row of theirs sees it. All
nodes count alike in the judgement, and all features (`ranks`): neither units nor the strength of the coupling matter.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from confrere.networks.network import Network
from confrere.networks.ranks import free_directions, judged, roots_of
from confrere.networks.statistics import Quadratic

LARGEST = 4000  # unknowns of a dense solution


class Free(NamedTuple):
    """The free directions of some nodes: an orthonormal basis of numbers that several of them share.

    `places` says which of r numbers stands at every node and coordinate, `weight` is the root of how often each does.
    """

    nodes: np.ndarray  # [k]
    places: np.ndarray  # [k, d]
    weight: np.ndarray  # [r]
    basis: np.ndarray  # [r, f]

    def taken_from(self, W: np.ndarray) -> np.ndarray:
        """The part of models [k, d] that lies in free directions."""
        flat = np.bincount(self.places.ravel(), W.ravel(), len(self.weight)) / self.weight
        return ((self.basis @ (self.basis.T @ flat)) / self.weight)[self.places]

    def vectors(self, n: int) -> np.ndarray:
        """The basis over all nodes, [n, d, f]."""
        whole = np.zeros((n, self.places.shape[1], self.basis.shape[1]))
        whole[self.nodes] = (self.basis / self.weight[:, None])[self.places]
        return whole


def alike(Q: np.ndarray, largest: np.ndarray | None = None) -> np.ndarray:
    """How much every node's matrix [n, d, d] is divided by, so that all count alike whatever their units.

    `largest`: the largest entries [d] that any diagonal has, where some of the nodes are elsewhere.
    """
    diagonal = np.einsum("njj->nj", Q)
    largest = diagonal.max(axis=0) if largest is None else largest
    size = (diagonal / np.square(roots_of(largest))).max(axis=1)
    return np.where(size > 0, size, 1)


def free_parts(quadratic: Quadratic, network: Network, coupling: np.ndarray) -> Iterator[Free]:
    """The free directions, component by component where there are any."""
    coupled = coupling > 0
    size = alike(quadratic.Q)
    if coupled.any() and not coupled.all():
        for nodes in network.components():
            yield from partly_coupled(nodes, quadratic.Q[nodes] / size[nodes, None, None], coupled)
        return
    labels = network.labels if coupled.any() else np.arange(network.n)
    found = judged(sums_by(labels, quadratic.Q, size))
    for c in np.flatnonzero(found.unseen.any(axis=1)):
        nodes = np.flatnonzero(labels == c) if coupled.any() else np.array([c])
        weight = np.full(len(coupling), len(nodes) ** 0.5)
        basis = free_directions(found.size[c], found.vectors[c][:, found.unseen[c]])
        yield Free(nodes, np.tile(np.arange(len(coupling)), (len(nodes), 1)), weight, basis)


def sums_by(labels: np.ndarray, values: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The sums of values [n, ...] / size over equal labels."""
    n, *rest = values.shape
    if not labels.any():
        return (1 / size @ values.reshape(n, -1)).reshape(1, *rest)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    divided = values[order]
    divided /= size[order].reshape(-1, *[1] * len(rest))
    return np.add.reduceat(divided, starts, axis=0)


def partly_coupled(nodes: np.ndarray, Q: np.ndarray, coupled: np.ndarray) -> Iterator[Free]:
    """The same of one component where some coordinates are every node's own.

    A free direction has coupled coordinates v, common to the component, and own coordinates u_i for every node, with
    Q_i (v, u_i) = 0 for all of them.
    """
    if not judged(Q).unseen.any():
        return
    own, size = np.flatnonzero(~coupled), int(coupled.sum())
    if size + len(own) * len(nodes) > LARGEST:
        raise ValueError(
            f"the solution is not unique, and {len(nodes)} nodes with {len(own)} parameters of their own are too "
            "many to find the one of least norm: couple all parameters a little (penalty above 0)"
        )
    k = np.arange(len(nodes))[:, None]
    places = np.c_[np.tile(np.arange(size), (len(nodes), 1)), size + k * len(own) + np.arange(len(own))]
    places = places[:, np.argsort(np.r_[np.flatnonzero(coupled), own])]
    reduced = np.zeros((places.max() + 1,) * 2)
    for rows, one in zip(places, Q, strict=True):
        reduced[np.ix_(rows, rows)] += one
    weight = np.where(np.arange(len(reduced)) < size, len(nodes), 1) ** 0.5
    found = judged(reduced)
    if found.unseen.any():
        yield Free(nodes, places, weight, free_directions(found.size / weight, found.vectors[:, found.unseen]))


def least_norm(W: np.ndarray, quadratic: Quadratic, network: Network, coupling: np.ndarray) -> np.ndarray:
    """Take away what lies in free directions."""
    W = W.copy()
    for part in free_parts(quadratic, network, coupling):
        W[part.nodes] -= part.taken_from(W[part.nodes])
    return W
