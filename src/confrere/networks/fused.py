"""The network Lasso to a tolerance: smoothed norms show whose models are equal, and what is left is solved exactly.

The length over which norms are smoothed is made smaller and smaller (`smoothed`). On the way it shows which neighbours
have the same model. Merged, they leave a smooth problem of fewer nodes, which Newton steps solve to the last digits.
Forces on the edges inside, none above its limit, prove that it is the solution (`optimality`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU

from confrere.networks.optimality import Coupled, Sizes, held, lengths, missed_by, sizes_of
from confrere.networks.ranks import pseudo_inverses
from confrere.networks.smoothed import factor, newton, smoothed

SHORTER = 0.1  # a stage's length by the one before
STAGES = 14
PER_STAGE = 30  # Newton steps
PROJECTIONS = 100  # by which forces inside of merged nodes are looked for
SURE = 1e-3  # smoothed models are gone on from until they miss the conditions by so much less than they may


class Found(NamedTuple):
    """Models, forces on edges, and by how much they miss the conditions of optimality."""

    W: np.ndarray
    u: np.ndarray
    missed: float


def beginning(p: Coupled, labels: np.ndarray) -> np.ndarray:
    """The best models that are the same for all nodes of a component."""
    whole = p.merged(labels)
    return -np.einsum("cij,cj->ci", pseudo_inverses(whole.Q), whole.q)[labels] / 2


def reach(p: Coupled, W: np.ndarray) -> float:
    """About how far models want to go: the length of a steepest step."""
    g = p.slopes(W)
    bend = float(np.einsum("ni,nij,nj->", g, 2 * p.Q, g, optimize=True))
    far = float(np.linalg.norm(g)) ** 3 / bend if bend > 0 else 0.0
    return max(far, float(lengths(p.gaps(W)).max(initial=0))) or 1.0


class Balance(NamedTuple):
    """Some edges, by which nodes can be balanced: which [E], their potentials' factor, and how much each can change."""

    edges: np.ndarray
    factor: SuperLU
    weight: np.ndarray

    def balanced(self, p: Coupled, slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The nearest forces that balance the slopes of all nodes; stronger edges change by more."""
        potential = self.factor.solve(slopes + p.pull(u))
        changed = u.copy()
        changed[self.edges] -= self.weight[:, None] * p.gaps(potential)[self.edges]
        return changed


def balance_of(p: Coupled, edges: np.ndarray, labels: np.ndarray) -> Balance:
    """The balance by some edges, which make components with these labels."""
    i, j, weight, n = p.i[edges], p.j[edges], np.square(p.limit[edges]), len(p.q)
    degree = np.bincount(i, weight, n) + np.bincount(j, weight, n)
    first = np.unique(labels, return_index=True)[1]
    degree[first] += np.where(degree[first] > 0, degree[first], 1)  # of a component one potential is free
    places = np.r_[np.arange(n), i, j], np.r_[np.arange(n), j, i]
    laplacian = sparse.coo_array((np.r_[degree, -weight, -weight], places), shape=(n, n))
    return Balance(edges, factor(sparse.csc_array(laplacian)), weight)


def forces_inside(p: Coupled, balance: Balance, slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Forces on edges inside of merged nodes that balance and stay below their limits, if there are such.

    By projections onto the one and the other in turn.
    """
    for _ in range(PROJECTIONS):
        u = balance.balanced(p, slopes, u)
        if (lengths(u) <= p.limit).all():
            break
        u = held(u, p.limit)
    return u


def without_equal(p: Coupled, W: np.ndarray, u: np.ndarray, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Models and forces where neighbours nearer than `near` have one model: the solution of the smooth problem left."""
    n, equal = len(W), lengths(p.gaps(W)) < near
    joined = sparse.coo_array((np.ones(equal.sum()), (p.i[equal], p.j[equal])), shape=(n, n))
    labels = connected_components(joined, directed=False)[1]
    small, count = p.merged(labels), np.bincount(labels)
    models = np.stack([np.bincount(labels, column) / count for column in W.T], axis=1)
    at = smoothed(small.gaps(models), 0.0)
    models, _, _ = newton(small, models, at.force(small.limit), 0.0, 0.0, PER_STAGE)
    found = models[labels]
    inside = labels[p.i] == labels[p.j]
    u = np.where(inside[:, None], u, smoothed(p.gaps(found), 0.0).force(p.limit))
    return found, forces_inside(p, balance_of(p, inside, labels), p.slopes(found), u)


def stages(
    p: Coupled, labels: np.ndarray, sizes: Sizes, W: np.ndarray, most: int
) -> Iterator[tuple[Found, Found, int]]:
    """Length after length: the smoothed solution, that without equal models, and the Newton steps so far."""
    u, far, count = np.zeros((len(p.i), W.shape[1])), reach(p, W), 0
    whole, length = balance_of(p, np.ones(len(p.i), bool), labels), far

    def found(W: np.ndarray, u: np.ndarray) -> Found:
        u = whole.balanced(p, p.slopes(W), u)
        return Found(W, u, missed_by(p, sizes, W, u))

    for _ in range(STAGES):
        enough = 0.01 * length * float(p.limit.mean())
        W, u, steps = newton(p, W, u, length, enough, min(PER_STAGE, most - count))
        count += steps
        yield found(W, u), found(*without_equal(p, W, u, (length * far) ** 0.5)), count
        if count >= most:
            return
        length *= SHORTER


def minimum(
    p: Coupled, scale: np.ndarray, labels: np.ndarray, start: np.ndarray | None, tol: float, most: int
) -> tuple[Found, int]:
    """The models and forces that miss the conditions of optimality by no more than tol, or by least; and the steps.

    Models are kept as differences from what is best for all nodes of a component, so that small gaps keep their digits.
    Smoothed models, whose equal neighbours are not quite equal, are taken where nothing else is found only.
    """
    common = beginning(p, labels)
    best, count = Found(np.zeros_like(common), np.zeros((len(p.i), common.shape[1])), np.inf), 0
    if not len(p.i):
        return Found(common, best.u, 0.0), 0
    moved, sizes = p._replace(q=p.slopes(common)), sizes_of(p, scale, common)
    W = best.W if start is None else start - common
    for smooth, exact, steps in stages(moved, labels, sizes, W, most):
        count = steps
        best = min(best, smooth, exact, key=lambda f: f.missed)
        if exact.missed <= tol or smooth.missed <= tol * SURE:
            break
    return best._replace(W=best.W + common), count
