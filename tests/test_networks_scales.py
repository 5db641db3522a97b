"""Units of features and the strength of the coupling change nothing of which solution is found, and how exactly."""

from fractions import Fraction

import numpy as np
import pytest

from confrere.networks import GTVMin, Network, fedrelax, solve
from confrere.networks.ranks import pseudo_inverses
from tests.network_problems import connected, rows_of, solution_by_hand

UNITS = np.array([1e7, 1e-3, 1.0])


def matrix_and_right_side(p):
    """The normal equations of all models, in rational numbers where sums would round."""
    n, d, A = p.n, p.d, p.network.adjacency().toarray()
    H = [[Fraction(0)] * (n * d) for _ in range(n * d)]
    b = [Fraction(0)] * (n * d)
    for i, (X, y) in enumerate(zip(*p.rows, strict=True)):
        rows = [[Fraction(float(v)) for v in row] for row in X]
        for k in range(d):
            b[i * d + k] = sum(row[k] * Fraction(float(v)) for row, v in zip(rows, y, strict=True)) / len(y)
            for l in range(d):
                H[i * d + k][i * d + l] = sum(row[k] * row[l] for row in rows) / len(y)
            for j in range(n):
                pull = Fraction(p.alpha) * Fraction(float(A[i, j]))
                H[i * d + k][i * d + k] += pull
                H[i * d + k][j * d + k] -= pull
    return H, b


def in_rational_numbers(p):
    H, b = matrix_and_right_side(p)
    for k in range(len(b)):
        pivot = next(i for i in range(k, len(b)) if H[i][k] != 0)
        H[k], H[pivot], b[k], b[pivot] = H[pivot], H[k], b[pivot], b[k]
        for i in range(k + 1, len(b)):
            if H[i][k] != 0:
                factor = H[i][k] / H[k][k]
                H[i] = [a - factor * c for a, c in zip(H[i], H[k], strict=True)]
                b[i] -= factor * b[k]
    x = [Fraction(0)] * len(b)
    for k in reversed(range(len(b))):
        x[k] = (b[k] - sum(H[k][l] * x[l] for l in range(k + 1, len(b)))) / H[k][k]
    return np.array([float(v) for v in x]).reshape(p.n, p.d)


# different units


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e8])
@pytest.mark.parametrize("units", [UNITS, np.ones(3)])
def test_features_in_other_units_and_any_coupling_give_the_exact_solution(alpha, units):
    X, y = rows_of(4)
    p = GTVMin(connected(4), alpha=alpha, X=[a * units for a in X], y=y)
    expected = in_rational_numbers(p) * units
    size = np.abs(expected).max()
    np.testing.assert_allclose(p.closed_form() * units, expected, atol=1e-12 * size)
    np.testing.assert_allclose(p.solve(1e-12) * units, expected, atol=1e-9 * size)


def test_a_node_in_other_units_than_all_others_has_the_exact_solution():
    X, y = rows_of(4)
    X[1] = X[1] * 1e7
    p = GTVMin(connected(4), alpha=0.7, X=X, y=y)
    expected = in_rational_numbers(p)
    np.testing.assert_allclose(p.closed_form(), expected, rtol=1e-9)
    np.testing.assert_allclose(p.solve(1e-12), expected, rtol=1e-8)


def test_a_large_coupling_is_the_single_model_and_not_a_shrunken_one():
    X, y = rows_of(6)
    both = [np.vstack([a / len(a) ** 0.5 for a in X]), np.concatenate([b / len(b) ** 0.5 for b in y])]
    together = np.tile(np.linalg.lstsq(*both, rcond=None)[0], (6, 1))
    for alpha in (1e8, 1e11):
        p = GTVMin(connected(6), alpha=alpha, X=X, y=y)
        np.testing.assert_allclose(p.solve(), together, atol=20 / alpha + 1e-9)
        np.testing.assert_allclose(p.closed_form(), together, atol=20 / alpha + 1e-9)


def test_what_begins_in_single_precision_ends_the_same_in_other_units(monkeypatch):
    monkeypatch.setattr(solve, "SMALL", 0)
    X, y = rows_of(12)
    net = connected(12)
    p = GTVMin(net, alpha=1.0, X=[a * UNITS for a in X], y=y)
    alike = GTVMin(net, alpha=1.0, X=X, y=y, penalty=UNITS**-2.0)  # the same problem, of scaled models
    np.testing.assert_allclose(p.solve(1e-12) * UNITS, alike.closed_form(), atol=1e-9)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e100])
