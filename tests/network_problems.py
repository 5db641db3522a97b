"""Small GTVMin problems, and their solution written down in numpy."""

import numpy as np

from confrere.networks import GTVMin, Network


def rows_of(n, d=3, seed=0, rows=(8, 15), noise=0.3, spread=0.5, common=None):
    """Rows of n linear regressions whose true weights differ by `spread`."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=d) if common is None else common
    X = [rng.normal(size=(rng.integers(*rows), d)) for _ in range(n)]
    y = [a @ (common + spread * rng.normal(size=d)) + noise * rng.normal(size=len(a)) for a in X]
    return X, y


def connected(n, p=0.4, seed=0):
    """A random network with weights and a ring, so that it is connected."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.uniform(0.2, 2, (n, n)) * (rng.uniform(size=(n, n)) < p), 1)
    for i in range(n):
        a, b = sorted((i, (i + 1) % n))
        A[a, b] = max(A[a, b], 0.3)
    return Network.from_adjacency(A + A.T)


def problem(n=6, d=3, seed=0, alpha=0.7, penalty="squared", **how):
    X, y = rows_of(n, d, seed, **how)
    return GTVMin(connected(n, seed=seed), alpha=alpha, X=X, y=y, penalty=penalty)


def objective_by_hand(p, X, y, W):
    """The objective, node by node and edge by edge."""
    A = p.network.adjacency().toarray()
    loss = sum(np.mean((b - a @ w) ** 2) for a, b, w in zip(X, y, W, strict=True) if b is not None and len(b))
    n = len(A)
    return loss + p.alpha * sum(A[i, j] * ((W[i] - W[j]) ** 2).sum() for i in range(n) for j in range(i))


def solution_by_hand(A, X, y, alpha):
    """The minimiser of least norm, from the normal equations of all nodes together."""
    n, d = len(A), max(np.shape(a)[1] for a in X if a is not None)
    H, b = alpha * np.kron(np.diag(A.sum(axis=1)) - A, np.eye(d)), np.zeros(n * d)
    for i in range(n):
        if y[i] is not None and len(y[i]):
            own = slice(i * d, (i + 1) * d)
            H[own, own] += X[i].T @ X[i] / len(y[i])
            b[own] += X[i].T @ y[i] / len(y[i])
    return np.linalg.lstsq(H, b, rcond=1e-12)[0].reshape(n, d)
