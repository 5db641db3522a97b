"""The book's bounds hold on random instances, and its errors are errors."""

import numpy as np
import pytest

import confrere as cf
from confrere.networks import GTVMin, Network, bounds
from confrere.networks.accelerated import extreme_eigenvalues, matrix_of
from tests.network_problems import connected

SEEDS = range(30)


def instance(seed, n=6, d=3, alpha=None):
    """A problem whose nodes share one true model, the noise of their labels, and the model.

    Edges have weights of their own, and in two of three problems parameters are coupled by strengths, some very small.
    """
    rng = np.random.default_rng(seed)
    true = rng.normal(size=d)
    X = [rng.normal(size=(rng.integers(2, 12), d)) * rng.uniform(0.3, 2, d) for _ in range(n)]
    noise = [rng.uniform(0.1, 1) * rng.normal(size=len(a)) for a in X]
    alpha = float(10 ** rng.uniform(-2, 1)) if alpha is None else alpha
    y = [a @ true + e for a, e in zip(X, noise, strict=True)]
    penalty = [1.0, 10 ** rng.uniform(-4, 1), 10 ** rng.uniform(-4, 1, d)][seed % 3]
    return GTVMin(connected(n, seed=seed), alpha=alpha, X=X, y=y, penalty=penalty), noise, true


def with_labels(p, y):
    """The same problem with other labels."""
    return GTVMin(p.network, alpha=p.alpha, X=p.rows[0], y=y, penalty=p.strengths)


def deviation(W):
    return np.square(W - W.mean(axis=0)).sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_total_variation_is_at_least_its_spread_times_the_connectivity(seed):
    p, _, _ = instance(seed)
    W = np.random.default_rng(seed).normal(size=(6, 3))
    assert p.total_variation(W) >= bounds.variation_bound(p.network, W * np.sqrt(p.strengths)) - 1e-12


def test_the_bound_of_the_total_variation_is_reached_by_the_second_eigenvector():
    net = connected(6)
    vector = np.linalg.eigh(net.laplacian())[1][:, 1:2]
    p = GTVMin(net, alpha=1.0, X=[np.ones((1, 1))] * 6, y=[[0.0]] * 6)
    np.testing.assert_allclose(p.total_variation(vector), bounds.variation_bound(net, vector))


@pytest.mark.parametrize("seed", SEEDS)
def test_models_of_one_truth_are_near_their_mean_and_their_mean_near_the_truth(seed):
    p, noise, true = instance(seed)
    W = p.closed_form()
    assert deviation(W) <= bounds.spread_bound(p.network, p.coupling(), noise) + 1e-12
    error = np.square(W.mean(axis=0) - true).sum()
    assert error <= bounds.mean_error_bound(p, noise, W) + 1e-12
    assert bounds.mean_error_bound(p, noise, W) <= bounds.estimation_bound(p, noise) * (1 + 1e-9)


def test_the_bound_of_the_mean_s_error_knows_how_weakly_strengths_couple():
    X, noise = [np.array([[1e-2]]), np.array([[1.0]])], [np.array([1.0]), np.array([0.0])]
    y = [a @ [1.0] + e for a, e in zip(X, noise, strict=True)]
    edge = Network.from_edges([(0, 1)])
    weak, same = (GTVMin(edge, alpha=a, X=X, y=y, penalty=s) for a, s in ((1e3, 1e-9), (1e-6, "squared")))
    assert (weak.solve().mean() - 1) ** 2 <= bounds.estimation_bound(weak, noise)
    np.testing.assert_allclose(bounds.estimation_bound(weak, noise), bounds.estimation_bound(same, noise))
    with pytest.raises(ValueError, match=r"the smallest coupling .* is 0, so that there is no bound"):
        bounds.estimation_bound(GTVMin(edge, alpha=1.0, X=X, y=y, penalty=0.0), noise)


