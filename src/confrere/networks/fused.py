"""The network Lasso to a tolerance: Newton steps on smoothed norms, which show whose models are equal.

    minimise sum_i w_i'Q_i w_i + q_i'w_i + sum over edges of b_e |v_e|,    v_e = w_i - w_j

Smoothed over a length l, a norm's force is b v/t with t = l + sqrt(l^2 + |v|^2): the central path of an interior point
method. Models and forces step together, from u t = b v (Chan, Golub, Mulet: A nonlinear primal-dual method for total
variation-based image restoration, 1999), by a factor of the matrix of all unknowns; then l is made smaller. Steps do
not depend on the units of features or of nodes, the norm stays as it was given.

On the way it shows which neighbours have the same model. Merged, they leave a smooth problem of fewer nodes, which
Newton steps solve to the last digits. Forces on the edges inside, none above its limit, prove that it is the solution.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU, splu

from confrere.networks.ranks import pseudo_inverses, roots_of

RIDGES = (1e-14, 1e-11, 1e-8)  # of a diagonal of ones: until a step descends
SHORTER = 0.1  # a stage's length by the one before
STAGES = 14
PER_STAGE = 30  # Newton steps
SHORTEST = 1e-8  # of a step
ROUNDED = 1e-24  # a share of the objective that no further step brings
PROJECTIONS = 100  # by which forces inside of merged nodes are looked for
SURE = 1e-3  # smoothed models are gone on from until they miss the conditions by so much less than they may
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


class Found(NamedTuple):
    """Models, forces on edges, and by how much they miss the conditions of optimality."""

    W: np.ndarray
    u: np.ndarray
    missed: float


def lengths(v: np.ndarray) -> np.ndarray:
    """The norms of all rows."""
    return np.sqrt(np.einsum("ek,ek->e", v, v))


def held(u: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Forces no longer than their limit."""
    size = lengths(u)
    return u * np.where(size > limit, limit / np.where(size > 0, size, 1), 1)[:, None]


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


def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, 0 of nothing."""
    return np.where(part > 0, part / np.where(whole > 0, whole, 1e-300), 0)


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
