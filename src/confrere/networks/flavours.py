"""Flavours of federated learning as cases of GTVMin (book, chapter 6), and explanations that fit a user (8.4).

Horizontal and semi-supervised learning is GTVMin itself (nodes without labels), personal layers are its `penalty` of
strengths, and one model for all is `fedgd(..., project=single_model)`, or a large alpha.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from confrere.checks import check_counts, check_network, check_single_numbers, real_array
from confrere.networks.extras import needed
from confrere.networks.kinds import quadratic_of
from confrere.networks.network import Network
from confrere.networks.problem import GTVMin
from confrere.networks.rows import check_each, models_of, one_block, plain_labels, row_blocks
from confrere.networks.spectra import lowest_vectors
from confrere.networks.statistics import Quadratic


def clusters(vectors: Any, k: int, method: Literal["kmeans", "gmm"] = "kmeans", seed: int = 0) -> np.ndarray:
    """The cluster of every silo [n] by its vector [n, r], such as its place. Needs scikit-learn.

    >>> from confrere.networks import clusters
    >>> found = clusters([[0.0], [0.1], [5.0]], k=2)
    >>> (found == found[0]).tolist()
    [True, True, False]
    """
    check_counts(k=k)
    check_counts(0, seed=seed)
    if method not in ("kmeans", "gmm"):
        raise ValueError(f"method must be 'kmeans' or 'gmm', not {method!r}; spectral_vectors(network, k) for spectral")
    z = real_array("vectors", vectors, "[n, r]")
    if k > len(z):
        raise ValueError(f"{len(z)} silos cannot be in {k} clusters: k must be {len(z)} or less")
    if method == "gmm":
        if len(z) < 2:
            raise ValueError("a Gaussian mixture needs the vectors of two silos or more: vectors has one")
        mixture = needed("sklearn.mixture", "clusters")
        return mixture.GaussianMixture(k, random_state=seed).fit_predict(z)
    cluster = needed("sklearn.cluster", "clusters")
    return cluster.KMeans(k, random_state=seed, n_init="auto").fit_predict(z)


def spectral_vectors(network: Network, k: int) -> np.ndarray:
    """The entries of every node in the first k eigenvectors of the Laplacian [n, k], for spectral clustering.

    >>> from confrere.networks import Network, clusters, spectral_vectors
    >>> two_cliques = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    >>> found = clusters(spectral_vectors(Network.from_edges(two_cliques), 2), k=2)
    >>> (found == found[0]).tolist()
    [True, True, True, False, False, False]
    """
    check_network(network)
    check_counts(k=k)
    if k > network.n:
        raise ValueError(
            f"a network of {network.n} nodes has as many eigenvectors: k must be {network.n} or less, not {k}"
        )
    return lowest_vectors(network.laplacian(), k)


def cluster_models(labels: Any, X: Any, y: Any) -> np.ndarray:
    """One least-squares model for every cluster, on the rows of all its silos together: W [n, d].

    >>> from confrere.networks import cluster_models
    >>> cluster_models([0, 0, 1], X=[[[1.0]], [[1.0]], [[1.0]]], y=[[0.0], [2.0], [7.0]]).round(6).tolist()
    [[1.0], [1.0], [7.0]]
    """
    which = plain_labels("labels", labels, "the cluster of every silo [n]")
    rows, answers = row_blocks(X, y, len(which))
    W = np.zeros((len(which), rows[0].shape[1]))
    for c in np.unique(which):
        nodes = np.flatnonzero(which == c)
        together = np.concatenate([rows[i] for i in nodes]), np.concatenate([answers[i] for i in nodes])
        W[nodes] = np.linalg.lstsq(*together, rcond=None)[0]
    return W


class Vertical(NamedTuple):
    """Models of silos that hold different columns of the same rows, and what they predict for these rows [n, m]."""

    models: list[np.ndarray]
    predictions: np.ndarray


def vertical(network: Network, X: Sequence[Any], y: Any, alpha: float, iterations: int = 1000) -> Vertical:
    """Vertical learning (6.5): silos hold different columns X_i [m, d_i] of the same m rows, and share the labels.

        minimise sum_i (1/m) |y - X_i w_i|^2 + alpha sum over edges of A_ij (1/m) |X_i w_i - X_j w_j|^2

    Models of different columns cannot be compared, predictions can: they are all that a silo sends. Every silo goes to
    its minimum with the others held, `iterations` times.

    >>> from confrere.networks import Network, vertical
    >>> columns = [[[1.0], [0.0]], [[0.0], [1.0]]]  # of two rows, each silo sees one
    >>> found = vertical(Network.from_edges([(0, 1)]), columns, y=[3.0, 3.0], alpha=1.0)
    >>> [w.round(6).tolist() for w in found.models], found.predictions.round(6).tolist()
    ([[1.5], [1.5]], [[1.5, 0.0], [0.0, 1.5]])
    """
    check_network(network)
    check_single_numbers(alpha=alpha)
    check_counts(iterations=iterations)
    check_each(network.n, "silos", X=X)
    labels = real_array("y", y, "[m]")
    columns = [real_array(f"X of silo {i}", a, "[m, d_i]") for i, a in enumerate(X)]
    for i, a in enumerate(columns):
        if len(a) != len(labels) or not a.size:
            raise ValueError(f"silo {i} has X of shape {a.shape}, not columns of the {len(labels)} rows that y labels")
    inverse = [np.linalg.pinv(a) for a in columns]
    A, share = network.adjacency(), alpha * network.degrees[:, None]
    said = np.zeros((network.n, len(labels)))
    models: list[np.ndarray] = []
    for _ in range(iterations):
        aim = (labels + alpha * (A @ said)) / (1 + share)
        models = [b @ t for b, t in zip(inverse, aim, strict=True)]
        said = np.stack([a @ w for a, w in zip(columns, models, strict=True)])
    return Vertical(models, said)


def by_category(network: Network, X: Any, y: Any, alpha: float) -> GTVMin:
    """Few-shot learning (6.7): a node for every category, with a detector of it; alike categories are joined.

    Every node has all rows; its labels are 1 for its own category and -1 for others, each half weighing the same. A
    category without any row has no loss, and gets its neighbours' mean. `(X @ W.T).argmax(axis=1)` tells the category.

    >>> import numpy as np, confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 2), (1, 2)], weights=[1.0, 3.0])  # 2 has no rows, and is more like 1
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> W = cf.networks.by_category(net, X, [0, 1], alpha=0.1).solve()
    >>> (X @ W[:2].T).argmax(axis=1).tolist(), np.allclose(W[2], (W[0] + 3 * W[1]) / 4)
    ([0, 1], True)
    """
    check_network(network)
    check_single_numbers(alpha=alpha)
    rows, labels = real_array("X", X, "[m, d]"), plain_labels("y", y, "one label per row [m]")
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"X must be [m, d] and y [m], not of shapes {rows.shape} and {labels.shape}")
    unknown = ~np.isin(labels, np.arange(network.n))
    if unknown.any():
        raise ValueError(
            f"row {int(unknown.argmax())} has the label {labels[unknown.argmax()]!r}: categories are the nodes of the "
            f"network, numbered from 0 to {network.n - 1}"
        )
    d = rows.shape[1]
    Q, q, c = np.zeros((network.n, d, d)), np.zeros((network.n, d)), np.zeros(network.n)
    for k in range(network.n):
        own = labels == k
        if own.any() and not own.all():
            weight = np.where(own, 0.5 / own.sum(), 0.5 / (~own).sum())
            target = np.where(own, 1.0, -1.0)
            Q[k], q[k], c[k] = (rows.T * weight) @ rows, -2 * rows.T @ (weight * target), 1.0
    return GTVMin(network, Quadratic(Q, q, c), alpha=alpha)


def explainability(W: Any, X: Sequence[Any], guesses: Sequence[Any]) -> np.ndarray:
    """(8.11): the mean squared difference of a user's own guesses and the predictions on test rows, per node [n].

    >>> from confrere.networks import explainability
    >>> explainability([[1.0], [2.0]], X=[[[1.0], [2.0]], [[1.0]]], guesses=[[1.0, 4.0], [2.0]]).tolist()
    [2.0, 0.0]
    """
    models = models_of("W", W)
    check_each(len(models), X=X, guesses=guesses)
    pairs = [
        one_block(f"node {i}", a, u, models.shape[1], "guesses")
        for i, (a, u) in enumerate(zip(X, guesses, strict=True))
    ]
    for i, (_, u) in enumerate(pairs):
        if not len(u):
            raise ValueError(f"node {i} has no guesses to compare predictions with: leave it out")
    return np.array([np.mean(np.square(u - a @ w)) for w, (a, u) in zip(models, pairs, strict=True)])


def explainable(p: GTVMin, X: Sequence[Any], guesses: Sequence[Any], rho: float) -> GTVMin:
    """(8.12): the same problem, in which every node also pays rho times its lack of explainability.

    X and guesses: one array per node, test rows [t_i, d] and what its user guesses for them; labels are not needed.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=0.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> asked = cf.networks.explainable(p, X=[[[1.0]], [[1.0]]], guesses=[[2.0], [3.0]], rho=1.0)
    >>> asked.solve().round(6).tolist()  # half way from 0 to what the first user guesses
    [[1.0], [3.0]]
    """
    check_single_numbers(rho=rho)
    Q, q, c = (a.copy() for a in quadratic_of(p, "explainability"))
    rows, said = row_blocks(X, guesses, p.n, labels="guesses", d=p.d)
    for i, (a, u) in enumerate(zip(rows, said, strict=True)):
        if len(u):
            Q[i] += rho * a.T @ a / len(u)
            q[i] -= 2 * rho * a.T @ u / len(u)
            c[i] += rho * np.mean(u**2)
    return GTVMin(p.network, Quadratic(Q, q, c), alpha=p.alpha, penalty=p.strengths)
