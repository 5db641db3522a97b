"""The solution of GTVMin with quadratic losses: the linear system (Q_i + alpha L) W = -q/2, to a tolerance.

Conjugate gradients run in single precision until its rounding is reached, and then go on in double, also where JAX is
set to single precision (its default): so any tolerance down to about 1e-13 can be had, and a loose one costs half.

Where the solution is not unique it is the one of least norm. A direction is free if it is the same for all nodes of a
component and none of their rows sees it: what lies in it is taken away (eigenvalues of the mean Q_i below 1e-13 of the
largest count as 0).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from confrere.networks.blocks import laid_out
from confrere.networks.conjugate import System, conjugate_gradients, left
from confrere.networks.network import Network
from confrere.networks.statistics import Quadratic

SINGLE = 3e-6  # the relative residual that single precision can reach
PATIENCE = 300  # iterations in single precision; what takes more is ill-conditioned, and goes on in double
UNSEEN = 1e-13
SMALL = 20_000  # unknowns up to which single precision saves nothing
LARGEST = 4000  # unknowns of a dense solution


def system_of(quadratic: Quadratic, network: Network, coupling: np.ndarray, dtype) -> System:
    """The left side in some precision."""
    return System(jnp.asarray(laid_out(quadratic.Q), dtype), network.layout(dtype), jnp.asarray(coupling, dtype))


def solution(
    quadratic: Quadratic, network: Network, coupling: np.ndarray, tol: float, most: int, system: Callable[..., System]
) -> np.ndarray:
    """The minimiser of least norm [n, d], in double precision; `system(dtype)` is the left side."""
    b = -quadratic.q / 2
    size = float(np.linalg.norm(b))
    W, after, iterations = np.zeros(b.shape), size, 0
    if b.size > SMALL:
        goal, most_single = max(tol, SINGLE) * size, min(most, PATIENCE)
        found = conjugate_gradients(system(jnp.float32), jnp.asarray(b, jnp.float32), goal, most_single)
        after, iterations = float(found.residual), int(found.iterations)
        W = np.asarray(found.W, float) if np.isfinite(after) else W
    if not after <= tol * size:
        with jax.enable_x64(True):
            whole = system(jnp.float64)
            r = left(whole, jnp.asarray(b), jnp.asarray(W)) if W.any() else jnp.asarray(b)
            found = conjugate_gradients(whole, r, tol * size, most)
            W, after, iterations = W + np.asarray(found.W), float(found.residual), iterations + int(found.iterations)
    if not after <= tol * size:
        raise RuntimeError(
            f"after {iterations} iterations the residual is {after / size:.1e} of the right side, not {tol:.1e}: "
            "the problem is too ill-conditioned (scale the features alike), or give a larger tol or `most`"
        )
    return least_norm(W, quadratic, network, coupling)


def least_norm(W: np.ndarray, quadratic: Quadratic, network: Network, coupling: np.ndarray) -> np.ndarray:
    """Take away what lies in directions that neither a row nor the coupling sees."""
    coupled = coupling > 0
    labels = network.labels if coupled.any() else np.arange(network.n)
    if coupled.any() and not coupled.all():
        return least_norm_of_partial(W, quadratic, labels, coupled)
    count = np.bincount(labels)
    mean = sums_by(labels, quadratic.Q) / count[:, None, None]
    values, vectors = np.linalg.eigh(mean)
    unseen = values <= UNSEEN * np.maximum(values[:, -1:], 0)
    if not unseen.any():
        return W
    free = vectors * unseen[:, None, :]
    average = sums_by(labels, W) / count[:, None]
    return W - np.einsum("cij,ckj,ck->ci", free, free, average)[labels]


def sums_by(labels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The sums of values [n, ...] over equal labels."""
    if not labels.any():
        return values.sum(axis=0)[None]
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    return np.add.reduceat(values[order], starts, axis=0)


def least_norm_of_partial(W, quadratic: Quadratic, labels: np.ndarray, coupled: np.ndarray) -> np.ndarray:
    """The same where some coordinates are every node's own: component by component, from the unseen directions.

    A free direction has coupled coordinates v, common to the component, and own coordinates u_i for every node, with
    Q_i (v, u_i) = 0 for all of them.
    """
    W = W.copy()
    own = np.flatnonzero(~coupled)
    for c in range(labels.max() + 1):
        nodes = np.flatnonzero(labels == c)
        if all_seen(quadratic.Q[nodes]):
            continue
        size = int(coupled.sum())
        if size + len(own) * len(nodes) > LARGEST:
            raise ValueError(
                f"the solution is not unique, and {len(nodes)} nodes with {len(own)} parameters of their own are too "
                "many to find the one of least norm: couple all parameters a little (penalty above 0)"
            )
        k = np.arange(len(nodes))[:, None]
        places = np.c_[np.tile(np.arange(size), (len(nodes), 1)), size + k * len(own) + np.arange(len(own))]
        places = places[:, np.argsort(np.r_[np.flatnonzero(coupled), own])]
        reduced = np.zeros((places.max() + 1,) * 2)
        for rows, Q in zip(places, quadratic.Q[nodes], strict=True):
            reduced[np.ix_(rows, rows)] += Q
        weight = np.where(np.arange(len(reduced)) < size, len(nodes), 1) ** 0.5
        values, vectors = np.linalg.eigh(reduced / np.outer(weight, weight))
        free = vectors[:, values <= UNSEEN * values[-1]]  # in coordinates in which lengths are those of [n, d]
        flat = np.zeros(len(reduced))
        np.add.at(flat, places, W[nodes])
        taken = (free @ (free.T @ (flat / weight))) / weight
        W[nodes] -= taken[places]
    return W


def all_seen(Q: np.ndarray) -> bool:
    """Whether every node's rows see every direction, which suffices."""
    lowest = np.linalg.eigvalsh(Q)[:, 0]
    return bool((lowest > UNSEEN * np.trace(Q, axis1=1, axis2=2)).all())


def closed_form(quadratic: Quadratic, network: Network, coupling: np.ndarray) -> np.ndarray:
    """The minimiser of least norm from the dense matrix of all unknowns, [n, d]: for small problems."""
    n, d = quadratic.q.shape
    if n * d > LARGEST:
        raise ValueError(f"{n} nodes x {d} parameters are too many for a dense solution ({LARGEST}): use solve()")
    H = np.kron(network.laplacian().toarray(), np.diag(coupling))
    for i in range(n):
        H[i * d : (i + 1) * d, i * d : (i + 1) * d] += quadratic.Q[i]
    values, vectors = np.linalg.eigh(H)
    seen = values > UNSEEN * max(values[-1], 0)
    b = vectors.T @ (-quadratic.q / 2).ravel()
    return (vectors[:, seen] @ (b[seen] / values[seen])).reshape(n, d)
