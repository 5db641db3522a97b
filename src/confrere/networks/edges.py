"""What may be the edges of a network: pairs of different nodes, each once, with finite weights of 0 or more.

Whatever a network is made from becomes sorted pairs [E, 2] with i < j and their weights [E]. An edge of weight 0
couples nothing, so that it is left out: the network is the one without it.
"""

from typing import Any

import numpy as np
import scipy.sparse as sparse

from confrere.checks import real_array

SAME = 1e-9  # weights of the two directions of an edge may differ by rounding


def check_pairs(pairs: np.ndarray, weights: np.ndarray, n: int) -> None:
    """Refuse nodes that do not exist, self-loops and weights that are no weights, naming the pair."""
    outside = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if outside.any():
        i, j = pairs[outside.argmax()]
        raise ValueError(f"edge ({i}, {j}) leaves the network: its {n} nodes are numbered from 0 to {n - 1}")
    for wrong, why in (
        (~np.isfinite(weights), "a weight must be a finite number"),
        (weights < 0, "a weight must be 0 or more"),
        ((pairs[:, 0] == pairs[:, 1]) & (weights != 0), "a node cannot be its own neighbour; leave self-loops out"),
    ):
        if wrong.any():
            at = wrong.argmax()
            i, j = pairs[at]
            raise ValueError(f"edge ({i}, {j}) has the weight {weights[at]:g}: {why}")


def whole_numbers(pairs: Any) -> np.ndarray:
    """Pairs of nodes as integers [E, 2]."""
    try:
        given = np.asarray(pairs)
    except ValueError:
        raise ValueError("edges must be pairs of nodes [E, 2], and some have more or fewer nodes") from None
    if given.size == 0:
        return np.zeros((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2:
        raise ValueError(f"edges must be pairs of nodes [E, 2], not an array of shape {given.shape}")
    whole = given.dtype.kind in "iu"
    if given.dtype.kind == "f":
        whole = bool(((given == np.round(given)) & (np.abs(given) < 2**53)).all())
    if not whole:
        raise ValueError("edges must be pairs of node numbers, such as (0, 1); from_networkx takes named nodes")
    return given.astype(np.int64)


def once_each(pairs: np.ndarray, weights: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges i < j in order, each once; the same edge with two weights is refused, weight 0 left out."""
    low, high = pairs.min(axis=1, initial=n), pairs.max(axis=1, initial=0)
    key = low * n + high
    order = np.argsort(key, kind="stable")
    key, weights = key[order], weights[order]
    first = np.r_[True, key[1:] != key[:-1]][: len(key)]
    group = np.cumsum(first) - 1
    differ = ~np.isclose(weights, weights[first][group], rtol=SAME, atol=0)
    if differ.any():
        at = differ.argmax()
        i, j = divmod(int(key[at]), n)
        raise ValueError(
            f"edge ({i}, {j}) has two weights, {weights[first][group][at]:g} and {weights[at]:g}: "
            "an edge is undirected and has one"
        )
    counts = weights[first] > 0
    kept = key[first][counts]
    edges, values = np.stack([kept // n, kept % n], axis=1).astype(np.int32), weights[first][counts]
    for array in (edges, values):
        array.flags.writeable = False  # a network is known by them, and keeps what it found of them
    return edges, values


def from_matrix(A: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """n, pairs and weights of a square, symmetric matrix, dense or sparse."""
    if not sparse.issparse(A):
        given = real_array("the adjacency matrix", A, None, False)
    elif np.issubdtype(A.dtype, np.complexfloating):
        raise ValueError("the adjacency matrix must be real numbers: the weights of edges")
    else:
        given = A
    shape = tuple(given.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"an adjacency matrix must be square, not of shape {shape}")
    n = int(shape[0])
    matrix = sparse.coo_array(given)
    matrix.sum_duplicates()
    pairs = np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)
    weights = matrix.data.astype(float)
    check_pairs(pairs, weights, n)
    other = matrix.T.tocsr()
    back = np.asarray(other[pairs[:, 0], pairs[:, 1]]).ravel() if len(pairs) else weights
    differ = ~np.isclose(weights, back, rtol=SAME, atol=0)
    if differ.any():
        at = differ.argmax()
        i, j = pairs[at]
        raise ValueError(
            f"the adjacency matrix is not symmetric: A[{i}, {j}] = {weights[at]:g}, but A[{j}, {i}] = {back[at]:g}"
        )
    upper = pairs[:, 0] < pairs[:, 1]
    return n, pairs[upper], weights[upper]
