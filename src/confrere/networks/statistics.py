"""What a squared loss needs of a node's rows: sufficient statistics, of a size that does not grow with the rows.

    (1/m_i) |y_i - X_i w|^2 = w'Q_i w + q_i'w + c_i,    Q_i = X_i'X_i/m_i,  q_i = -2 X_i'y_i/m_i,  c_i = |y_i|^2/m_i

A node without labels has Q_i = 0, q_i = 0, c_i = 0: its loss is zero, and its neighbours alone say what its model is
(semi-supervised learning, book 6.4).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import real_array
from confrere.core import Block
from confrere.networks.blocks import UNROLLED, pivots
from confrere.networks.pieces import in_pieces
from confrere.networks.ranks import roots_of

ROUNDING = 1e-9  # of matrices with a diagonal of ones
CLEARLY = 1e-4  # an eigenvalue of such matrices that no rounding of single precision makes
IN_CACHE = 50_000  # numbers
CHUNK = 50_000  # nodes whose rows are turned to double precision at a time


class Quadratic(NamedTuple):
    """The losses w'Q_i w + q_i'w + c_i of all nodes, in double precision.

    >>> import confrere as cf
    >>> losses = cf.networks.Quadratic(Q=[[[1.0]], [[1.0]]], q=[[0.0], [-6.0]], c=[0.0, 9.0])  # w^2 and (w - 3)^2
    >>> p = cf.networks.GTVMin(cf.networks.Network.from_edges([(0, 1)]), losses, alpha=1.0)
    >>> p.solve().round(6).tolist()
    [[1.0], [2.0]]
    """

    Q: np.ndarray  # [n, d, d], symmetric
    q: np.ndarray  # [n, d]
    c: np.ndarray  # [n]

    def values(self, W: np.ndarray) -> np.ndarray:
        """The loss of every node [n] at its model W[i]."""
        return np.einsum("ni,nij,nj->n", W, self.Q, W, optimize=True) + (self.q * W).sum(axis=1) + self.c


def check_quadratic(given: Quadratic, n: int, nodes: np.ndarray | None = None) -> Quadratic:
    """The statistics as arrays of double precision, symmetric to the last bit, if they fit the network.

    `nodes`: what the n nodes are called in messages.
    """
    Q, q, c = (real_array(name, a, None, False) for name, a in given._asdict().items())
    names = np.arange(n) if nodes is None else nodes
    if q.ndim != 2 or len(q) != n or Q.shape != (*q.shape, q.shape[1]):
        raise ValueError(f"{n} nodes need Q [n, d, d] and q [n, d], not the shapes {Q.shape} and {q.shape}")
    if c.shape not in ((), (n,)):
        raise ValueError(f"c must be one number, or one per node [{n}], not of shape {c.shape}")
    c = np.broadcast_to(c, (n,))
    for name, array in (("q", q), ("c", c)):
        check_finite_of(name, array, names)
    doubtful, askew = np.zeros(n, bool), np.zeros(n, bool)

    def work(part: slice) -> None:
        entries = by_entries(Q[part])
        askew[part] = (entries != entries.transpose(1, 0, 2)).any(axis=(0, 1))
        doubtful[part] = ~clearly_convex(entries)

    in_pieces(n, work)
    step = max(1, IN_CACHE // max(Q[:1].size, 1))
    rest = np.flatnonzero(doubtful | askew)
    for first in range(0, len(rest), step):
        part = rest[first : first + step]
        check_finite_of("Q", Q[part], names[part])
        check_convex(Q[part], names[part])
    return Quadratic((Q + Q.transpose(0, 2, 1)) / 2 if askew.any() else Q, q, c)


def check_finite_of(name: str, array: np.ndarray, nodes: np.ndarray) -> None:
    """Refuse what has a value that is not finite, naming the node."""
    if np.isfinite(array.sum()):
        return  # a sum of what is not finite is not
    broken = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
    if broken.any():
        raise ValueError(f"{name} of node {nodes[broken.argmax()]} has a value that is not finite")


def by_entries(Q: np.ndarray) -> np.ndarray:
    """Matrices [n, d, d] as [d, d, n]: the same entry of all of them side by side."""
    n, d, _ = Q.shape
    return np.ascontiguousarray(Q.reshape(n, d * d).T).reshape(d, d, n)


def clearly_convex(entries: np.ndarray) -> np.ndarray:
    """Which of the matrices [d, d, n] are finite with no negative eigenvalue beyond doubt, told by single precision.

    With a diagonal of ones all their eigenvalues are above 1e-4, far above the rounding, if elimination finds positive
    pivots after as much is taken from the diagonal.
    """
    if len(entries) > UNROLLED:
        return np.zeros(entries.shape[2], bool)
    with np.errstate(over="ignore"):
        return np.asarray(clearly_positive(entries.astype(np.float32)))


@jax.jit
def clearly_positive(M: jax.Array) -> jax.Array:
    """The same, in JAX."""
    less = 1 - CLEARLY * jnp.eye(len(M), dtype=M.dtype)[:, :, None]
    found = pivots(M * less)
    return ((found > 0) & jnp.isfinite(found)).all(axis=0)


def check_convex(Q: np.ndarray, nodes: np.ndarray) -> None:
    """Refuse matrices [n, d, d] of these nodes: not symmetric but for rounding, or with a negative eigenvalue."""
    size = roots_of(np.einsum("njj->nj", Q))
    scaled = Q / size[:, :, None] / size[:, None]
    askew = np.abs(scaled - scaled.transpose(0, 2, 1)).max(axis=(1, 2), initial=0) > ROUNDING
    if askew.any():
        i = int(askew.argmax())
        raise ValueError(f"Q of node {nodes[i]} is not symmetric: give (Q + Q')/2, which is all that counts in w'Q w")
    try:
        np.linalg.cholesky(scaled + ROUNDING * np.eye(Q.shape[1]))
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(scaled)[:, 0]
        i = int(lowest.argmin())
        raise ValueError(
            f"Q of node {nodes[i]} has a negative eigenvalue ({np.linalg.eigvalsh(Q[i])[0]:.2g}): its loss has no "
            "minimum; every Q must be positive semi-definite"
        ) from None


def statistics(
    X: Sequence[np.ndarray], y: Sequence[np.ndarray], nodes: Sequence[int] | np.ndarray | None = None
) -> Quadratic:
    """The sufficient statistics of every node's rows, as `row_blocks` gives them; `nodes`: their names in messages."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = sums_of_squares(X, y)
    if not np.isfinite(sum(float(a.sum()) for a in found)):
        broken = ~(np.isfinite(found.Q).all(axis=(1, 2)) & np.isfinite(found.q).all(axis=1) & np.isfinite(found.c))
        if broken.any():
            i = (range(len(X)) if nodes is None else nodes)[int(broken.argmax())]
            raise ValueError(f"node {i} has values whose squares are too large for a number: give them in other units")
    return found


