"""Weights under which a silo's rows have another silo's means: entropy balancing.

    minimise over l:  log sum_i exp(l' (x_i - m)) + ridge/2 |l|^2,      w_i proportional to exp(l' (x_i - m))

Hainmueller: Entropy balancing for causal effects (2012). Only the means m cross the border. The ridge leaves a little
imbalance where exact balance is out of reach, or would rest on a handful of rows.
"""

import numpy as np
from scipy.special import logsumexp

RIDGE = 0.01
STEPS = 50


def balanced(X: np.ndarray, means: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Weights [n], of mean 1, by which the rows X [n, d] have about these means [d]; features in units of their spread.

    >>> x = np.linspace(-1, 1, 201)[:, None]
    >>> w = balanced(x, np.array([0.3]), ridge=0.0)
    >>> round(float((w[:, 0] if w.ndim > 1 else w) @ x[:, 0] / w.sum()), 6)
    0.3
    """
    spread = X.std(axis=0)
    use = spread > 1e-9
    Z = (X[:, use] - means[use]) / spread[use]
    if not Z.shape[1]:
        return np.ones(len(X))
    lam = np.zeros(Z.shape[1])
    value = objective(Z, lam, ridge)
    for _ in range(STEPS):
        p = shares(Z, lam)
        mean = p @ Z
        slope = mean + ridge * lam
        H = (Z * p[:, None]).T @ Z - np.outer(mean, mean) + (ridge + 1e-9) * np.eye(len(lam))
        step = -np.linalg.solve(H, slope)
        if -slope @ step < 1e-12:
            break
        length = 1.0
        while (moved := objective(Z, lam + length * step, ridge)) > value and length > 1e-6:
            length /= 2
        lam, value = lam + length * step, moved
    return shares(Z, lam) * len(X)


def shares(Z: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """The weights, of sum 1."""
    scores = Z @ lam
    return np.exp(scores - logsumexp(scores))


def objective(Z: np.ndarray, lam: np.ndarray, ridge: float) -> float:
    """What is minimised."""
    return float(logsumexp(Z @ lam)) + 0.5 * ridge * float(lam @ lam)


def effective_rows(weights: np.ndarray) -> float:
    """As how many equally weighted rows these are worth (Kish).

    >>> effective_rows(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())
