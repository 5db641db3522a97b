"""Networks of silos: nodes are silos, and an edge says that two of them have similar data (book, chapter 3)."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components, reverse_cuthill_mckee

from confrere.checks import check_counts, check_share, check_single_numbers, real_array
from confrere.networks import near, spectra
from confrere.networks.edges import check_pairs, from_matrix, once_each, whole_numbers
from confrere.networks.extras import needed
from confrere.networks.layout import Layout, in_precision, lay_out


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """An undirected network with weighted edges; nodes are numbered from 0.

    Made by `from_adjacency`, `from_edges`, `from_networkx`, `nearest`, `radius` or `erdos_renyi`. An edge of weight 0
    is no edge. Isolated nodes are allowed: each is a component of its own, and its model that of training alone.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0])
    >>> net, net.degrees.tolist()
    (Network(3 nodes, 2 edges), [1.0, 3.0, 2.0])
    >>> round(net.lambda_2(), 4), net.boundary([0, 1])
    (1.2679, 2.0)
    """

    n: int
    edges: np.ndarray  # [E, 2] int32, i < j, in order
    weights: np.ndarray  # [E] float64, above 0

    @classmethod
    def from_edges(cls, edges: Any, n: int | None = None, weights: Any = None) -> "Network":
        """From pairs of node numbers, with weight 1 or the given ones; n: how many nodes, if the last are isolated.

        An edge may be given in both directions, if its weight is the same.
        """
        pairs = whole_numbers(edges)
        n = int(pairs.max(initial=-1)) + 1 if n is None else n
        check_counts(n=n)
        given = np.ones(len(pairs)) if weights is None else real_array("weights", weights, None, False)
        if given.shape != (len(pairs),):
            raise ValueError(f"{len(pairs)} edges need as many weights, not the shape {given.shape}")
        check_pairs(pairs, given, n)
        return cls(n, *once_each(pairs, given, n))

    @classmethod
    def from_adjacency(cls, A: Any) -> "Network":
        """From a symmetric matrix of weights, dense or sparse; A[i, j] = 0: no edge."""
        n, pairs, weights = from_matrix(A)
        return cls.from_edges(pairs, n, weights)

    @classmethod
    def from_networkx(cls, graph: Any, weight: str = "weight") -> "Network":
        """From an undirected graph of networkx: nodes in its order, edges without the attribute weigh 1."""
        if not hasattr(graph, "is_multigraph"):
            raise TypeError(
                f"graph must be a networkx.Graph, not {type(graph).__name__}; from_adjacency takes a matrix"
            )
        if graph.is_directed() or graph.is_multigraph():
            raise ValueError("a network is undirected with one edge per pair: give a networkx.Graph")
        place = {node: i for i, node in enumerate(graph)}
        edges = [(place[a], place[b]) for a, b in graph.edges()]
        return cls.from_edges(edges, len(place), [w for _, _, w in graph.edges(data=weight, default=1.0)])

    @classmethod
    def nearest(
        cls, coordinates: Any, k: int, metric: near.Metric = "euclidean", weight: near.Weighting | None = None
    ) -> "Network":
        """Join every node to its k nearest others [n, q]: i and j have an edge if one of them is that near.

        With "great-circle", coordinates are (latitude, longitude) in degrees. `weight` makes weights [E] of distances
        [E] (km on the globe); without it they are 1.
        """
        points = near.places_of(coordinates, metric)
        pairs = np.unique(np.sort(near.nearest_pairs(points, k), axis=1), axis=0)
        return cls.from_edges(pairs, len(points), near.weights_of(weight, near.distances(points, pairs, metric)))

    @classmethod
    def radius(
        cls, coordinates: Any, radius: float, metric: near.Metric = "euclidean", weight: near.Weighting | None = None
    ) -> "Network":
        """Join all nodes that are at most `radius` apart; km on the globe, see `nearest`."""
        points = near.places_of(coordinates, metric)
        pairs = near.pairs_within(points, radius, metric)
        return cls.from_edges(pairs, len(points), near.weights_of(weight, near.distances(points, pairs, metric)))

    @classmethod
    def erdos_renyi(cls, n: int, p: float, seed: int = 0) -> "Network":
        """Each pair has an edge of weight 1 with probability p, independently (7.1)."""
        check_counts(n=n)
        check_counts(0, seed=seed)
        check_single_numbers(p=p)
        check_share(p=p)
        rng = np.random.default_rng(seed)
        total = n * (n - 1) // 2
        chosen = np.sort(rng.choice(total, rng.binomial(total, p), replace=False, shuffle=False))
        row_ends = np.cumsum(np.arange(n - 1, 0, -1))  # pairs (0, .), then (1, .), ...
        i = np.searchsorted(row_ends, chosen, side="right")
        return cls.from_edges(np.stack([i, chosen - row_ends[i - 1] * (i > 0) + i + 1], axis=1), n)

    def to_networkx(self) -> Any:
        """As a graph of networkx, whose edges have the attribute `weight`."""
        networkx = needed("networkx", "to_networkx")
        graph = networkx.Graph()
        graph.add_nodes_from(range(self.n))
        graph.add_weighted_edges_from(
            (int(i), int(j), float(w)) for (i, j), w in zip(self.edges, self.weights, strict=True)
        )
        return graph

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """The weight of every node's edges [n]."""
        i, j = self.edges.T
        both = np.bincount(i, self.weights, minlength=self.n) + np.bincount(j, self.weights, minlength=self.n)
        return both.astype(float)  # numpy counts in integers where there is no edge

    def adjacency(self) -> sparse.csr_array:
        """The symmetric matrix of weights, sparse [n, n]."""
        return self._adjacency.copy()

    @functools.cached_property
    def _adjacency(self) -> sparse.csr_array:
        (i, j), both = self.edges.T, np.concatenate([self.weights, self.weights])
        places = np.concatenate([i, j]), np.concatenate([j, i])
        return sparse.csr_array(sparse.coo_array((both, places), shape=(self.n, self.n)))

    def laplacian(self) -> spectra.Laplacian:
        """L = D - A (3.6), sparse [n, n]; numpy takes it as a dense matrix where it wants one."""
        return spectra.laplacian_of(self.n, self.edges, self.weights)

    def lambda_2(self) -> float:
        """The second smallest eigenvalue of the Laplacian: 0 if and only if the network is not connected."""
        if self.n < 2:
            raise ValueError("a network of one node has no second eigenvalue")
        return spectra.second_smallest(self.laplacian()) if self.connected else 0.0

    def lambda_n(self) -> float:
        """The largest eigenvalue of the Laplacian."""
        return spectra.largest(self.laplacian()) if len(self.edges) else 0.0

    @functools.cached_property
    def labels(self) -> np.ndarray:
        """The component of every node [n], counted from 0 in the order of their first nodes."""
        i, j = self.edges.T
        joined = sparse.coo_array((np.ones(len(i), bool), (i, j)), shape=(self.n, self.n))
        found = connected_components(joined, directed=False)[1]
        _, first, place = np.unique(found, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[place]

    @property
    def connected(self) -> bool:
        """Whether there is a way from every node to every other."""
        return not self.labels.any()

    def components(self) -> list[np.ndarray]:
        """The nodes of every component, in the order of their first nodes."""
        ends = np.cumsum(np.bincount(self.labels))[:-1]
        return np.split(np.argsort(self.labels, kind="stable"), ends)

    def induced(self, nodes: Iterable[int]) -> "Network":
        """The network of some nodes and of the edges between them; they are numbered in the order given."""
        chosen = self._chosen(nodes)
        place = np.full(self.n, -1)
        place[chosen] = np.arange(len(chosen))
        pairs = place[self.edges]
        inside = (pairs >= 0).all(axis=1)
        return Network.from_edges(pairs[inside], len(chosen), self.weights[inside])

    def boundary(self, nodes: Iterable[int]) -> float:
        """The weight of the edges that leave a cluster (6.1); of one node, its degree."""
        inside = np.zeros(self.n, bool)
        inside[self._chosen(nodes)] = True
        return float(self.weights[inside[self.edges].sum(axis=1) == 1].sum())

    def layout(self, dtype: Any, *, ordered: bool = False) -> Layout:
        """The network for products in JAX, in some precision; made once, and never inside a trace.

        `ordered`: the nodes are in the `near_order`.
        """
        key = np.dtype(dtype), ordered
        if key not in self._layouts:
            if (None, ordered) not in self._layouts:
                self._layouts[None, ordered] = lay_out(self._adjacency, self.near_order if ordered else None)
            self._layouts[key] = in_precision(self._layouts[None, ordered], key[0])
        return self._layouts[key]

    @functools.cached_property
    def _layouts(self) -> dict[tuple[np.dtype | None, bool], Layout]:
        return {}  # by precision, None: on the host; and whether nodes are in the near order

    @functools.cached_property
    def narrow_order(self) -> np.ndarray:
        """The nodes in the reverse Cuthill-McKee order [n], by which few edges cross a cut in two."""
        return reverse_cuthill_mckee(self._adjacency, symmetric_mode=True)

    @functools.cached_property
    def near_order(self) -> np.ndarray:
        """The nodes in an order by which neighbours are near each other in memory: by their steps from the first one,
        which is quickly found; of networks in several components the narrow order."""
        reached = breadth_first_order(self._adjacency, 0, return_predecessors=False)
        return reached if len(reached) == self.n else self.narrow_order

    def _chosen(self, nodes: Iterable[int]) -> np.ndarray:
        given = np.asarray(list(nodes) if np.iterable(nodes) else [])
        whole = np.issubdtype(given.dtype, np.integer)
        if (
            not len(given)
            or not whole
            or len(np.unique(given)) < len(given)
            or given.min() < 0
            or given.max() >= self.n
        ):
            raise ValueError(f"a cluster needs different nodes, each of 0 to {self.n - 1}, not {given.tolist()}")
        return given.astype(np.int64)

    @functools.cached_property
    def _content(self) -> tuple[int, bytes, bytes]:
        return self.n, self.edges.tobytes(), self.weights.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        return f"Network({self.n} nodes, {len(self.edges)} edges)"
