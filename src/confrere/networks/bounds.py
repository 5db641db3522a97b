"""The book's bounds as functions, with what is right where it errs.

Q is the matrix of the whole problem (5.2): the objective is w'Qw + q'w + c. lambda_max is the largest eigenvalue of any
Q_i, lambda_min that of the smallest of their mean (5.4), and rho = lambda_min/(4 lambda_max).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from confrere.networks.kinds import quadratic_of
from confrere.networks.network import Network
from confrere.networks.problem import GTVMin


class Curvature(NamedTuple):
    """(5.4): the largest eigenvalue of any Q_i, and the smallest of their mean."""

    largest: float
    mean_smallest: float

    @property
    def rho(self) -> float:
        """lambda_min / (4 lambda_max)."""
        return self.mean_smallest / (4 * positive(self.largest, "the largest eigenvalue of any Q_i"))


def curvature(p: GTVMin) -> Curvature:
    """The two numbers by which the book's bounds know the data (5.4)."""
    Q = quadratic_of(p, "the curvature of the data").Q
    return Curvature(float(np.linalg.eigvalsh(Q)[:, -1].max()), float(max(np.linalg.eigvalsh(Q.mean(axis=0))[0], 0)))


def positive(value: float, what: str) -> float:
    """A number to divide by; 0 means that there is no bound."""
    if not value > 0:
        raise ValueError(f"{what} is {value:g}, so that there is no bound: it must be above 0")
    return value


def connectivity(network: Network) -> float:
    """lambda_2 of a network, to divide by."""
    if not network.connected:
        raise ValueError(
            f"the network has {len(network.components())} components, so that lambda_2 is 0 and there is no bound: "
            "look at each by itself, network.induced(nodes)"
        )
    return network.lambda_2()


def spread(W: np.ndarray) -> float:
    """sum_i |w_i - mean|^2: what lies across the subspace of equal models (3.17)."""
    return float(np.square(W - W.mean(axis=0)).sum())


def variation_bound(network: Network, W: np.ndarray) -> float:
    """(3.14): the total variation of models W [n, d] is at least lambda_2 sum_i |w_i - mean|^2."""
    return network.lambda_2() * spread(np.asarray(W, float))


def spread_bound(network: Network, alpha: float, noise: Sequence[np.ndarray]) -> float:
    """Prop. 3.1 and (8.5): sum_i |w_i - mean|^2 <= sum_i |e_i|^2/m_i / (lambda_2 alpha), if y_i = X_i w + e_i."""
    return noise_power(noise) / (connectivity(network) * positive(alpha, "alpha"))


def noise_power(noise: Iterable[np.ndarray]) -> float:
    """sum_i |e_i|^2/m_i."""
    return float(sum(np.mean(np.square(e)) for e in noise if len(e)))


def upper_eigenvalue(p: GTVMin) -> float:
    """Prop. 5.1: eigenvalues of Q are at most lambda_max + 2 alpha d_max. (5.22) has a maximum where a sum is right."""
    return curvature(p).largest + 2 * float(p.coupling().max()) * float(p.network.degrees.max(initial=0))


def lower_eigenvalue(p: GTVMin) -> float:
    """Prop. 5.2: eigenvalues of Q are at least min(lambda_2 alpha rho^2, lambda_min/2) / (1 + rho^2)."""
    data = curvature(p)
    least = min(p.network.lambda_2() * float(p.coupling().min()) * data.rho**2, data.mean_smallest / 2)
    return least / (1 + data.rho**2)


def cluster_bound(
    network: Network, nodes: Sequence[int], alpha: float, noise: Sequence[np.ndarray], true: np.ndarray, largest: float
) -> float:
    """Prop. 6.1: how far models of a cluster are from their mean, sum of |w_i - mean|^2 over it.

    `noise`: the e_i of the cluster's nodes, whose labels are X_i true + e_i; `largest`: the largest norm of a model
    outside of it. The proof's (6.6) sums over ordered pairs, where edges count once.
    """
    leaving = alpha * network.boundary(nodes) * 2 * (float(np.square(true).sum()) + largest**2)
    return (noise_power(noise) + leaving) / (positive(alpha, "alpha") * connectivity(network.induced(nodes)))


def connectivity_bound(network: Network) -> float:
    """Prop. 7.1: lambda_2 is at most n/(n - 1) times the smallest degree."""
    if network.n < 2:
        raise ValueError("a network of one node has no second eigenvalue")
    return network.n / (network.n - 1) * float(network.degrees.min())


def sensitivity_bound(p: GTVMin, noise: Sequence[np.ndarray]) -> float:
    """Prop. 8.1: sum_i |change of w_i|^2 if labels change by e_i; as printed, and very loose."""
    data, total = curvature(p), sum(float(np.square(e).sum()) for e in noise)
    return data.largest / positive(lower_eigenvalue(p), "the bound of the smallest eigenvalue") ** 2 * total


