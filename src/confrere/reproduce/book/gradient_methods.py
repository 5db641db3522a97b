"""Gradient methods (book, chapter 4): ridge regression without intercept by descent, with several learning rates.

    f(w) = (1/m) |y - X w|^2 + alpha |w|^2,  alpha = .01, the first 100 rows, from w = 0

Descent ends when f changes by less than 1e-10, or after 5000 steps. It is fastest (4.9) at eta* = 1 / (lambda_1 +
lambda_d), the eigenvalues of Q = X'X / m + alpha I, since f has the Hessian 2 Q, and diverges above 1 / lambda_d.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.reproduce.book.numbers import Reference, both
from confrere.reproduce.book.stations import squared_error

TRAINING, ALPHA, MOST, TOLERANCE = 100, 0.01, 5000, 1e-10
RATES = (0.28, 0.313684, 0.315789, 0.32)
REFERENCES = {
    **both("ridge", Reference(34.484529), Reference(41.209626, 41.373355)),
    **both("descent", Reference(34.714123), Reference(41.483452, 41.646992)),
    "rates.0.28.iterations": Reference(1567),
    "rates.0.313684.iterations": Reference(1407),
    "rates.0.315789.iterations": Reference(5000),
    "rates.0.28.objective": Reference(38.1243075),
    "rates.0.313684.objective": Reference(38.1243075),
    "largest_eigenvalue": Reference(None, 3.163133),
    "largest_rate": Reference(None, 0.31614),
    "best_rate": Reference(None, 0.31515),
}


def run() -> dict[str, Any]:
    """The closed form, 1000 steps, and how many steps every learning rate takes."""
    rows = rows_of("2024")
    X, y = rows.X[:TRAINING], rows.y[:TRAINING]
    Q, q = X.T @ X / TRAINING + ALPHA * np.eye(X.shape[1]), X.T @ y / TRAINING
    eigenvalues = np.linalg.eigvalsh(Q)

    def errors(w: np.ndarray) -> dict[str, float]:
        train, rest = squared_error(y, X @ w), squared_error(rows.y[TRAINING:], rows.X[TRAINING:] @ w)
        return {"train": train, "validation": rest}

    return {
        "ridge": errors(np.linalg.solve(Q, q)),
        "descent": errors(descend(X, y, 0.1, 1000, None)[0]),
        "rates": {f"{rate:g}": told(descend(X, y, rate, MOST, TOLERANCE)) for rate in RATES},
        "largest_eigenvalue": float(eigenvalues[-1]),
        "largest_rate": float(1 / eigenvalues[-1]),
        "best_rate": float(1 / (eigenvalues[0] + eigenvalues[-1])),
    }


def descend(X, y, rate: float, most: int, tolerance: float | None) -> tuple[np.ndarray, int, float]:
    """Parameters, number of steps and objective at the end."""
    w, before, value = np.zeros(X.shape[1]), np.inf, np.inf
    for step in range(1, most + 1):
        w = w + rate * (2 / len(y) * X.T @ (y - X @ w) - 2 * ALPHA * w)
        before, value = value, float(np.mean((y - X @ w) ** 2) + ALPHA * w @ w)
        if tolerance is not None and abs(before - value) < tolerance:
            return w, step, value
    return w, most, value


def told(ended: tuple[np.ndarray, int, float]) -> dict[str, Any]:
    """How descent ended; the objective of a run that diverged is none."""
    _, iterations, value = ended
    return {"iterations": iterations, "objective": value if value < 1e6 else None}
