"""Training and validation errors compared, with advice (book 2.5), and regularisation as more rows (2.6)."""

from typing import Any, NamedTuple

import numpy as np

from confrere.checks import check_counts, check_single_numbers, those_given
from confrere.networks.loops import rates
from confrere.networks.rows import one_regression, vector_of


class Diagnosis(NamedTuple):
    """Which of the book's four cases it is, and what to do."""

    case: str
    advice: str


ADVICE = {
    "fine": "Training, validation and baseline errors agree: there is little to gain.",
    "overfitting": "The validation error is far above the training error: use a smaller model, more regularisation, "
    "more rows, or neighbours' rows (a larger alpha).",
    "underfitting": "Training and validation errors agree, but are far above the baseline: use a larger model or other "
    "features, and see that the optimisation has come to its end.",
    "unlike": "The training error is far above the validation error: the two parts may not come from the same "
    "population, or the validation part is too small; draw it anew, or larger.",
}


def diagnose(train: float, validation: float, baseline: float | None = None, factor: float = 1.5) -> Diagnosis:
    """Compare errors as the book does; one is far above another if it is more than `factor` times as large.

    >>> from confrere.networks import diagnose
    >>> diagnose(train=1.0, validation=4.0).case
    'overfitting'
    """
    check_single_numbers(train=train, validation=validation, **those_given(baseline=baseline))
    check_single_numbers(1.0, factor=factor)
    if validation > factor * train:
        case = "overfitting"
    elif train > factor * validation:
        case = "unlike"
    elif baseline is not None and min(train, validation) > factor * baseline:
        case = "underfitting"
    else:
        case = "fine"
    return Diagnosis(case, ADVICE[case])


def ridge(X: Any, y: Any, alpha: float) -> np.ndarray:
    """(2.25)-(2.27): argmin_w |y - Xw|^2/m + alpha |w|^2; of least norm where alpha is 0.

    >>> from confrere.networks import ridge
    >>> ridge([[1.0], [1.0]], [2.0, 4.0], alpha=1.0).tolist()
    [1.5]
    """
    check_single_numbers(alpha=alpha)
    rows, labels = one_regression(X, y)
    m, d = rows.shape
    return np.linalg.lstsq(np.vstack([rows, np.sqrt(alpha * m) * np.eye(d)]), np.r_[labels, np.zeros(d)])[0]


def augmented(X: Any, y: Any, alpha: float, copies: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(2.26): copies of all rows, with noise of variance alpha added to features; least squares on many is `ridge`.

    >>> from confrere.networks import augmented, fitted_parameters
    >>> X, y = augmented([[1.0], [1.0]], [2.0, 4.0], alpha=1.0, copies=100_000)
    >>> fitted_parameters([X], [y]).round(1).tolist()
    [[1.5]]
    """
    check_single_numbers(alpha=alpha)
    check_counts(copies=copies)
    check_counts(0, seed=seed)
    rows, labels = one_regression(X, y)
    rows, labels = np.tile(rows, (copies, 1)), np.tile(labels, copies)
    return rows + np.sqrt(alpha) * np.random.default_rng(seed).normal(size=rows.shape), labels


def online_gd(X: Any, y: Any, lr: Any, start: Any = None) -> np.ndarray:
    """Online gradient descent (4.23): one step for every row as it comes; the model after each [T, d].

    >>> from confrere.networks import online_gd
    >>> online_gd([[1.0], [1.0]], [1.0, 1.0], lr=0.25).tolist()
    [[0.5], [0.75]]
    """
    rows, labels = one_regression(X, y)
    w = np.zeros(rows.shape[1]) if start is None else vector_of("start", start, rows.shape[1])
    path = []
    for x, answer, eta in zip(rows, labels, rates(lr, len(labels)), strict=True):
        w = w + 2 * eta * x * (answer - w @ x)
        path.append(w)
    return np.stack(path)
