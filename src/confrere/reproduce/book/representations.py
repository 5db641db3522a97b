"""Vectors that stand for local data sets (book, section 7.3): stations with similar ones are joined, or cluster."""

import warnings
from functools import cache

import numpy as np

from confrere.data.fmi import rows_of
from confrere.reproduce.book.stations import SEED, of_station


@cache
def mixture_parameters() -> np.ndarray:
    """Means, covariances and weights of a mixture of two Gaussians, fitted to each station's features [207, 114]."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    found = []
    with warnings.catch_warnings(), threadpool_limits(1):  # for matrices of 7 x 7 threads only wait for each other
        warnings.simplefilter("ignore", ConvergenceWarning)
        for X in of_station(rows_of("2024"))[0]:
            fit = GaussianMixture(2, random_state=SEED).fit(X)
            found.append(np.concatenate([part.ravel() for part in (fit.means_, fit.covariances_, fit.weights_)]))
    return np.array(found)


def mean_labels() -> np.ndarray:
    """Each station's mean temperature [207, 1]."""
    return np.array([[y.mean()] for y in of_station(rows_of("2024"))[1]])


def gradients() -> np.ndarray:
    """Each station's gradient of the mean squared error at the linear model of all rows together [207, 7].

    The model has no intercept and, since year and month are collinear, is the one of least norm: the notebook's own,
    with an intercept that it then drops, depends on where a program cuts off small singular values.
    """
    rows = rows_of("2024")
    w = np.linalg.lstsq(rows.X, rows.y, rcond=None)[0]
    return np.array([2 / len(y) * X.T @ (X @ w - y) for X, y in zip(*of_station(rows), strict=True)])