@pytest.mark.parametrize("seed", SEEDS)
def test_eigenvalues_lie_between_their_bounds(seed):
    p, _, _ = instance(seed)
    low, high = extreme_eigenvalues(p)
    assert bounds.lower_eigenvalue(p) <= low + 1e-12
    assert high <= bounds.upper_eigenvalue(p) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_every_bound_is_the_formula_of_the_book(seed):
    p, noise, true = instance(3 * seed)  # coupled by alpha alone
    A, alpha = p.network.adjacency().toarray(), p.alpha
    Q = [X.T @ X / len(X) for X in p.rows[0]]
    connectivity = np.linalg.eigvalsh(np.diag(A.sum(axis=1)) - A)[1]
    largest = max(np.linalg.eigvalsh(one)[-1] for one in Q)
    smallest = np.linalg.eigvalsh(sum(Q) / 6)[0]
    rho, power = smallest / (4 * largest), sum(e @ e / len(e) for e in noise)
    least = min(connectivity * alpha * rho**2, smallest / 2)
    cluster, inside = [1, 2, 3], A[1:4, 1:4]
    leaving = alpha * A[np.ix_(cluster, [0, 4, 5])].sum() * 2 * (true @ true + 1.5**2)
    within = np.linalg.eigvalsh(np.diag(inside.sum(axis=1)) - inside)[1]
    own = sum(noise[i] @ noise[i] / len(noise[i]) for i in cluster)
    for found, formula in (
        (bounds.spread_bound(p.network, alpha, noise), power / (connectivity * alpha)),  # (3.31), (8.5)
        (bounds.upper_eigenvalue(p), largest + 2 * alpha * A.sum(axis=1).max()),  # (5.5)
        (bounds.lower_eigenvalue(p), least / (1 + rho**2)),  # (5.6)
        (bounds.cluster_bound(p.network, cluster, alpha, [noise[i] for i in cluster], true, 1.5),
         (own + leaving) / (alpha * within)),  # (6.4)
        (bounds.connectivity_bound(p.network), 6 / 5 * A.sum(axis=1).min()),  # (7.3)
        (bounds.sensitivity_bound(p, noise),
         largest * (1 + rho**2) ** 2 / least**2 * sum(e @ e for e in noise)),  # (8.3)
        (bounds.tight_sensitivity_bound(p, noise, 0.3), largest * power / 0.3**2),
        (bounds.estimation_bound(p, noise),
         2 * (largest + largest**2 / (connectivity * alpha)) * power / (6 * smallest**2)),  # (8.9)
    ):  # fmt: skip
        np.testing.assert_allclose(found, formula, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_move_the_solution_by_exactly_minus_half_of_q_inverse_times_n(seed):
    p, noise, _ = instance(seed)
    X, y = p.rows
    moved = with_labels(p, [b + e for b, e in zip(y, noise, strict=True)]).closed_form()
    n = np.concatenate([-2 / len(e) * a.T @ e for a, e in zip(X, noise, strict=True)])  # (8.2), with its factor
    exact = -np.linalg.solve(matrix_of(p).toarray(), n).reshape(6, 3) / 2
    np.testing.assert_allclose(moved - p.closed_form(), exact, atol=1e-8)


def test_the_larger_of_two_eigenvalues_does_not_bound_that_of_the_sum():
    p = GTVMin(Network.from_edges([(0, 1)]), alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [0.0]])
    _, high = extreme_eigenvalues(p)
    assert high > max(bounds.curvature(p).largest, p.alpha * p.network.lambda_n())  # what (5.22) would say


@pytest.mark.parametrize("seed", SEEDS)
def test_models_of_a_cluster_are_near_their_mean(seed):
    p, noise, _ = instance(seed)
    rng = np.random.default_rng(seed + 100)
    cluster, truth = [0, 1, 2], rng.normal(size=3)
    X, _ = p.rows
    y = [X[i] @ (truth if i in cluster else 3 * rng.normal(size=3)) + noise[i] for i in range(6)]
    W = with_labels(p, y).closed_form()
    inside = [noise[i] for i in cluster]
    largest = np.linalg.norm(W[3:], axis=1).max()
    assert deviation(W[cluster]) <= bounds.cluster_bound(p.network, cluster, p.coupling(), inside, truth, largest)


@pytest.mark.parametrize("seed", SEEDS)
def test_connectivity_is_bounded_by_the_smallest_degree(seed):
    net = Network.erdos_renyi(9, 0.6, seed)
    assert net.lambda_2() <= bounds.connectivity_bound(net) + 1e-12


def test_the_complete_network_reaches_the_bound_of_its_connectivity():
    net = Network.erdos_renyi(7, 1.0)
    np.testing.assert_allclose(net.lambda_2(), bounds.connectivity_bound(net))


@pytest.mark.parametrize("seed", SEEDS)
def test_solutions_move_no_further_than_labels_make_them(seed):
    p, noise, _ = instance(seed)
    _, y = p.rows
    moved = with_labels(p, [b + e for b, e in zip(y, noise, strict=True)]).closed_form()
    change = np.square(moved - p.closed_form()).sum()
    tight = bounds.tight_sensitivity_bound(p, noise, extreme_eigenvalues(p)[0])
    assert change <= tight + 1e-12
    assert tight <= bounds.sensitivity_bound(p, noise)


@pytest.mark.parametrize("seed", range(6))
def test_gradient_steps_contract_as_promised(seed, x64):
    p, _, _ = instance(seed, alpha=0.5)
    low, high = extreme_eigenvalues(p)
    lr = bounds.best_rate(low, high)
    factor = bounds.contraction(lr, low, high)
    np.testing.assert_allclose(factor, (high / low - 1) / (high / low + 1))
    assert factor <= min(bounds.contraction(lr * f, low, high) for f in (0.5, 0.9, 1.1))
    best = p.closed_form()
    start = np.linalg.norm(best)
    k = bounds.iterations_needed(start, 0.1 * start, factor)
    gap = np.linalg.norm(cf.networks.fedgd(p, lr=np.full(4000, lr)[:k], iterations=k).W - best)
    assert gap <= factor**k * start * (1 + 1e-9)
    assert gap <= 0.1 * start * (1 + 1e-9)


