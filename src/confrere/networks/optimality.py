"""The network Lasso on the host, and by how much models and forces miss being its solution.

    minimise sum_i w_i'Q_i w_i + q_i'w_i + sum over edges of b_e |v_e|,    v_e = w_i - w_j

Models are a minimum if there are forces u_e on the edges, none above its limit b_e, that balance every node,
2 Q_i w_i + q_i + sum_e +-u_e = 0, and that pull as they can where models differ: u_e'v_e = b_e |v_e|.
"""

from typing import NamedTuple

import numpy as np

FLOOR = 1e-3  # the share of the mean forces that counts as a node's own at least


class Coupled(NamedTuple):
    """Quadratic losses of n nodes, the ends of E edges, and the largest force on each, above 0."""

    Q: np.ndarray  # [n, d, d]
    q: np.ndarray  # [n, d]
    i: np.ndarray  # [E]
    j: np.ndarray
    limit: np.ndarray

    def gaps(self, W: np.ndarray) -> np.ndarray:
        """w_i - w_j [E, d]."""
        return W[self.i] - W[self.j]

    def pull(self, u: np.ndarray) -> np.ndarray:
        """The forces on every node, added up [n, d]."""
        total = np.zeros(self.q.shape)
        np.add.at(total, self.i, u)
        np.add.at(total, self.j, -u)
        return total

    def both_ends(self, sizes: np.ndarray) -> np.ndarray:
        """Numbers of edges [E], added up at both ends [n]."""
        n = len(self.q)
        return np.bincount(self.i, sizes, n) + np.bincount(self.j, sizes, n)

    def slopes(self, W: np.ndarray) -> np.ndarray:
        """The gradient of every node's own loss [n, d]."""
        return 2 * np.einsum("nij,nj->ni", self.Q, W) + self.q

    def merged(self, labels: np.ndarray) -> "Coupled":
        """The problem of nodes with equal labels as one; edges inside are left out."""
        n, d = labels.max() + 1, self.q.shape[1]
        Q, q = np.zeros((n, d, d)), np.zeros((n, d))
        np.add.at(Q, labels, self.Q)
        np.add.at(q, labels, self.q)
        i, j = labels[self.i], labels[self.j]
        out = i != j
        return Coupled(Q, q, i[out], j[out], self.limit[out])


def lengths(v: np.ndarray) -> np.ndarray:
    """The norms of all rows."""
    return np.sqrt(np.einsum("ek,ek->e", v, v))


def held(u: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Forces no longer than their limit."""
    size = lengths(u)
    return u * np.where(size > limit, limit / np.where(size > 0, size, 1), 1)[:, None]


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, 0 of nothing."""
    return np.where(part > 0, part / np.where(whole > 0, whole, 1e-300), 0)


class Sizes(NamedTuple):
    """By what it is judged whether something is small: features' scale [d], forces of nodes [n], the objective."""

    scale: np.ndarray
    forces: np.ndarray
    objective: float


def sizes_of(p: Coupled, scale: np.ndarray, W: np.ndarray) -> Sizes:
    """The sizes of a problem's own terms near models W."""
    own = 2 * np.einsum("nij,nj->ni", p.Q, W)
    forces = lengths(scale * own) + lengths(scale * p.q)
    return Sizes(scale, forces, float(np.abs(own * W).sum() + np.abs(p.q * W).sum()))


def missed_by(p: Coupled, sizes: Sizes, W: np.ndarray, u: np.ndarray) -> float:
    """By how much models and forces miss being optimal: the largest of three shares, all 0 at the minimum only.

    What is left of a node's balance, of its own forces; what edges could still pull, sum of b|v| - u'v, of all terms
    of the objective; what a force is above its limit.
    """
    v = p.gaps(W)
    left = lengths(sizes.scale * (p.slopes(W) + p.pull(u)))
    whole = sizes.forces + p.both_ends(lengths(sizes.scale * u))
    norms = p.limit * lengths(v)
    gap = np.abs(norms - np.einsum("ek,ek->e", u, v)).sum()
    above = (lengths(u) / p.limit - 1).max(initial=0)
    return float(max(share(left, whole + FLOOR * whole.mean()).max(), share(gap, norms.sum() + sizes.objective), above))
