"""The network Lasso is solved: its conditions of optimality hold, also in odd units and where data are degenerate."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize

from confrere import networks as nets
from confrere.networks import GTVMin, Network, Quadratic, lasso
from confrere.networks.fused import minimum
from confrere.networks.posed import scales_of
from confrere.reproduce.book.fl_algorithms import problem_of
from confrere.reproduce.book.stations import split_stations
from tests.network_problems import connected, problem, rows_of


def instance(seed):
    """A random problem: few or many rows, units of features and nodes far apart, nodes without labels, any alpha."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 16)), int(rng.integers(1, 5))
    X, y = rows_of(n, d, seed, spread=rng.choice([0, 0.1, 1]), rows=(1, 8) if seed % 3 == 0 else (8, 15))
    units = 10 ** rng.uniform(-3, 3, d)
    X = [a * (1, 10 ** rng.uniform(-2, 2), units)[seed % 4 % 3] for a in X]
    y = [None if i and seed % 5 == 0 and rng.uniform() < 0.4 else b for i, b in enumerate(y)]
    net = connected(n, seed=seed) if seed % 7 else Network.from_edges([(i, i + 1) for i in range(n - 1)])
    return GTVMin(net, alpha=10 ** rng.uniform(-5, 3), X=X, y=y, penalty="norm")


def forces_on(p, W, i, u):
    """What pulls at node i, term by term: its own loss, and the forces on its edges."""
    (a, b), q = p.network.edges.T, p.quadratic
    return np.stack([2 * q.Q[i] @ W[i], q.q[i], *u[a == i], *-u[b == i]])


def is_optimal(p, W, u, tol):
    """Whether forces u [E, d] prove models W to be a minimum: at every node they balance, whatever features' units;
    none is above its limit; and where models differ it is at its limit and points from one to the other."""
    square = np.einsum("njj->j", p.quadratic.Q)
    scale = 1 / np.sqrt(np.where(square > 0, square, 1))
    terms = [forces_on(p, W, i, u) * scale for i in range(p.n)]
    sizes = np.array([np.linalg.norm(t, axis=1).sum() for t in terms])
    assert all(np.linalg.norm(t.sum(axis=0)) <= tol * (s + sizes.mean()) for t, s in zip(terms, sizes, strict=True))
    limit, gaps = p.alpha * p.network.weights, W[p.network.edges[:, 0]] - W[p.network.edges[:, 1]]
    assert (np.linalg.norm(u, axis=1) <= limit * (1 + tol)).all()
    objective = np.abs(np.einsum("ni,nij,nj->", W, p.quadratic.Q, W)) + np.abs(p.quadratic.q * W).sum()
    assert (limit * np.linalg.norm(gaps, axis=1) - (u * gaps).sum(axis=1)).sum() <= tol * objective + 1e-300
    return True


def solved(p, tol=1e-10):
    given, labels = lasso.coupled_of(p.quadratic, p.network, p.alpha)
    found, _ = minimum(given, scales_of(given.Q), labels, None, tol, 20_000)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_forces_prove_that_random_problems_are_solved(seed):
    p = instance(seed)
    found = solved(p)
    assert is_optimal(p, found.W, found.u, 2e-10)
    assert p.objective(p.solve()) <= p.objective(found.W) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_with_one_feature_it_is_the_dual_problem_s_solution_by_scipy(seed):
    p = problem(n=8, d=1, seed=seed, alpha=0.2, penalty="norm")
    i, j = p.network.edges.T
    D = np.zeros((len(i), 8))
    D[np.arange(len(i)), i], D[np.arange(len(i)), j] = 1, -1
    Q, q = p.quadratic.Q[:, 0, 0], p.quadratic.q[:, 0]
    limit = 0.2 * p.network.weights
    root = np.sqrt(Q)
    u = lsq_linear(D.T / root[:, None], -q / root, (-limit, limit), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(p.solve().ravel(), -(q + D.T @ u) / (2 * Q), atol=1e-7)


@pytest.mark.parametrize("units", [np.ones(3), np.array([1.0, 100.0, 1e-2])])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_minimum_that_scipy_comes_near(seed, units):
    X, y = rows_of(6, seed=seed)
    p = GTVMin(connected(6, seed=seed), alpha=0.2, X=[a * units for a in X], y=y, penalty="norm")
    (i, j), A = p.network.edges.T, p.network.weights

    def smoothed(z):
        W = z.reshape(6, 3) / units
        norms = np.sqrt(np.square(W[i] - W[j]).sum(axis=1) + 1e-14)
        pull = np.zeros_like(W)
        each = 0.2 * (A / norms)[:, None] * (W[i] - W[j])
        np.add.at(pull, i, each)
        np.add.at(pull, j, -each)
        slope = 2 * np.einsum("nij,nj->ni", p.quadratic.Q, W) + p.quadratic.q + pull
        return p.quadratic.values(W).sum() + 0.2 * A @ norms, (slope / units).ravel()

    near = minimize(smoothed, np.zeros(18), jac=True, method="BFGS", options={"maxiter": 5000, "gtol": 1e-9})
    assert near.fun * (1 - 1e-4) <= p.objective(p.solve()) <= near.fun * (1 + 1e-12)


def test_one_column_a_hundred_times_as_large_is_solved_at_the_defaults():
    X, y = rows_of(12)
    p = GTVMin(connected(12), alpha=0.3, X=[a * [1, 1, 100] for a in X], y=y, penalty="norm")
    found = solved(p)
    assert is_optimal(p, p.solve(), found.u, 1e-9)


def test_nodes_whose_rows_are_of_different_sizes_are_solved_at_the_defaults():
    rows, labels = [np.array([[1e-2]]), np.array([[1.0]])], [np.array([1.01]), np.array([1.0])]
    p = GTVMin(Network.from_edges([(0, 1)]), alpha=1e-3, X=rows, y=labels, penalty="norm")
    np.testing.assert_allclose(p.solve().ravel(), [96, 1.0005], rtol=1e-12)  # each slope is the force, 1e-3


def test_the_book_s_network_is_solved_at_the_defaults(shared_data):
    given = problem_of(split_stations(1))
    p = GTVMin(given.network, given.quadratic, alpha=0.5, penalty="norm")
    found = solved(p)
    assert is_optimal(p, p.solve(), found.u, 1e-9)
    assert p.objective(found.W) < p.objective(given.solve())  # whose models minimise another objective


def test_neighbours_that_are_equal_have_the_same_bits():
    p = problem(n=8, alpha=0.3, penalty="norm", spread=0.1)
    W = p.solve()
    gaps = np.linalg.norm(W[p.network.edges[:, 0]] - W[p.network.edges[:, 1]], axis=1)
    assert (gaps == 0).any()
    assert (gaps[gaps > 0] > 1e-6).all()


def test_the_tolerance_decides_little_of_where_it_ends():
    p = problem(n=12, alpha=0.1, penalty="norm")
    np.testing.assert_allclose(p.solve(1e-6), p.solve(1e-13), atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1e6])
