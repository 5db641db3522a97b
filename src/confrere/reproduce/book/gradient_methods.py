"""Gradient methods (book, chapter 4): ridge regression without intercept by descent, with several learning rates.

    f(w) = (1/m) |y - X w|^2 + alpha |w|^2,  alpha = .01, the first 100 rows, from w = 0

Descent is FedGD on a network of one node. It ends when f falls by less than 1e-10, or after 5000 steps. It is fastest
(4.9) at eta* = 1 / (lambda_1 + lambda_d), the eigenvalues of Q = X'X / m + alpha I, since f has the Hessian 2 Q, and
diverges above 1 / lambda_d.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.networks import GTVMin, Network, Quadratic, bounds, decrease, extreme_eigenvalues, fedgd, ridge
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
    "largest_rate": Reference(None, 0.316142),
    "best_rate": Reference(None, 0.315146),
}


def run() -> dict[str, Any]:
    """The closed form, 1000 steps, and how many steps every learning rate takes."""
    rows = rows_of("2024")
    X, y = rows.X[:TRAINING], rows.y[:TRAINING]
    problem = penalised(X, y)
    low, high = extreme_eigenvalues(problem)

    def errors(w: np.ndarray) -> dict[str, float]:
        train, rest = squared_error(y, X @ w), squared_error(rows.y[TRAINING:], rows.X[TRAINING:] @ w)
        return {"train": train, "validation": rest}

    return {
        "ridge": errors(ridge(X, y, ALPHA)),
        "descent": errors(fedgd(problem, lr=0.1, iterations=1000).W[0]),
        "rates": {f"{rate:g}": descend(problem, rate, bounds.contraction(rate, low, high)) for rate in RATES},
        "largest_eigenvalue": high,
        "largest_rate": 1 / high,
        "best_rate": bounds.best_rate(low, high),
    }


def penalised(X: np.ndarray, y: np.ndarray) -> GTVMin:
    """Ridge regression as the loss of a network's only node."""
    Q, q, c = X.T @ X / len(y) + ALPHA * np.eye(X.shape[1]), -2 * X.T @ y / len(y), np.mean(y**2)
    return GTVMin(Network.from_edges([], 1), Quadratic(Q[None], q[None], np.array([c])), alpha=0)


def descend(problem: GTVMin, rate: float, factor: float) -> dict[str, Any]:
    """How many steps there were, and the objective after them; where the distance from the minimum grows: none."""
    if factor >= 1:
        diverged = fedgd(problem, lr=rate, iterations=MOST).objective
        return {"iterations": MOST, "objective": float(diverged[-1]) if diverged[-1] < diverged[0] else None}
    ended = fedgd(problem, lr=rate, iterations=MOST, stop=decrease(TOLERANCE))
    return {"iterations": ended.iterations, "objective": float(ended.objective[-1])}
