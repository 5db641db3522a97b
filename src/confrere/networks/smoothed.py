"""Newton steps on the network Lasso with smoothed norms.

Smoothed over a length l, a norm's force is b v/t with t = l + sqrt(l^2 + |v|^2): the central path of an interior point
method. Models and forces step together, from u t = b v (Chan, Golub, Mulet: A nonlinear primal-dual method for total
variation-based image restoration, 1999), by a factor of the matrix of all unknowns. Steps do not depend on the units of
features or of nodes, the norm stays as it was given. With a length of 0 they are Newton's own, for models that differ.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import SuperLU, splu

from confrere.networks.optimality import Coupled, held, lengths
from confrere.networks.ranks import roots_of

RIDGES = (1e-14, 1e-11, 1e-8)  # of a diagonal of ones: until a step descends
SHORTEST = 1e-8  # of a step
ROUNDED = 1e-24  # a share of the objective that no further step brings


class Smoothed(NamedTuple):
    """Norms of gaps smoothed over a length: the gaps [E, d], and for each sqrt(l^2 + |v|^2) and l more."""

    v: np.ndarray
    s: np.ndarray
    t: np.ndarray

    def force(self, limit: np.ndarray) -> np.ndarray:
        """b v / t, below its limit [E, d]."""
        return (limit / self.t)[:, None] * self.v


def smoothed(v: np.ndarray, length: float) -> Smoothed:
    """The gaps, smoothed."""
    s = np.maximum(np.hypot(length, lengths(v)), 1e-100)
    return Smoothed(v, s, length + s)


def value(p: Coupled, W: np.ndarray, length: float) -> float:
    """The objective with smoothed norms."""
    t = smoothed(p.gaps(W), length).t
    own = np.einsum("ni,nij,nj->", W, p.Q, W, optimize=True) + (p.q * W).sum()
    return float(own + p.limit @ (t - length * np.log(t)))


def curvatures(p: Coupled, at: Smoothed, u: np.ndarray) -> np.ndarray:
    """The edges' part of a step's matrix [E, d, d]: b (I - u v'/(b s)) / t, made symmetric."""
    along = u[:, :, None] * (at.v / at.s[:, None])[:, None, :]
    symmetric = (along + along.transpose(0, 2, 1)) / 2
    return (p.limit[:, None, None] * np.eye(p.q.shape[1]) - symmetric) / at.t[:, None, None]


def step_matrix(p: Coupled, K: np.ndarray) -> sparse.csc_array:
    """blockdiag(2 Q_i) + D'K D, sparse [n d, n d]."""
    n, d = p.q.shape
    nodes = np.arange(n)
    rows = np.concatenate([nodes, p.i, p.j, p.i, p.j])
    columns = np.concatenate([nodes, p.i, p.j, p.j, p.i])
    blocks = np.concatenate([2 * p.Q, K, K, -K, -K])
    places = [(a[:, None] * d + np.arange(d)) for a in (rows, columns)]
    row = np.broadcast_to(places[0][:, :, None], blocks.shape).ravel()
    column = np.broadcast_to(places[1][:, None, :], blocks.shape).ravel()
    return sparse.csc_array(sparse.coo_array((blocks.ravel(), (row, column)), shape=(n * d, n * d)))


def factor(H: sparse.csc_array) -> SuperLU:
    """A factor of a symmetric, positive definite matrix."""
    return splu(H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def descent(H: sparse.csc_array, g: np.ndarray) -> np.ndarray:
    """-H^-1 g; where H is singular but for rounding, a little of its diagonal is added until this descends."""
    size = roots_of(H.diagonal())
    scaled = sparse.csc_array(sparse.diags_array(1 / size) @ H @ sparse.diags_array(1 / size))
    right = -g.ravel() / size
    for ridge in RIDGES:
        try:
            x = factor(sparse.csc_array(scaled + ridge * sparse.eye_array(len(size)))).solve(right)
        except RuntimeError:  # exactly singular
            continue
        if np.isfinite(x).all() and x @ right > 0:
            return (x / size).reshape(g.shape)
    return (right / size).reshape(g.shape)


def newton(
    p: Coupled, W: np.ndarray, u: np.ndarray, length: float, enough: float, most: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Newton steps at one length until they promise less than `enough`: models, forces, and how many there were."""
    count = 0
    for _ in range(most):
        count += 1
        at = smoothed(p.gaps(W), length)
        g = p.slopes(W) + p.pull(at.force(p.limit))
        step = descent(step_matrix(p, curvatures(p, at, u)), g)
        dv, promised = p.gaps(step), -float((g * step).sum())
        along = (np.einsum("ek,ek->e", at.v, dv) / at.s)[:, None]
        u = held((p.limit[:, None] * (at.v + dv) - u * along) / at.t[:, None], p.limit)
        moved = shortened(p, W, step, promised, length)
        if moved is None:
            break
        W = moved
        if promised <= max(enough, ROUNDED * float(np.abs(p.q * W).sum())):
            break
    return W, u, count


def shortened(p: Coupled, W: np.ndarray, step: np.ndarray, promised: float, length: float) -> np.ndarray | None:
    """The models after as much of a step as lowers the objective; None: nothing of it does."""
    now, part = value(p, W, length), 1.0
    noise = 1e-15 * (abs(now) + np.abs(p.q * W).sum())
    while part > SHORTEST:
        if value(p, W + part * step, length) <= now - 1e-4 * part * promised + noise:
            return W + part * step
        part /= 2
    return None
