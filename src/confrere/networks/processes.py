"""What processes that hold different nodes find out together: sums over nodes, and directions that no row sees."""

import jax
import numpy as np
from jax.experimental import multihost_utils

from confrere.networks.free import alike, sums_by
from confrere.networks.network import Network
from confrere.networks.ranks import free_directions, judged
from confrere.networks.statistics import Quadratic


def of_processes(values: np.ndarray) -> np.ndarray:
    """Every process's array, [processes, ...], in double precision."""
    if jax.process_count() == 1 or not values.size:
        return values[None]
    with jax.enable_x64(True):
        return np.asarray(multihost_utils.process_allgather(values))


def sum_over_processes(values: np.ndarray) -> np.ndarray:
    """The sum of every process's array."""
    return of_processes(values).sum(axis=0)


class Components:
    """The components that have a node here: their names, how many nodes they have, and the place of every own node."""

    def __init__(self, labels: np.ndarray, own: np.ndarray):
        self.names, self.place = np.unique(labels[own], return_inverse=True)
        counts = np.bincount(labels)
        self.counts = counts[self.names]
        self.split = np.bincount(self.place) < self.counts  # those with nodes in other processes too
        shared = sum_over_processes(np.bincount(self.names[self.split], minlength=len(counts)))
        self.shared = np.flatnonzero(shared)
        self.where = np.searchsorted(self.shared, self.names[self.split])

    def sums(self, values: np.ndarray, size: np.ndarray | None = None) -> np.ndarray:
        """Sums of values [own, ...] / size over all nodes of the components, wherever they are."""
        found = sums_by(self.place, values, np.ones(len(values)) if size is None else size)
        common = np.zeros((len(self.shared), *found.shape[1:]))
        common[self.where] = found[self.split]
        found[self.split] = sum_over_processes(common)[self.where]
        return found


def least_norm_of_all(
    W: np.ndarray, own: np.ndarray, quadratic: Quadratic, network: Network, coupling: np.ndarray
) -> np.ndarray:
    """Take away what lies in directions that no row of a component sees, as `free.least_norm` of all nodes does."""
    coupled = coupling > 0
    if coupled.any() and not coupled.all():
        if of_processes(np.asarray(judged(quadratic.Q).unseen.any(axis=0))).any():
            raise ValueError(
                "some nodes' rows leave parameters open, and not all parameters are coupled: there may be many "
                "solutions; couple all parameters a little (penalty above 0)"
            )
        return W
    components = Components(network.labels if coupled.any() else np.arange(network.n), own)
    largest = of_processes(np.einsum("njj->nj", quadratic.Q).max(axis=0)).max(axis=0)
    found = judged(components.sums(quadratic.Q, alike(quadratic.Q, largest)))
    taken = components.sums(W) / components.counts[:, None]
    for c, unseen in enumerate(found.unseen):
        basis = (
            free_directions(found.size[c], found.vectors[c][:, unseen]) if unseen.any() else np.zeros((W.shape[1], 0))
        )
        taken[c] = basis @ (basis.T @ taken[c])
    return W - taken[components.place]
