"""Vectors that stand for local data sets (book, section 7.3): stations with similar ones are joined, or cluster."""

import warnings
from functools import cache

import numpy as np

from confrere import networks
from confrere.data.fmi import rows_of
from confrere.reproduce.book.stations import SEED, of_station


@cache
def mixture_parameters() -> np.ndarray:
    """Means, covariances and weights of a mixture of two Gaussians, fitted to each station's features [207, 114]."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return networks.mixture_parameters(of_station(rows_of("2024"))[0], parts=2, seed=SEED, weights=True)


def mean_labels() -> np.ndarray:
    """Each station's mean temperature [207, 1]."""
    return networks.mean_labels(of_station(rows_of("2024"))[1])


def gradients() -> np.ndarray:
    """Each station's gradient of the mean squared error at the linear model of all rows together [207, 7].

    The model has no intercept and, since year and month are collinear, is the one of least norm: the notebook's own,
    with an intercept that it then drops, depends on where a program cuts off small singular values.
    """
    rows = rows_of("2024")
    (w,) = networks.fitted_parameters([rows.X], [rows.y])
    return networks.gradients_at(*of_station(rows), w)
