"""A problem as it is solved: the system (Q_i + coupling L) W = -q/2 with features scaled alike, on the host.

Features have a mean square of 1 over the network, so that units do not matter. The nodes of large networks are in an
order by which neighbours' models share lines of the cache.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from confrere.networks.layout import Layout
from confrere.networks.network import Network
from confrere.networks.pieces import in_pieces
from confrere.networks.ranks import roots_of
from confrere.networks.statistics import Quadratic

IN_CACHE = 20_000  # nodes up to which any order will do
STIFF = 30.0  # a coupling of so many times the losses' curvature is helped by steps of whole components


class Posed(NamedTuple):
    """The left side in double precision; models and right sides are of scaled features, with the nodes in `order`."""

    Q: np.ndarray  # [n, d, d], of features and nodes as they are
    network: Network
    scale: np.ndarray  # [d], what features are multiplied by
    strength: np.ndarray  # [d], of the coupling of scaled coordinates
    order: np.ndarray | None  # [n]; None: as they are

    def layout(self, dtype: Any) -> Layout:
        """The network in JAX."""
        return self.network.layout(dtype, ordered=self.order is not None)

    def matrices(self, part: slice) -> np.ndarray:
        """Q of some nodes, counted in the order."""
        return self.Q[part] if self.order is None else self.Q[self.order[part]]

    def degrees(self) -> np.ndarray:
        """The weight of every node's edges [n], in the order."""
        return self.network.degrees if self.order is None else self.network.degrees[self.order]

    def stiff(self) -> bool:
        """Whether steps of whole components help."""
        return stiff(self.network, self.strength)

    def right_side(self, q: np.ndarray) -> np.ndarray:
        """-q/2 [n, d] of the losses' q."""
        return (q if self.order is None else q[self.order]) * (-self.scale / 2)

    def scaled(self, W: np.ndarray) -> np.ndarray:
        """Models of scaled features, in the order; the reverse of `models`."""
        return (W if self.order is None else W[self.order]) / self.scale

    def models(self, W: np.ndarray) -> np.ndarray:
        """Models [n, d] in features' own units and the nodes' own order."""
        found = W * self.scale
        if self.order is not None:
            found[self.order] = found.copy()
        return found

    def times(self, W: np.ndarray) -> np.ndarray:
        """The left side times models [n, d], in double precision whatever JAX is set to."""
        total, scaled = np.empty(W.shape), W * self.scale

        def work(part: slice) -> None:
            total[part] = np.matvec(self.matrices(part), scaled[part])

        in_pieces(len(W), work)
        with jax.enable_x64(True):
            return total * self.scale + self.strength * np.asarray(differences(self.layout(float), W))


@jax.jit
def differences(layout: Layout, W: jax.Array) -> jax.Array:
    """L W."""
    return layout.differences(W)


def scales_of(Q: np.ndarray) -> np.ndarray:
    """What features are multiplied by, so that their mean squares over the network are 1."""
    return 1 / roots_of(np.einsum("njj->j", Q) / len(Q))


def stiff(network: Network, strength: np.ndarray) -> bool:
    """Whether the coupling of scaled coordinates is so strong that steps of whole components help."""
    return float(strength.max() * network.degrees.mean()) > STIFF


def posed(quadratic: Quadratic, network: Network, coupling: np.ndarray) -> Posed:
    """The system of quadratic losses, coupled by `coupling` [d]."""
    scale = scales_of(quadratic.Q)
    order = network.near_order if network.n > IN_CACHE else None
    return Posed(quadratic.Q, network, scale, coupling * scale**2, order)