def test_degenerate_problems_are_defined(alpha):
    net = Network.from_edges([(0, 1), (1, 2)], 6)  # 3, 4 and 5 are alone
    X, y = [np.ones((2, 2))] * 6, [[1.0, 2.0], None, [3.0, 3.0], [1.0, 1.0], None, [0.0, 0.0]]
    W = GTVMin(net, alpha=alpha, X=X, y=y, penalty="norm").solve()
    np.testing.assert_allclose(W[3:], [[0.5, 0.5], [0, 0], [0, 0]], atol=1e-12)
    if alpha == 0:
        np.testing.assert_allclose(W[:3], [[0.75, 0.75], [0, 0], [1.5, 1.5]], atol=1e-12)
    if alpha == 1e6:
        np.testing.assert_allclose(W[:3], np.full((3, 2), 1.125), rtol=1e-9)
    nothing = GTVMin(net, alpha=alpha, X=X, y=[[0.0, 0.0]] * 6, penalty="norm").solve()
    assert not nothing.any()


def test_large_networks_are_solved_by_steps_to_the_same_models(monkeypatch):
    p = problem(n=8, alpha=0.3, penalty="norm", spread=0.1)
    exact = p.solve()
    monkeypatch.setattr(lasso, "FACTORED", 0)
    np.testing.assert_allclose(p.solve(1e-10, most=200_000), exact, atol=1e-8)
    with pytest.raises(RuntimeError, match=r"after 20 iterations the conditions .* give a larger tol or `most`"):
        p.solve(most=20)


def test_what_has_no_minimum_is_told():
    p = GTVMin(
        Network.from_edges([(0, 1)]), Quadratic(np.zeros((2, 1, 1)), np.ones((2, 1)), 0.0), alpha=1.0, penalty="norm"
    )
    with pytest.raises(RuntimeError, match="the conditions of optimality are missed by"):
        p.solve()


def test_a_start_is_checked_and_leads_to_the_same_models(monkeypatch):
    p = problem(n=8, alpha=0.3, penalty="norm", spread=0.1)
    exact, start = p.solve(), np.full((8, 3), 2.0)
    np.testing.assert_allclose(p.solve(start=start), exact, atol=1e-10)
    monkeypatch.setattr(lasso, "FACTORED", 0)
    np.testing.assert_allclose(p.solve(tol=1e-9, start=exact, most=2000), exact, atol=1e-8)
    with pytest.raises(ValueError, match=r"start must have the shape \(8, 3\)"):
        p.solve(start=np.zeros((2, 2)))


def test_the_loop_ends_where_nodes_of_different_sizes_are_solved(x64):
    X, y = rows_of(6)
    p = GTVMin(connected(6), alpha=0.3, X=[a * 10.0 ** (i % 3) for i, a in enumerate(X)], y=y, penalty="norm")
    np.testing.assert_allclose(nets.network_lasso(p, iterations=20_000).W, p.solve(), atol=1e-6)
