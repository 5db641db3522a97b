"""Errors of a single linear regression (book, chapter 2), and its proximal step as rows (5.18)."""

import numpy as np

from confrere.checks import check_above_zero, real_array
from confrere.networks.bounds.coupled import positive
from confrere.networks.rows import one_regression, vector_of


def regression_error(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Prop. 2.1 made exact: least squares on y = X w + noise errs by -Q^-1 e/2, with e = -(2/m) X'noise.

    >>> import numpy as np, confrere as cf
    >>> X, noise = np.array([[1.0], [2.0]]), np.array([0.5, 1.0])
    >>> cf.networks.bounds.regression_error(X, noise).tolist()  # noise = X/2
    [0.5]
    """
    rows, errors = one_regression(X, noise, "noise")
    if np.linalg.matrix_rank(rows) < rows.shape[1]:
        raise ValueError("the rows of X do not determine a model, X'X is singular: give more rows, or fewer features")
    return np.linalg.solve(rows.T @ rows / len(errors), rows.T @ errors / len(errors))


def regression_bound(X: np.ndarray, noise: np.ndarray) -> float:
    """(2.18) made tight: |error|^2 <= |e|^2/(4 lambda_1^2); the book leaves out the 4.

    >>> import numpy as np, confrere as cf
    >>> X, noise = np.array([[1.0], [2.0]]), np.array([0.5, 1.0])
    >>> cf.networks.bounds.regression_bound(X, noise)  # reached: there is one direction only
    0.25
    """
    rows, errors = one_regression(X, noise, "noise")
    m = len(errors)
    smallest = positive(np.linalg.eigvalsh(rows.T @ rows / m)[0], "the smallest eigenvalue of X'X/m")
    return float(np.square(2 / m * rows.T @ errors).sum() / (4 * smallest**2))


def mean_bound(noise: np.ndarray) -> float:
    """(2.22) corrected, for x = 1: error^2 <= 4 (sum of noise)^2/m^2 <= 4 |noise|^2/m; the book divides by m^2.

    >>> import numpy as np, confrere as cf
    >>> cf.networks.bounds.mean_bound(np.ones(20))  # the error of a mean is 1
    4.0
    """
    errors = real_array("noise", noise, "[m]")
    if not len(errors):
        raise ValueError("noise must have a value for each of one row at least, and there is none")
    return float(4 * np.sum(errors) ** 2 / len(errors) ** 2)


def prox_as_rows(X: np.ndarray, y: np.ndarray, centre: np.ndarray, eta: float) -> tuple[np.ndarray, ...]:
    """(5.18): the step argmin_v |y - Xv|^2/m + |v - centre|^2/eta as least squares on weighted rows.

    Returns rows, labels and sample weights, for any regression that takes weights: d rows are added, the unit vectors,
    labelled by the centre, each with the weight m/eta.

    >>> import numpy as np, confrere as cf
    >>> X, y = np.array([[1.0], [2.0]]), np.array([3.0, 4.0])
    >>> [a.tolist() for a in cf.networks.bounds.prox_as_rows(X, y, centre=np.array([5.0]), eta=0.5)]
    [[[1.0], [2.0], [1.0]], [3.0, 4.0, 5.0], [1.0, 1.0, 4.0]]
    """
    rows, labels = one_regression(X, y)
    check_above_zero(eta=eta)
    m, d = rows.shape
    weights = np.concatenate([np.ones(m), np.full(d, m / eta)])
    return np.vstack([rows, np.eye(d)]), np.concatenate([labels, vector_of("centre", centre, d)]), weights