@pytest.mark.parametrize("small", [0, 20_000])
def test_labels_in_any_units_give_models_in_the_same(monkeypatch, unit, small):
    monkeypatch.setattr(solve, "SMALL", small)
    X, y = rows_of(6)
    wanted = GTVMin(connected(6), alpha=1.0, X=X, y=y).closed_form()
    found = GTVMin(connected(6), alpha=1.0, X=X, y=[unit * b for b in y]).solve(1e-11)
    np.testing.assert_allclose(found / unit, wanted, atol=1e-9)


def test_two_components_of_a_large_coupling_have_a_model_each():
    X, y = rows_of(6)
    p = GTVMin(Network.from_edges([(0, 1), (1, 2), (3, 4), (4, 5)]), alpha=1e9, X=X, y=y)
    for nodes in (range(3), range(3, 6)):
        both = [
            np.vstack([X[i] / len(X[i]) ** 0.5 for i in nodes]),
            np.concatenate([y[i] / len(y[i]) ** 0.5 for i in nodes]),
        ]
        expected = np.linalg.lstsq(*both, rcond=None)[0]
        np.testing.assert_allclose(p.solve()[list(nodes)], np.tile(expected, (3, 1)), atol=1e-7)


def test_fedrelax_steps_do_not_depend_on_units(x64):
    X, y = rows_of(4, rows=(1, 3))
    net = Network.from_edges([(0, 1), (1, 2)], 4)  # node 3 has fewer rows than features, and nobody else
    W = fedrelax(GTVMin(net, alpha=0.5, X=[a * UNITS for a in X], y=y), iterations=1).W
    np.testing.assert_allclose(X[3] @ (W[3] * UNITS), y[3], atol=1e-9)
    np.testing.assert_allclose(W[3], np.linalg.lstsq(X[3] * UNITS, y[3], rcond=None)[0], rtol=1e-6, atol=1e-14)


# directions that nobody sees


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1e6])
@pytest.mark.parametrize("unit", [1.0, 1e7, 1e-4])
@pytest.mark.parametrize("net", [connected(4), Network.from_edges([(0, 1), (1, 2)], 4)])
def test_unseen_directions_stay_of_least_norm_in_the_features_own_units(alpha, unit, net):
    X, y = rows_of(4, d=3)
    X = [np.c_[a * [1.0, unit, 1.0], np.zeros(len(a)), 2 * a[:, 0]] for a in X]  # zeros, and twice another column
    p = GTVMin(net, alpha=alpha, X=X, y=y)
    scale = np.array([1.0, unit, 1.0, 1.0, 1.0])
    for W in (p.closed_form(), p.solve(1e-12)):
        assert np.abs(W[:, 3]).max() < 1e-14 * np.abs(W).max()
        np.testing.assert_allclose(W[:, 4], 2 * W[:, 0], rtol=1e-7)  # the shortest split of two columns' sum
    if unit == 1.0 and alpha < 1:
        expected = solution_by_hand(net.adjacency().toarray(), X, y, alpha)
        np.testing.assert_allclose(p.closed_form(), expected, atol=1e-6)
    np.testing.assert_allclose(p.solve(1e-12) * scale, p.closed_form() * scale, atol=1e-7)


def test_partly_shared_models_of_few_rows_in_other_units_are_of_least_norm():
    X, y = rows_of(4, d=4, rows=(1, 3))
    units = np.array([1e2, 1.0, 1e-2, 1.0])
    p = GTVMin(connected(4), alpha=0.7, X=[a * units for a in X], y=y, penalty=[1.0, 0.0, 2.0, 0.0])
    found = p.solve(1e-12)
    np.testing.assert_allclose(found * units, p.closed_form() * units, atol=1e-6 * np.abs(found * units).max())
    assert p.objective(found) <= 1e-9 + min(p.objective(p.closed_form()), p.objective(0 * found))


def test_pseudo_inverses_are_numpy_s_and_exact_in_other_units():
    rng = np.random.default_rng(0)
    low = rng.normal(size=(5, 4, 2))
    M = low @ low.transpose(0, 2, 1)
    np.testing.assert_allclose(pseudo_inverses(M), np.linalg.pinv(M, rcond=1e-10, hermitian=True), atol=1e-9)
    full = M + np.eye(4)
    units = np.array([1e8, 1.0, 1e-5, 3.0])
    scaled = pseudo_inverses(full * units[:, None] * units)
    np.testing.assert_allclose(scaled * units[:, None] * units, np.linalg.inv(full), atol=1e-10)
    assert not pseudo_inverses(np.zeros((2, 3, 3))).any()


def test_what_a_dense_matrix_does_not_hold_is_said():
    X, y = rows_of(4)
    p = GTVMin(connected(4), alpha=1e18, X=X, y=y)
    with pytest.raises(RuntimeError, match=r"use solve\(\)"):
        p.closed_form()