def sums_of_squares(X: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> Quadratic:
    """The same, whatever becomes too large."""
    n, d = len(X), X[0].shape[1]
    Q, q, c = np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n)
    if isinstance(X, np.ndarray) and isinstance(y, np.ndarray):
        for start in range(0, n if X.shape[1] else 0, CHUNK):
            part = slice(start, start + CHUNK)
            rows, labels = X[part].astype(float), y[part].astype(float)
            Q[part] = rows.transpose(0, 2, 1) @ rows / X.shape[1]
            q[part] = -2 * np.einsum("nmd,nm->nd", rows, labels) / X.shape[1]
            c[part] = np.square(labels).mean(axis=1)
        return Quadratic(Q, q, c)
    for i, (rows, labels) in enumerate(zip(X, y, strict=True)):
        if len(labels):
            Q[i], q[i], c[i] = rows.T @ rows / len(labels), -2 * rows.T @ labels / len(labels), np.mean(labels**2)
    return Quadratic(Q, q, c)


def padded(X: Sequence[np.ndarray], y: Sequence[np.ndarray], dtype) -> Block:
    """Ragged rows as one block."""
    size = np.array([len(a) for a in y])
    shape = len(size), max(int(size.max()), 1)
    rows, labels = np.zeros((*shape, X[0].shape[1])), np.zeros(shape)
    for i, m in enumerate(size):
        rows[i, :m], labels[i, :m] = X[i], y[i]
    ids = jnp.arange(len(size), dtype=jnp.int32)
    return Block(jnp.asarray(rows, dtype), jnp.asarray(labels, dtype), jnp.asarray(size, jnp.int32), ids)
