"""Errors of a single linear regression (book, chapter 2), and its proximal step as rows (5.18)."""

import numpy as np

from confrere.networks.bounds.coupled import positive


def regression_error(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Prop. 2.1 made exact: least squares on y = X w + noise errs by -Q^-1 e/2, with e = -(2/m) X'noise.

    >>> import numpy as np, confrere as cf
    >>> X, noise = np.array([[1.0], [2.0]]), np.array([0.5, 1.0])
    >>> cf.networks.bounds.regression_error(X, noise).tolist()  # noise = X/2
    [0.5]
    """
    m = len(noise)
    return np.linalg.solve(X.T @ X / m, X.T @ noise / m)


def regression_bound(X: np.ndarray, noise: np.ndarray) -> float:
    """(2.18) made tight: |error|^2 <= |e|^2/(4 lambda_1^2); the book leaves out the 4.

    >>> import numpy as np, confrere as cf
    >>> X, noise = np.array([[1.0], [2.0]]), np.array([0.5, 1.0])
    >>> cf.networks.bounds.regression_bound(X, noise)  # reached: there is one direction only
    0.25
    """
    m = len(noise)
    smallest = positive(np.linalg.eigvalsh(X.T @ X / m)[0], "the smallest eigenvalue of X'X/m")
    return float(np.square(2 / m * X.T @ noise).sum() / (4 * smallest**2))


def mean_bound(noise: np.ndarray) -> float:
    """(2.22) corrected, for x = 1: error^2 <= 4 (sum of noise)^2/m^2 <= 4 |noise|^2/m; the book divides by m^2.

    >>> import numpy as np, confrere as cf
    >>> cf.networks.bounds.mean_bound(np.ones(20))  # the error of a mean is 1
    4.0
    """
    return float(4 * np.sum(noise) ** 2 / len(noise) ** 2)


def prox_as_rows(X: np.ndarray, y: np.ndarray, centre: np.ndarray, eta: float) -> tuple[np.ndarray, ...]:
    """(5.18): the step argmin_v |y - Xv|^2/m + |v - centre|^2/eta as least squares on weighted rows.

    Returns rows, labels and sample weights, for any regression that takes weights: d rows are added, the unit vectors,
    labelled by the centre, each with the weight m/eta.

    >>> import numpy as np, confrere as cf
    >>> X, y = np.array([[1.0], [2.0]]), np.array([3.0, 4.0])
    >>> [a.tolist() for a in cf.networks.bounds.prox_as_rows(X, y, centre=np.array([5.0]), eta=0.5)]
    [[[1.0], [2.0], [1.0]], [3.0, 4.0, 5.0], [1.0, 1.0, 4.0]]
    """
    m, d = X.shape
    return np.vstack([X, np.eye(d)]), np.concatenate([y, centre]), np.concatenate([np.ones(m), np.full(d, m / eta)])