def tight_sensitivity_bound(p: GTVMin, noise: Sequence[np.ndarray], smallest: float) -> float:
    """The same from the smallest eigenvalue of Q itself, and with the rows: lambda_max sum_i |e_i|^2/m_i / smallest^2.

    The solution moves by exactly -Q^-1 n/2 with n_i = -(2/m_i) X_i'e_i; (8.2) leaves out the factor.
    """
    return curvature(p).largest / positive(smallest, "the smallest eigenvalue") ** 2 * noise_power(noise)


def mean_error_bound(p: GTVMin, noise: Sequence[np.ndarray], W: np.ndarray) -> float:
    """(8.7): |mean of the models - true|^2, from X_i'(e_i - X_i (w_i - mean)); (8.6)-(8.7) have the sign wrong."""
    if p.rows is None:
        raise ValueError("this bound needs the rows: X and y")
    off = np.asarray(W) - np.mean(W, axis=0)
    parts = [X.T @ (e - X @ o) / len(e) for X, e, o in zip(p.rows[0], noise, off, strict=True) if len(e)]
    smallest = positive(curvature(p).mean_smallest, "the smallest eigenvalue of the mean Q_i")
    return float(np.square(np.sum(parts, axis=0)).sum()) / (p.n * smallest) ** 2


def estimation_bound(p: GTVMin, noise: Sequence[np.ndarray]) -> float:
    """(8.9): |mean of the models - true|^2 if y_i = X_i true + e_i, from the size of the noise alone."""
    data = curvature(p)
    factor = data.largest + data.largest**2 / (connectivity(p.network) * positive(p.alpha, "alpha"))
    smallest = positive(data.mean_smallest, "the smallest eigenvalue of the mean Q_i")
    return 2 * factor * noise_power(noise) / (p.n * smallest**2)


def contraction(lr: float, smallest: float, largest: float) -> float:
    """(4.7): by how much a gradient step on w'Qw + q'w brings w nearer to its minimum; the eigenvalues are Q's."""
    return max(abs(1 - 2 * lr * smallest), abs(1 - 2 * lr * largest))


def best_rate(smallest: float, largest: float) -> float:
    """(4.9): the learning rate with the smallest contraction factor, 1/(smallest + largest).

    Where the solution is not unique the smallest eigenvalue is 0, and no rate contracts: give the smallest above 0,
    `extreme_eigenvalues(p, nonzero=True)`, since gradient steps leave free directions alone.
    """
    if not 0 < smallest <= largest:
        raise ValueError(
            f"no rate contracts with the eigenvalues {smallest:g} and {largest:g}: the smallest must be above 0, such "
            "as that of extreme_eigenvalues(p, nonzero=True)"
        )
    return 1 / (smallest + largest)


def iterations_needed(distance: float, tol: float, factor: float) -> int:
    """(4.8): so many gradient steps bring a distance from the minimum below tol."""
    if not 0 <= factor < 1:
        raise ValueError(f"a contraction factor of {factor:g} does not lead to the minimum: it must be below 1")
    if distance <= tol:
        return 0
    return 1 if factor == 0 else math.ceil(math.log(distance / tol) / math.log(1 / factor))


def perturbed_bound(factor: float, distance: float, perturbations: Any) -> float:
    """(4.14): how far perturbed gradient steps end from the minimum, given the norms of the perturbations [k].

        factor^k distance + sum over k' = 1..k of factor^(k'-1) |e_(k-k')|

    The book has factor^k', by which the last perturbation would already have shrunk: it has not.
    """
    sizes = np.asarray(perturbations, float)
    k = len(sizes)
    return float(factor**k * distance + (factor ** np.arange(k) * sizes[::-1]).sum())


def regression_error(X: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Prop. 2.1 made exact: least squares on y = X w + noise errs by -Q^-1 e/2, with e = -(2/m) X'noise."""
    m = len(noise)
    return np.linalg.solve(X.T @ X / m, X.T @ noise / m)


def regression_bound(X: np.ndarray, noise: np.ndarray) -> float:
    """(2.18) made tight: |error|^2 <= |e|^2/(4 lambda_1^2); the book leaves out the 4."""
    m = len(noise)
    smallest = np.linalg.eigvalsh(X.T @ X / m)[0]
    return float(np.square(2 / m * X.T @ noise).sum() / (4 * smallest**2))


def mean_bound(noise: np.ndarray) -> float:
    """(2.22) corrected, for x = 1: error^2 <= 4 (sum of noise)^2/m^2 <= 4 |noise|^2/m; the book divides by m^2."""
    return float(4 * np.sum(noise) ** 2 / len(noise) ** 2)


def prox_as_rows(X: np.ndarray, y: np.ndarray, centre: np.ndarray, eta: float) -> tuple[np.ndarray, ...]:
    """(5.18): the step argmin_v |y - Xv|^2/m + |v - centre|^2/eta as least squares on weighted rows.

    Returns rows, labels and sample weights, for any regression that takes weights: d rows are added, the unit vectors,
    labelled by the centre, each with the weight m/eta.
    """
    m, d = X.shape
    return np.vstack([X, np.eye(d)]), np.concatenate([y, centre]), np.concatenate([np.ones(m), np.full(d, m / eta)])
