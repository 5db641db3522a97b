"""Bounds of models that are coupled along a network: of eigenvalues, of their spread and of their errors.

Q is the matrix of the whole problem (5.2): the objective is w'Qw + q'w + c. lambda_max is the largest eigenvalue of any
Q_i, lambda_min that of the smallest of their mean (5.4), and rho = lambda_min/(4 lambda_max).

The book couples all coordinates alike, by alpha. With strengths (6.5) each has a coupling of its own: `alpha` may be
`p.coupling()` [d], and a bound takes the smallest where it divides and the largest where it multiplies.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from confrere.checks import check_network, check_single_numbers, real_array
from confrere.networks.kinds import quadratic_of
from confrere.networks.network import Network
from confrere.networks.problem import GTVMin
from confrere.networks.rows import models_of, noise_of


class Curvature(NamedTuple):
    """(5.4): the largest eigenvalue of any Q_i, and the smallest of their mean."""

    largest: float
    mean_smallest: float

    @property
    def rho(self) -> float:
        """lambda_min / (4 lambda_max)."""
        return self.mean_smallest / (4 * positive(self.largest, "the largest eigenvalue of any Q_i"))


def curvature(p: GTVMin) -> Curvature:
    """The two numbers by which the book's bounds know the data (5.4).

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [3.0]])
    >>> cf.networks.bounds.curvature(p)
    Curvature(largest=4.0, mean_smallest=2.5)
    """
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
    """(3.14): the total variation of models W [n, d] is at least lambda_2 sum_i |w_i - mean|^2.

    It is that of strengths of 1; for others give W times their roots.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> cf.networks.bounds.variation_bound(net, [[0.0], [3.0]])  # reached: the variation is 9 too
    9.0
    """
    check_network(network)
    return network.lambda_2() * spread(models_of("W", W, network.n))


def smallest_coupling(alpha: float | np.ndarray) -> float:
    """The coupling by which any coordinate is held at least, to divide by."""
    what = "the smallest coupling (alpha times a strength)" if np.ndim(alpha) else "alpha"
    return positive(float(np.min(alpha)), what)


def spread_bound(network: Network, alpha: float | np.ndarray, noise: Sequence[np.ndarray]) -> float:
    """Prop. 3.1 and (8.5): sum_i |w_i - mean|^2 <= sum_i |e_i|^2/m_i / (lambda_2 alpha), if y_i = X_i w + e_i.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> cf.networks.bounds.spread_bound(net, alpha=2.0, noise=[[1.0, -1.0], [3.0]])  # (1 + 9)/(2 * 2)
    2.5
    """
    check_network(network)
    noise = noise_of(noise, network.n)
    return noise_power(noise) / (connectivity(network) * smallest_coupling(alpha))


def noise_power(noise: Iterable[np.ndarray]) -> float:
    """sum_i |e_i|^2/m_i.

    >>> noise_power([[1.0, -1.0], [3.0]])
    10.0
    """
    return float(sum(np.mean(np.square(e)) for e in noise if len(e)))


def noise_for(p: GTVMin, noise: Any) -> list[np.ndarray]:
    """The noise of every node of a problem, as much as it has labels."""
    return noise_of(noise, p.n, None if p.rows is None else p.rows[1])


def upper_eigenvalue(p: GTVMin) -> float:
    """Prop. 5.1: eigenvalues of Q are at most lambda_max + 2 alpha d_max. (5.22) has a maximum where a sum is right.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [3.0]])
    >>> cf.networks.bounds.upper_eigenvalue(p), round(cf.networks.extreme_eigenvalues(p)[1], 4)
    (6.0, 5.3028)
    """
    return curvature(p).largest + 2 * float(p.coupling().max()) * float(p.network.degrees.max(initial=0))


def lower_eigenvalue(p: GTVMin) -> float:
    """Prop. 5.2: eigenvalues of Q are at least min(lambda_2 alpha rho^2, lambda_min/2) / (1 + rho^2).

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [3.0]])
    >>> round(cf.networks.bounds.lower_eigenvalue(p), 4), round(cf.networks.extreme_eigenvalues(p)[0], 4)
    (0.0477, 1.6972)
    """
    data = curvature(p)
    least = min(p.network.lambda_2() * float(p.coupling().min()) * data.rho**2, data.mean_smallest / 2)
    return least / (1 + data.rho**2)


def cluster_bound(
    network: Network, nodes: Sequence[int], alpha: float | np.ndarray, noise: Sequence[np.ndarray], true: np.ndarray,
    largest: float,
) -> float:  # fmt: skip
    """Prop. 6.1: how far models of a cluster are from their mean, sum of |w_i - mean|^2 over it.

    `noise`: the e_i of the cluster's nodes, whose labels are X_i true + e_i; `largest`: the largest norm of a model
    outside of it. The proof's (6.6) sums over ordered pairs, where edges count once.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1), (1, 2)], weights=[2.0, 0.5])
    >>> cf.networks.bounds.cluster_bound(net, [0, 1], alpha=1.0, noise=[[1.0], [1.0]], true=[1.0], largest=2.0)
    1.75
    """
    check_network(network)
    check_single_numbers(largest=largest)
    noise, true = noise_of(noise, network.induced(nodes).n), real_array("true", true, "[d]")
    leaving = float(np.max(alpha)) * network.boundary(nodes) * 2 * (float(np.square(true).sum()) + largest**2)
    return (noise_power(noise) + leaving) / (smallest_coupling(alpha) * connectivity(network.induced(nodes)))


def connectivity_bound(network: Network) -> float:
    """Prop. 7.1: lambda_2 is at most n/(n - 1) times the smallest degree.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> cf.networks.bounds.connectivity_bound(net), round(net.lambda_2(), 6)  # reached
    (2.0, 2.0)
    """
    check_network(network)
    if network.n < 2:
        raise ValueError("a network of one node has no second eigenvalue")
    return network.n / (network.n - 1) * float(network.degrees.min())


def sensitivity_bound(p: GTVMin, noise: Sequence[np.ndarray]) -> float:
    """Prop. 8.1: sum_i |change of w_i|^2 if labels change by e_i; as printed, and very loose.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [3.0]])
    >>> moved = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [4.0]])
    >>> bool(((moved.solve() - p.solve()) ** 2).sum() < cf.networks.bounds.sensitivity_bound(p, [[0.0], [1.0]]))
    True
    """
    data, total = curvature(p), sum(float(np.square(e).sum()) for e in noise_for(p, noise))
    return data.largest / positive(lower_eigenvalue(p), "the bound of the smallest eigenvalue") ** 2 * total


def tight_sensitivity_bound(p: GTVMin, noise: Sequence[np.ndarray], smallest: float) -> float:
    """The same from the smallest eigenvalue of Q itself, and with the rows: lambda_max sum_i |e_i|^2/m_i / smallest^2.

    The solution moves by exactly -Q^-1 n/2 with n_i = -(2/m_i) X_i'e_i; (8.2) leaves out the factor.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [3.0]])
    >>> smallest, _ = cf.networks.extreme_eigenvalues(p)
    >>> round(cf.networks.bounds.tight_sensitivity_bound(p, [[0.0], [1.0]], smallest), 4)
    1.3886
    """
    return curvature(p).largest / positive(smallest, "the smallest eigenvalue") ** 2 * noise_power(noise_for(p, noise))


def mean_error_bound(p: GTVMin, noise: Sequence[np.ndarray], W: np.ndarray) -> float:
    """(8.7): |mean of the models - true|^2, from X_i'(e_i - X_i (w_i - mean)); (8.6)-(8.7) have the sign wrong.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [4.0]])  # the true model is 1
    >>> W = p.solve()
    >>> round(cf.networks.bounds.mean_error_bound(p, [[-1.0], [2.0]], W), 4), round(float(W.mean() - 1) ** 2, 4)
    (0.1111, 0.1111)
    """
    smallest = positive(curvature(p).mean_smallest, "the smallest eigenvalue of the mean Q_i")
    if p.rows is None:
        raise ValueError("this bound needs the rows: X and y")
    models, errors = models_of("W", W, p.n, p.d), noise_for(p, noise)
    off = models - models.mean(axis=0)
    parts = [X.T @ (e - X @ o) / len(e) for X, e, o in zip(p.rows[0], errors, off, strict=True) if len(e)]
    return float(np.square(np.sum(parts, axis=0)).sum()) / (p.n * smallest) ** 2


def estimation_bound(p: GTVMin, noise: Sequence[np.ndarray]) -> float:
    """(8.9): |mean of the models - true|^2 if y_i = X_i true + e_i, from the size of the noise alone.

    With strengths, from the smallest coupling; a parameter that is not coupled at all leaves no bound.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[2.0]]], y=[[0.0], [3.0]])
    >>> round(cf.networks.bounds.estimation_bound(p, [[-1.0], [1.0]]), 4)
    3.84
    """
    data = curvature(p)
    factor = data.largest + data.largest**2 / (connectivity(p.network) * smallest_coupling(p.coupling()))
    smallest = positive(data.mean_smallest, "the smallest eigenvalue of the mean Q_i")
    return 2 * factor * noise_power(noise_for(p, noise)) / (p.n * smallest**2)
