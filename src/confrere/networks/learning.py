"""Networks learnt from how alike silos are (book 7.4).

The simplest joins every silo with those most like it: `Network.nearest(vectors, k)`, or `nearest_by(D, k)` where there
is no vector but a number D_ij for every pair. The others are the best of their kind:

    minimise sum over pairs {i, j}, each once, of A_ij D_ij,   0 <= A_ij <= 1,   with every degree given (7.6)
                                                                          or the number of edges given (7.7)

The book's sums run over ordered pairs, by which (7.7) would give half as many edges as it says: here pairs count once.
"""

from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.optimize import linprog

from confrere.checks import check_counts, check_single_numbers, real_array
from confrere.networks.network import Network


def check_discrepancies(D: Any) -> np.ndarray:
    """A symmetric matrix of finite numbers [n, n]."""
    given = real_array("discrepancies", D, None, False)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or len(given) < 2:
        raise ValueError(f"discrepancies must be a square matrix of two silos or more, not of shape {given.shape}")
    if not np.isfinite(given).all() or not np.allclose(given, given.T, rtol=1e-9, atol=0):
        raise ValueError("discrepancies must be finite and symmetric: D[i, j] = D[j, i]")
    return given


def nearest_by(D: Any, k: int) -> Network:
    """The network in which every silo has edges of weight 1 with the k most like it; of equal ones the first.

    >>> from confrere.networks import nearest_by
    >>> nearest_by([[0, 1, 5], [1, 0, 2], [5, 2, 0]], k=1).edges.tolist()
    [[0, 1], [1, 2]]
    """
    given = check_discrepancies(D)
    n = len(given)
    check_counts(k=k)
    if k >= n:
        raise ValueError(f"a silo of {n} has {n - 1} others, so that {k} cannot be most like it")
    others = np.where(np.eye(n, dtype=bool), np.inf, given)
    near = np.argsort(others, axis=1, kind="stable")[:, :k]
    return Network.from_edges(np.stack([np.repeat(np.arange(n), k), near.ravel()], axis=1), n)


def least_discrepant(D: Any, edges: int) -> Network:
    """The network of so many edges of weight 1 between the most alike pairs (7.7); of equal ones the first.

    >>> from confrere.networks import least_discrepant
    >>> least_discrepant([[0, 1, 5], [1, 0, 2], [5, 2, 0]], edges=2).edges.tolist()
    [[0, 1], [1, 2]]
    """
    given = check_discrepancies(D)
    n = len(given)
    check_counts(edges=edges)
    if edges > n * (n - 1) // 2:
        raise ValueError(f"{n} silos have {n * (n - 1) // 2} pairs, so that there cannot be {edges} edges")
    i, j = np.triu_indices(n, 1)
    chosen = np.argsort(given[i, j], kind="stable")[:edges]
    return Network.from_edges(np.stack([i[chosen], j[chosen]], axis=1), n)


def of_degree(D: Any, degree: float) -> Network:
    """The network in which the weights of every node add up to `degree` and alike silos are joined (7.6).

    A linear program, by scipy's HiGHS; it has a solution for 0 <= degree <= n - 1. Weights may be halves: so on an odd
    cycle every node has degree 1.

    >>> from confrere.networks import of_degree
    >>> of_degree([[0, 1, 5, 5], [1, 0, 5, 5], [5, 5, 0, 1], [5, 5, 1, 0]], degree=1).edges.tolist()
    [[0, 1], [2, 3]]
    """
    given = check_discrepancies(D)
    n = len(given)
    check_single_numbers(degree=degree)
    if degree > n - 1:
        raise ValueError(f"a node of {n} has {n - 1} others, so that its degree cannot be {degree:g}")
    i, j = np.triu_indices(n, 1)
    pair = np.arange(len(i))
    ends = sparse.coo_array((np.ones(2 * len(i)), (np.r_[i, j], np.r_[pair, pair])), shape=(n, len(i)))
    found = linprog(given[i, j], A_eq=ends.tocsr(), b_eq=np.full(n, degree), bounds=(0, 1), method="highs")
    if not found.success:
        raise RuntimeError(f"the linear program was not solved: {found.message}")
    weights = np.where(found.x > 1e-9, found.x, 0)
    return Network.from_edges(np.stack([i, j], axis=1), n, weights)
