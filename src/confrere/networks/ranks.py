"""Which directions a symmetric, positive semi-definite matrix sees, whatever the units of its coordinates.

A matrix is judged with a diagonal of ones, D^-1/2 M D^-1/2: a column in other units changes nothing of it. Eigenvalues
below 1e-13 of its largest are rounding, and count as 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

UNSEEN = 1e-13


class Judged(NamedTuple):
    """Matrices [..., d, d] with a diagonal of ones: the roots of what it was, eigenvalues, vectors, and which are 0."""

    size: np.ndarray  # [..., d]; 1 where the diagonal is 0
    values: np.ndarray  # [..., d]
    vectors: np.ndarray  # [..., d, d]
    unseen: np.ndarray  # [..., d]


def roots_of(diagonal: np.ndarray) -> np.ndarray:
    """The roots of a diagonal, and 1 where it is 0."""
    return np.sqrt(np.where(diagonal > 0, diagonal, 1))


def judged(M: np.ndarray) -> Judged:
    """The eigenvalues of matrices in units of their own."""
    size = roots_of(np.diagonal(M, axis1=-2, axis2=-1))
    values, vectors = np.linalg.eigh(M / size[..., :, None] / size[..., None, :])
    return Judged(size, values, vectors, values <= UNSEEN * np.maximum(values[..., -1:], 0))


def free_directions(size: np.ndarray, null: np.ndarray) -> np.ndarray:
    """An orthonormal basis [d, f], in the coordinates' own units, of what one matrix does not see.

    Rows in the order of their size and pivoting keep small entries exact beside large ones (Cox, Higham: Stability of
    Householder QR factorization for weighted least squares, 1998).
    """
    rounded = np.abs(null).max(axis=1) <= UNSEEN
    given = np.where(rounded[:, None], 0, null) / size[:, None]
    order = np.argsort(-np.abs(given).max(axis=1), kind="stable")
    basis = np.empty(given.shape)
    basis[order] = qr(given[order], mode="economic", pivoting=True)[0]
    return basis


def pseudo_inverses(M: np.ndarray) -> np.ndarray:
    """The inverses of matrices [n, d, d], and where there is none the pseudo-inverse: it gives solutions of least norm.

    >>> from confrere.networks.ranks import pseudo_inverses
    >>> import numpy as np
    >>> pseudo_inverses(np.diag([1e14, 1e-6, 0.0])[None])[0].diagonal().round(20).tolist()
    [1e-14, 1000000.0, 0.0]
    """
    found = judged(M)
    half = found.vectors / found.size[..., None]
    each = np.where(found.unseen, 0, 1 / np.where(found.unseen, 1, found.values))
    inverse = (half * each[:, None]) @ half.transpose(0, 2, 1)
    some = found.unseen.any(axis=1) & ~found.unseen.all(axis=1)
    for i in np.flatnonzero(some):
        free = free_directions(found.size[i], found.vectors[i][:, found.unseen[i]])
        seen = np.eye(M.shape[1]) - free @ free.T
        inverse[i] = seen @ inverse[i] @ seen
    return inverse
