"""How alike silos are, from what each tells of its rows (book 7.3): one vector per silo, or one number per pair.

Networks are learnt from distances between these vectors. No row leaves its silo; each function says what does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from confrere.checks import check_counts, check_switches
from confrere.networks.extras import needed
from confrere.networks.statistics import one_block


def labels_of(y: Sequence[Any]) -> list[np.ndarray]:
    """The labels of every silo, if each has some."""
    for i, given in enumerate(y):
        if given is None or np.size(given) == 0:
            raise ValueError(
                f"silo {i} has no labels, which say how alike it is to others: leave it out, or join it by what it has"
            )
    return [np.asarray(b) for b in y]


def pairs_of(X: Sequence[Any], y: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows and labels of every silo, if each has some."""
    labels = labels_of(y)
    if len(X) != len(labels):
        raise ValueError(f"X and y must have the rows of the same silos, not of {len(X)} and {len(labels)}")
    features = np.shape(X[0])[-1] if np.ndim(X[0]) == 2 else 0
    return [one_block(i, a, b, features) for i, (a, b) in enumerate(zip(X, labels, strict=True))]


def rows_of(rows: Sequence[Any]) -> list[np.ndarray]:
    """The rows of every silo as matrices, if each has some."""
    for i, given in enumerate(rows):
        if given is None or np.ndim(given) != 2 or len(given) == 0:
            raise ValueError(f"silo {i} has no rows [m_i, d], which say how alike it is to others: leave it out")
    return [np.asarray(a, float) for a in rows]


def fitted_parameters(X: Sequence[Any], y: Sequence[Any]) -> np.ndarray:
    """The least-squares model of every silo, of least norm [n, d]. Reveals each silo's fitted model.

    >>> from confrere.networks import fitted_parameters
    >>> fitted_parameters([[[1.0], [2.0]], [[1.0]]], [[2.0, 4.0], [3.0]]).round(6).tolist()
    [[2.0], [3.0]]
    """
    return np.stack([np.linalg.lstsq(a, b)[0] for a, b in pairs_of(X, y)])


def gradients_at(X: Sequence[Any], y: Sequence[Any], w: Any) -> np.ndarray:
    """The gradient of every silo's mean squared error at a common point w [n, d]. Reveals one gradient per silo.

    >>> from confrere.networks import gradients_at
    >>> gradients_at([[[1.0], [2.0]], [[1.0]]], [[2.0, 4.0], [3.0]], [0.0]).tolist()
    [[-10.0], [-6.0]]
    """
    point = np.asarray(w, float)
    return np.stack([2 / len(b) * a.T @ (a @ point - b) for a, b in pairs_of(X, y)])


def mean_labels(y: Sequence[Any]) -> np.ndarray:
    """The mean label of every silo [n, 1]. Reveals that mean.

    >>> from confrere.networks import mean_labels
    >>> mean_labels([[1.0, 3.0], [5.0]]).tolist()
    [[2.0], [5.0]]
    """
    return np.array([[np.mean(b)] for b in labels_of(y)])


def class_shares(y: Sequence[Any], classes: Sequence[Any] | None = None) -> np.ndarray:
    """The share of every class among a silo's labels [n, k]. Reveals how common each class is in each silo.

    >>> from confrere.networks import class_shares
    >>> class_shares([["a", "b"], ["b"]]).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    labels = labels_of(y)
    known = np.unique(np.concatenate(labels)) if classes is None else np.asarray(classes)
    return np.stack([(b[:, None] == known).mean(axis=0) for b in labels])


def label_overlap(y: Sequence[Any]) -> np.ndarray:
    """1 - the share of rows of two silos whose label both of them have [n, n]. Reveals how many rows of which class.

    >>> from confrere.networks import label_overlap
    >>> label_overlap([["a", "b"], ["b", "b"]]).tolist()
    [[0.0, 0.25], [0.25, 0.0]]
    """
    labels = labels_of(y)
    known = np.unique(np.concatenate(labels))
    counts = np.stack([(b[:, None] == known).sum(axis=0) for b in labels])
    has = counts > 0
    in_both = np.where(has[:, None] & has[None], counts[:, None] + counts[None], 0)
    rows = counts.sum(axis=1)
    return 1 - in_both.sum(axis=2) / (rows[:, None] + rows[None])


def mixture_parameters(rows: Sequence[Any], parts: int = 2, seed: int = 0, weights: bool = False) -> np.ndarray:
    """Means and covariances of a Gaussian mixture fitted to every silo's rows [n, ...]. Reveals these parameters.

    With `weights`, how much each part weighs stands behind them, and is revealed too. Parts come in the order in which
    the fit gives them. Needs scikit-learn.

    >>> import numpy as np
    >>> from confrere.networks import mixture_parameters
    >>> rows = [[[0.0], [0.1], [5.0], [5.1]], [[1.0], [1.1], [9.0], [9.1]]]
    >>> np.sort(mixture_parameters(rows, parts=2)[:, :2]).round(2).tolist()  # the means of both parts
    [[0.05, 5.05], [1.05, 9.05]]
    """
    check_counts(parts=parts)
    check_switches(weights=weights)
    mixture = needed("sklearn.mixture", "mixture_parameters")
    threads = needed("threadpoolctl", "mixture_parameters")

    def one(a):
        fitted = mixture.GaussianMixture(parts, random_state=seed).fit(a)
        told = [fitted.means_, fitted.covariances_, *([fitted.weights_] if weights else [])]
        return np.concatenate([part.ravel() for part in told])

    with threads.threadpool_limits(1):  # of small matrices threads only wait for each other
        return np.stack([one(a) for a in rows_of(rows)])


def latent_vectors(rows: Sequence[Any], encoder: Callable[[np.ndarray], Any]) -> np.ndarray:
    """The mean latent vector of every silo's rows under an encoder that all share [n, k]. Reveals these means.

    `encoder` takes rows [m, d] to latent vectors [m, k], such as that of the `autoencoder` that silos train
    together.

    >>> from confrere.networks import latent_vectors
    >>> latent_vectors([[[1.0, 2.0], [3.0, 4.0]]], lambda rows: rows[:, :1] + rows[:, 1:]).tolist()
    [[5.0]]
    """
    return np.stack([np.asarray(encoder(a), float).mean(axis=0) for a in rows_of(rows)])


def distances_between(vectors: Any) -> np.ndarray:
    """The Euclidean distances between all silos' vectors [n, n].

    >>> from confrere.networks import distances_between
    >>> distances_between([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    z = np.asarray(vectors, float)
    return np.linalg.norm(z[:, None] - z[None], axis=2)
