"""Eigenvalues of the Laplacian: how well a network is connected (3.9)-(3.11).

    lambda_2 = min of v'Lv over unit v with sum 0: above 0 if the network is connected, and larger the better it is
    lambda_n = max of v'Lv over unit v: at most twice the largest degree

The book prints (3.11) as a maximum, which would be lambda_n: it is a minimum.
"""

from typing import Any

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as solvers

SMALL = 400  # up to so many nodes a dense solver is quicker
PRECISE = 1e-10  # of an eigenvalue
NEAR = 1e-6  # how far below 0 inverse iterations begin, as a share of the mean degree
SPACE, RESTARTS = 40, 12  # what Lanczos is given for the largest eigenvalue: vectors, and how often it begins anew


class Laplacian(sparse.csr_array):
    """L = D - A as a sparse array that numpy takes as a dense one where it wants one."""

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.toarray() if dtype is None else self.toarray().astype(dtype)


def laplacian_of(n: int, edges: np.ndarray, weights: np.ndarray) -> Laplacian:
    """L = D - A [n, n]."""
    i, j = edges.T
    nodes = np.arange(n)
    degree = np.bincount(i, weights, minlength=n) + np.bincount(j, weights, minlength=n)
    values = np.concatenate([degree, -weights, -weights])
    places = (np.concatenate([nodes, i, j]), np.concatenate([nodes, j, i]))
    return Laplacian(sparse.coo_array((values, places), shape=(n, n)))


def beginning(n: int) -> np.ndarray:
    """Where the iterations begin, so that the same network gives the same bits."""
    return np.random.default_rng(0).normal(size=n)


def second_smallest(L: Any) -> float:
    """lambda_2 of the Laplacian of a connected network, by inverse iterations from just below 0 if it is large."""
    n = L.shape[0]
    if n <= SMALL:
        return float(np.linalg.eigvalsh(L.toarray())[1])
    shift = -NEAR * float(L.diagonal().mean())
    values = solvers.eigsh(
        L.tocsc(), k=2, sigma=shift, which="LM", v0=beginning(n), tol=PRECISE, return_eigenvectors=False
    )
    return float(max(values))


def largest(M: Any) -> float:
    """The largest eigenvalue of a sparse, symmetric matrix such as a Laplacian, to about 1e-10 of it.

    By Lanczos; where the largest ones crowd, as of paths and grids, which Lanczos hardly tells apart, by inverse
    iterations from just above Gershgorin's bound, to which they are near then.
    """
    n = M.shape[0]
    if n <= SMALL:
        return float(np.linalg.eigvalsh(M.toarray())[-1])
    how: dict[str, Any] = {"k": 1, "v0": beginning(n), "tol": PRECISE, "return_eigenvectors": False}
    try:
        return float(solvers.eigsh(M, which="LA", ncv=SPACE, maxiter=RESTARTS, **how)[0])
    except solvers.ArpackNoConvergence:
        above = float(abs(M).sum(axis=1).max()) * (1 + 1e-6)
        return float(solvers.eigsh(M.tocsc(), sigma=above, which="LM", **how)[0])


def lowest_vectors(L: Any, k: int) -> np.ndarray:
    """The eigenvectors [n, k] of the k smallest eigenvalues, whose rows place the nodes for spectral clustering."""
    n = L.shape[0]
    if n <= SMALL or k >= n - 1:
        return np.linalg.eigh(L.toarray())[1][:, :k]
    shift = -1e-3 * float(L.diagonal().mean())
    values, vectors = solvers.eigsh(L.tocsc(), k=k, sigma=shift, which="LM", v0=beginning(n))
    return vectors[:, np.argsort(values)]
