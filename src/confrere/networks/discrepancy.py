"""How alike silos are, from what each tells of its rows (book 7.3): one vector per silo, or one number per pair.

Networks are learnt from distances between these vectors. No row leaves its silo; each function says what does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from confrere.checks import check_counts, check_functions, check_switches, real_array
from confrere.networks.extras import needed
from confrere.networks.rows import (
    plain_labels,
    silo_classes,
    silo_labels,
    silo_pairs,
    silo_rows,
    vector_of,
)


def fitted_parameters(X: Sequence[Any], y: Sequence[Any]) -> np.ndarray:
    """The least-squares model of every silo, of least norm [n, d]. Reveals each silo's fitted model.

    >>> from confrere.networks import fitted_parameters
    >>> fitted_parameters([[[1.0], [2.0]], [[1.0]]], [[2.0, 4.0], [3.0]]).round(6).tolist()
    [[2.0], [3.0]]
    """
    return np.stack([np.linalg.lstsq(a, b)[0] for a, b in silo_pairs(X, y)])


def gradients_at(X: Sequence[Any], y: Sequence[Any], w: Any) -> np.ndarray:
    """The gradient of every silo's mean squared error at a common point w [n, d]. Reveals one gradient per silo.

    >>> from confrere.networks import gradients_at
    >>> gradients_at([[[1.0], [2.0]], [[1.0]]], [[2.0, 4.0], [3.0]], [0.0]).tolist()
    [[-10.0], [-6.0]]
    """
    pairs = silo_pairs(X, y)
    point = vector_of("w", w, pairs[0][0].shape[1])
    return np.stack([2 / len(b) * a.T @ (a @ point - b) for a, b in pairs])


def mean_labels(y: Sequence[Any]) -> np.ndarray:
    """The mean label of every silo [n, 1]. Reveals that mean.

    >>> from confrere.networks import mean_labels
    >>> mean_labels([[1.0, 3.0], [5.0]]).tolist()
    [[2.0], [5.0]]
    """
    return np.array([[np.mean(b)] for b in silo_labels(y)])


def class_shares(y: Sequence[Any], classes: Sequence[Any] | None = None) -> np.ndarray:
    """The share of every class among a silo's labels [n, k]. Reveals how common each class is in each silo.

    >>> from confrere.networks import class_shares
    >>> class_shares([["a", "b"], ["b"]]).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    labels = silo_classes(y)
    known = np.unique(np.concatenate(labels)) if classes is None else plain_labels("classes", classes, "a list")
    return np.stack([(b[:, None] == known).mean(axis=0) for b in labels])


def label_overlap(y: Sequence[Any]) -> np.ndarray:
    """1 - the share of rows of two silos whose label both of them have [n, n]. Reveals how many rows of which class.

    >>> from confrere.networks import label_overlap
    >>> label_overlap([["a", "b"], ["b", "b"]]).tolist()
    [[0.0, 0.25], [0.25, 0.0]]
    """
    labels = silo_classes(y)
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
    check_counts(0, seed=seed)
    check_switches(weights=weights)
    given = silo_rows(rows, least=max(parts, 2))
    mixture = needed("sklearn.mixture", "mixture_parameters")
    threads = needed("threadpoolctl", "mixture_parameters")

    def one(a):
        fitted = mixture.GaussianMixture(parts, random_state=seed).fit(a)
        told = [fitted.means_, fitted.covariances_, *([fitted.weights_] if weights else [])]
        return np.concatenate([part.ravel() for part in told])

    with threads.threadpool_limits(1):  # of small matrices threads only wait for each other
        return np.stack([one(a) for a in given])


def latent_vectors(rows: Sequence[Any], encoder: Callable[[np.ndarray], Any]) -> np.ndarray:
    """The mean latent vector of every silo's rows under an encoder that all share [n, k]. Reveals these means.

    `encoder` takes rows [m, d] to latent vectors [m, k], such as that of the `autoencoder` that silos train
    together.

    >>> from confrere.networks import latent_vectors
    >>> latent_vectors([[[1.0, 2.0], [3.0, 4.0]]], lambda rows: rows[:, :1] + rows[:, 1:]).tolist()
    [[5.0]]
    """
    check_functions(encoder=encoder)
    return np.stack([encoded(f"silo {i}", a, encoder).mean(axis=0) for i, a in enumerate(silo_rows(rows))])


def encoded(who: str, rows: np.ndarray, encoder: Callable[[np.ndarray], Any]) -> np.ndarray:
    """What an encoder makes of rows: one vector [k] of each."""
    found = real_array(f"what encoder makes of {who}", encoder(rows), "[m, k]")
    if len(found) != len(rows):
        raise ValueError(f"encoder must make one vector of each of {len(rows)} rows of {who}, not {len(found)}")
    return found


def distances_between(vectors: Any) -> np.ndarray:
    """The Euclidean distances between all silos' vectors [n, n].

    >>> from confrere.networks import distances_between
    >>> distances_between([[0.0, 0.0], [3.0, 4.0]]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    z = real_array("vectors", vectors, "[n, k]")
    return np.linalg.norm(z[:, None] - z[None], axis=2)
