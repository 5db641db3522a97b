"""The solution of GTVMin with quadratic losses: the linear system (Q_i + alpha L) W = -q/2, to a tolerance.

Conjugate gradients run in single precision until its rounding is reached, and then go on in double, also where JAX is
set to single precision (its default): so any tolerance down to about 1e-13 can be had, and a loose one costs half. All
is done with features scaled alike (a mean square of 1 over the network), so that units do not matter.

Where the solution is not unique it is the one of least norm, in the features' own units (`free`).
"""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from confrere.networks.blocks import placed
from confrere.networks.conjugate import Common, Found, System, conjugate_gradients, preconditioner
from confrere.networks.free import LARGEST, free_parts, least_norm, sums_by
from confrere.networks.network import Network
from confrere.networks.quick import prepared, quick_gradients
from confrere.networks.ranks import pseudo_inverses, roots_of
from confrere.networks.statistics import Quadratic

SINGLE = 3e-6  # the relative residual that single precision can reach
ROUGH = 1e-3  # what single precision leaves more of may be far off where nothing is determined: begin again without it
PATIENCE = 300  # iterations in single precision; what takes more is ill-conditioned, and goes on in double
IN_CACHE = 20_000  # nodes up to which any order will do
SMALL = 20_000  # unknowns up to which single precision saves nothing
STIFF = 30.0  # a coupling of so many times the losses' curvature is helped by steps of whole components


def scales_of(Q: np.ndarray) -> np.ndarray:
    """What features are multiplied by, so that their mean squares over the network are 1."""
    return 1 / roots_of(np.einsum("njj->j", Q) / len(Q))


def stiff(network: Network, strength: np.ndarray) -> bool:
    """Whether the coupling of scaled coordinates is so strong that steps of whole components help."""
    return float(strength.max() * network.degrees.mean()) > STIFF


def order_of(network: Network) -> np.ndarray | None:
    """The order of a system's nodes, by which neighbours' models share lines of the cache; None: as they are."""
    return network.near_order if network.n > IN_CACHE else None


def system_of(quadratic: Quadratic, network: Network, coupling: np.ndarray, dtype) -> System:
    """The left side in some precision, of features scaled alike."""
    scale = scales_of(quadratic.Q)
    strength = coupling * scale**2
    common = common_part(quadratic, network, scale * (coupling > 0), dtype) if stiff(network, strength) else None
    order = order_of(network)
    blocks, layout = placed(quadratic.Q, dtype, order), network.layout(dtype, ordered=order is not None)
    return System(blocks, layout, jnp.asarray(strength, dtype), jnp.asarray(scale, dtype), common)


def common_part(quadratic: Quadratic, network: Network, scale: np.ndarray, dtype) -> Common:
    """The inverses of what a component's nodes see together, of coordinates that are coupled."""
    total = sums_by(network.labels, quadratic.Q, np.ones(network.n))
    inverse = pseudo_inverses(total * scale[:, None] * scale)
    order = order_of(network)
    labels = network.labels if order is None else network.labels[order]
    return Common(None if network.connected else jnp.asarray(labels, jnp.int32), jnp.asarray(inverse, dtype))


def solution(
    quadratic: Quadratic, network: Network, coupling: np.ndarray, tol: float, most: int, system: Callable[..., System]
) -> np.ndarray:
    """The minimiser of least norm [n, d], in double precision; `system(dtype)` is the left side."""
    scale, order = scales_of(quadratic.Q), order_of(network)
    b = (quadratic.q if order is None else quadratic.q[order]) * (-scale / 2)
    unit = float(np.abs(b).max()) or 1.0  # squares of very small labels would be 0
    b = b / unit
    W: np.ndarray | None = None
    after, iterations, left = float(b.any()), 0, np.nan
    for dtype, again in ((jnp.float32, 2), (jnp.float64, 1)) if b.size > SMALL else ((jnp.float64, 1),):
        goal, times = (max(tol, SINGLE), min(most, PATIENCE)) if dtype == jnp.float32 else (tol, most)
        with jax.enable_x64(dtype == jnp.float64):
            for found in attempts(system(dtype), b, W, goal, times, again) if after > tol else ():
                iterations += int(found.iterations)
                left = float(found.residual)
                if left < after:
                    W, after = np.asarray(found.W, float), left
                if after <= goal:
                    break
        if after > max(tol, ROUGH):
            W, after = None, float(b.any())
    if not after <= tol:
        raise not_reached(iterations, left, tol)
    W = np.zeros(b.shape) if W is None else W * scale * unit
    if order is not None:
        W[order] = W.copy()
    return least_norm(W, quadratic, network, coupling)


