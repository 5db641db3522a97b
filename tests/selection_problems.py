"""Silos whose usefulness to one another is known, and plain numpy for what methods of selection should find."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

import confrere as cf


def classes(sizes=(60, 50, 40, 45), features=3, seed=0, flipped=()) -> cf.Silos:
    """Two-class silos that follow one law, but for those whose labels are flipped."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=features)
    pairs = []
    for i, rows in enumerate(sizes):
        X = rng.normal(size=(rows, features))
        y = (X @ w + rng.logistic(size=rows) > 0).astype(int)
        pairs.append((X, 1 - y if i in flipped else y))
    return cf.Silos.from_arrays(pairs, names=[f"silo {i}" for i in range(len(sizes))])


def amounts(sizes=(30, 25, 20), features=2, seed=0) -> cf.Silos:
    """Regression silos around 100, each with a law of its own."""
    rng = np.random.default_rng(seed)
    pairs = []
    for rows in sizes:
        X = rng.normal(size=(rows, features))
        pairs.append((X, 100 + X @ rng.normal(size=features) + rng.normal(size=rows)))
    return cf.Silos.from_arrays(pairs, names=list("abcdefg"[: len(sizes)]))


def flip(silos: cf.Silos, name: str) -> cf.Silos:
    """The same silos, the labels of one flipped."""
    turned = tuple(replace(s, y=1 - s.y) if s.name == name else s for s in silos.silos)
    return replace(silos, silos=turned, source=None)


def reordered(silos: cf.Silos, order) -> cf.Silos:
    """The same silos in another order."""
    return replace(silos, silos=tuple(silos.silos[i] for i in order), source=None)


def logistic_objective(X, y, l2, theta):
    """The mean log-loss and its penalty: 1 for a coefficient, 0.1 for the intercept, which is the last."""
    margin = np.where(y == 1, 1, -1) * (X @ theta[:-1] + theta[-1])
    return np.logaddexp(0, -margin).mean() + l2 / 2 * (theta[:-1] @ theta[:-1] + 0.1 * theta[-1] ** 2)


def logistic_fit(X, y, l2):
    """The minimiser of that objective, by a general optimiser."""
    start = np.zeros(X.shape[1] + 1)
    found = minimize(lambda t: logistic_objective(X, y, l2, t), start, method="BFGS", options={"gtol": 1e-9})
    return found.x


def log_losses(X, y, theta):
    """The log-loss of every row."""
    return np.logaddexp(0, -np.where(y == 1, 1, -1) * (X @ theta[:-1] + theta[-1]))


def ridge_fit(X, y, l2):
    """The minimiser of the mean of 1/2 (y - x'w)^2 + l2/2 |w|^2, the intercept free."""
    Z = np.column_stack([X, np.ones(len(y))])
    A = np.diag([l2] * X.shape[1] + [0])
    return np.linalg.solve(Z.T @ Z / len(y) + A, Z.T @ y / len(y))


def half_squares(X, y, theta):
    """1/2 (y - x'w)^2 of every row."""
    return 0.5 * np.square(X @ theta[:-1] + theta[-1] - y)
