"""The solution of GTVMin with quadratic losses: the linear system (Q_i + alpha L) W = -q/2, to a tolerance.

Conjugate gradients of large problems run in single precision, round after round: each solves for what the models so
far leave of the right side, which is computed in double precision, also where JAX is set to single (its default). What
this does not solve, and what is small, is iterated in double: so any tolerance down to about 1e-13 can be had, and down
to 1e-12 where rows leave models open (there the preconditioner enlarges what is rounding alone).

Where the solution is not unique it is the one of least norm, in the features' own units (`free`).
"""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from confrere.networks.blocks import placed
from confrere.networks.conjugate import ROUNDED, Common, Found, System, conjugate_gradients, preconditioner
from confrere.networks.free import LARGEST, free_parts, least_norm, sums_by
from confrere.networks.network import Network
from confrere.networks.posed import Posed, posed
from confrere.networks.quick import prepared, quick_gradients
from confrere.networks.ranks import pseudo_inverses, roots_of
from confrere.networks.statistics import Quadratic

SINGLE = 3e-6  # what single precision can leave of what it begins with
ROUGH = 1e-3  # models that leave more may be far off where nothing is determined: they are not gone on from
PATIENCE = 300  # iterations in single precision; what takes more is ill-conditioned, and goes on in double
ROUNDS = 6  # of single precision
SMALL = 20_000  # unknowns up to which single precision saves nothing


def system_of(given: Posed, dtype) -> System:
    """The left side in JAX, in some precision."""
    common = common_part(given, dtype) if given.stiff() else None
    strength, scale = (jnp.asarray(a, dtype) for a in (given.strength, given.scale))
    return System(placed(given.Q, dtype, given.order), given.layout(dtype), strength, scale, common)


def common_part(given: Posed, dtype) -> Common:
    """The inverses of what a component's nodes see together, of coordinates that are coupled."""
    network, scale = given.network, given.scale * (given.strength > 0)
    inverse = pseudo_inverses(sums_by(network.labels, given.Q, np.ones(network.n)) * scale[:, None] * scale)
    labels = network.labels if given.order is None else network.labels[given.order]
    return Common(None if network.connected else jnp.asarray(labels, jnp.int32), jnp.asarray(inverse, dtype))


def solution(
    quadratic: Quadratic, network: Network, coupling: np.ndarray, tol: float, most: int, start: np.ndarray | None = None
) -> np.ndarray:
    """The minimiser of least norm [n, d], in double precision; by iterations from `start` (None: zeros)."""
    given = posed(quadratic, network, coupling)
    b = given.right_side(quadratic.q)
    unit = float(np.abs(b).max()) or 1.0  # squares of very small labels would be 0
    b = b / unit
    W = first = None if start is None else given.scaled(start) / unit
    after, iterations, left = float(b.any()), 0, np.inf
    for dtype in (jnp.float32, jnp.float64) if b.size > SMALL else (jnp.float64,):
        with jax.enable_x64(dtype == jnp.float64):
            for found in attempts(given, dtype, b, W, tol, most) if after > tol else ():
                iterations += int(found.iterations)
                left = min(left, float(found.residual))
                if float(found.residual) < after:
                    W, after = np.asarray(found.W, float), float(found.residual)
                if after <= tol:
                    break
        if after > max(tol, ROUGH):
            W, after = first, float(b.any())
    if not after <= tol:
        raise not_reached(iterations, left, tol)
    W = np.zeros(b.shape) if W is None else given.models(W) * unit
    return least_norm(W, quadratic, network, coupling)


def attempts(given: Posed, dtype, b: np.ndarray, W: np.ndarray | None, tol: float, most: int) -> Iterator[Found]:
    """Conjugate gradients from W (None: zeros) in some precision, each from where the one before ended.

    Large systems the quick way; then, in double precision, as they are defined.
    """
    double = dtype == jnp.float64
    most = most if double else min(most, PATIENCE)
    if b.size > SMALL and not given.stiff():
        quick, before = prepared(given, dtype), 1.0
        for _ in range(1 if double else ROUNDS):
            found = quick_gradients(given, quick, b, W, tol if double else max(tol, SINGLE * before), most)
            after = float(found.residual)
            if not after < max(tol, ROUGH * before):
                break
            yield found
            W, before = found.W, after
        if not double:
            return
    if W is not None and not double:
        return  # models would be rounded
    system, right = system_of(given, dtype), jnp.asarray(b, dtype)
    start = jnp.zeros_like(right) if W is None else jnp.asarray(W, dtype)
    yield conjugate_gradients(system, preconditioner(system), right, start, tol if double else max(tol, SINGLE), most)


def not_reached(iterations: int, after: float, tol: float) -> RuntimeError:
    """What to say where the iterations end before the tolerance; `after`: the least that any of them left."""
    rounded = "double precision leaves no less, give a larger tol"
    why = rounded if after < ROUNDED else "the problem is too ill-conditioned, or give a larger tol or `most`"
    found = f"after {iterations} iterations the residual is {after:.1e} of the right side, not {tol:.1e}"
    return RuntimeError(f"{found}: {why}")


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