def attempts(system: System, b: np.ndarray, W: np.ndarray | None, tol: float, most: int, again: int) -> Iterator[Found]:
    """Conjugate gradients from W (None: zeros) in the system's precision.

    Large systems `again` times the quick way, each from where the one before ended, as long as that gains anything;
    then, in double precision, as they are defined.
    """
    dtype = system.blocks.dtype
    right, start = jnp.asarray(b, dtype), None if W is None else jnp.asarray(W, dtype)
    if b.size > SMALL and system.common is None:
        quick, before = prepared(system), 1.0
        for _ in range(again):
            found = quick_gradients(system, quick, right, start, tol, most)
            yield found
            if not float(found.residual) < before / 2:
                break
            start, before = found.W, float(found.residual)
        if dtype == jnp.float32:
            return
    start = jnp.zeros_like(right) if start is None else start
    yield conjugate_gradients(system, preconditioner(system), right, start, tol, most)


def not_reached(iterations: int, after: float, tol: float) -> RuntimeError:
    """What to say where the iterations end before the tolerance."""
    return RuntimeError(
        f"after {iterations} iterations the residual is {after:.1e} of the right side, not {tol:.1e}: "
        "the problem is too ill-conditioned, or give a larger tol or `most`"
    )


def times(quadratic: Quadratic, network: Network, coupling: np.ndarray, W: np.ndarray) -> np.ndarray:
    """(Q_i + coupling L) W, from differences of models: exact also where the coupling is by far the larger part."""
    i, j = network.edges.T
    pull = coupling * network.weights[:, None] * (W[i] - W[j])
    total = np.einsum("nij,nj->ni", quadratic.Q, W)
    np.add.at(total, i, pull)
    np.add.at(total, j, -pull)
    return total


def closed_form(quadratic: Quadratic, network: Network, coupling: np.ndarray) -> np.ndarray:
    """The minimiser of least norm from the dense matrix of all unknowns, [n, d]: for small problems.

    Free directions are filled up, so that the matrix has an inverse; what it leaves of the right side is solved for
    again until nothing changes.
    """
    n, d = quadratic.q.shape
    if n * d > LARGEST:
        raise ValueError(f"{n} nodes x {d} parameters are too many for a dense solution ({LARGEST}): use solve()")
    H = np.kron(network.laplacian().toarray(), np.diag(coupling))
    for i in range(n):
        H[i * d : (i + 1) * d, i * d : (i + 1) * d] += quadratic.Q[i]
    size = roots_of(H.diagonal())
    H /= size[:, None] * size
    for part in free_parts(quadratic, network, coupling):
        free = np.linalg.qr(part.vectors(n).reshape(n * d, -1) * size[:, None])[0]
        H += free @ free.T
    inverse = inverse_of(H)
    W, moved, all_of_it = np.zeros((n, d)), 0.0, 0.0
    for _ in range(20):
        r = -quadratic.q / 2 - times(quadratic, network, coupling, W)
        step = (inverse(r.ravel() / size) / size).reshape(n, d)
        W += step
        moved, all_of_it = (float(np.linalg.norm(a.ravel() * size)) for a in (step, W))
        if moved <= 1e-15 * all_of_it:
            break
    if not moved <= 1e-9 * all_of_it:
        raise RuntimeError(
            "the coupling is so much larger than the losses that a dense matrix does not hold both: use solve()"
        )
    return least_norm(W, quadratic, network, coupling)


def inverse_of(H: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Products with the inverse; directions that rounding has made singular after all are left out."""
    try:
        factor = cho_factor(H)
        return lambda b: np.asarray(cho_solve(factor, b))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(H)
        seen = values > 1e-15 * values[-1]
        return lambda b: vectors[:, seen] @ ((vectors[:, seen].T @ b) / values[seen])