def test_the_book_s_exercise_on_alpha_and_the_contraction():
    edge = Network.from_edges([(0, 1)])
    for first, second, known in (
        (1.0, 1000.0, [0.999, 0.998, 0.989, 0.909, 0.739, 0.707, 0.881]),
        (1000.0, 1000.0, [0, 0.002, 0.02, 0.2, 0.8, 0.998, 1.2]),
    ):
        X = [np.full((1, 1), a**0.5) for a in (first, second)]
        for alpha, factor in zip((0, 1, 10, 100, 400, 499, 600), known, strict=True):
            p = GTVMin(edge, alpha=alpha, X=X, y=[[-5.0], [5.0]])
            assert abs(bounds.contraction(0.5e-3, *extreme_eigenvalues(p)) - factor) < 6e-4


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("failing", ["links", "nodes"])
def test_steps_over_failing_links_and_nodes_stay_within_the_bound_of_perturbed_steps(seed, failing, x64):
    p, _, _ = instance(0, alpha=0.5)
    low, high = extreme_eigenvalues(p)
    lr = bounds.best_rate(low, high)
    factor, best = bounds.contraction(lr, low, high), p.closed_form()
    h = cf.networks.faulty_fedgd(p, lr=lr, iterations=40, seed=seed, **{failing: 0.4})
    gap = np.linalg.norm(h.W - best)
    assert gap <= bounds.perturbed_bound(factor, np.linalg.norm(best), h.perturbation)
    assert h.perturbation.max() > 0


@pytest.mark.parametrize("failing", ["links", "nodes"])
def test_where_everything_fails_the_perturbation_is_all_that_is_missed(failing, x64):
    p, _, _ = instance(3, alpha=0.5)  # coupled by alpha alone
    X, y = p.rows
    start = np.random.default_rng(0).normal(size=(6, 3))
    own = np.stack([2 / len(b) * a.T @ (a @ w - b) for a, b, w in zip(X, y, start, strict=True)])
    pull = 2 * 0.5 * (p.network.laplacian() @ start)
    h = cf.networks.faulty_fedgd(p, lr=0.1, iterations=1, start=start, **{failing: 1.0})
    moved, missed = (0.1 * own, 0.1 * pull) if failing == "links" else (0 * own, 0.1 * (own + pull))
    np.testing.assert_allclose(h.W, start - moved, rtol=1e-10)
    np.testing.assert_allclose(h.perturbation, [np.linalg.norm(missed)], rtol=1e-10)


def test_the_last_perturbation_has_not_shrunk():
    assert bounds.perturbed_bound(0.5, 0.0, [1.0]) == 1  # one step from the minimum, off by 1: (4.14) says 0.5
    assert bounds.perturbed_bound(0.5, 4.0, [1.0, 2.0]) == 0.25 * 4 + 2 + 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_least_squares_errs_as_its_formula_says_and_within_its_bound(seed):
    rng = np.random.default_rng(seed)
    X, noise, true = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=3)
    error = np.linalg.lstsq(X, X @ true + noise, rcond=None)[0] - true
    np.testing.assert_allclose(bounds.regression_error(X, noise), error, atol=1e-10)
    assert error @ error <= bounds.regression_bound(X, noise) * (1 + 1e-9)
    level = noise.mean() ** 2
    assert level <= bounds.mean_bound(noise) <= 4 * (noise @ noise) / 12


def test_the_book_s_bound_of_a_mean_is_false_for_noise_that_is_all_ones():
    noise = np.ones(20)
    assert noise.mean() ** 2 > 4 * (noise @ noise) / 20**2
    assert noise.mean() ** 2 <= bounds.mean_bound(noise)


def test_a_proximal_step_is_least_squares_on_weighted_rows():
    rng = np.random.default_rng(0)
    X, y, centre = rng.normal(size=(8, 3)), rng.normal(size=8), rng.normal(size=3)
    step = np.linalg.solve(X.T @ X / 8 + np.eye(3) / 0.3, X.T @ y / 8 + centre / 0.3)
    rows, labels, weights = bounds.prox_as_rows(X, y, centre, 0.3)
    root = np.sqrt(weights)
    np.testing.assert_allclose(np.linalg.lstsq(rows * root[:, None], labels * root, rcond=None)[0], step, atol=1e-10)


def test_a_factor_of_one_needs_for_ever():
    with pytest.raises(ValueError, match="does not lead to the minimum"):
        bounds.iterations_needed(1.0, 0.1, 1.0)
    assert bounds.iterations_needed(0.05, 0.1, 0.5) == 0
    assert bounds.iterations_needed(1.0, 0.1, 0.0) == 1


def test_where_there_is_no_bound_it_is_said():
    with pytest.raises(ValueError, match="smallest eigenvalue of X'X/m is 0, so that there is no bound"):
        bounds.regression_bound(np.zeros((2, 1)), np.ones(2))
    for tol in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="tol must be above 0"):
            bounds.iterations_needed(distance=1.0, tol=tol, factor=0.5)
