"""The quick way of large problems: the same iterations from one matrix per node, and arrays made piece by piece."""

import jax.numpy as jnp
import numpy as np
import pytest

from confrere.networks import GTVMin, Network, Quadratic, pieces, posed, quick, solve
from confrere.networks.blocks import placed
from confrere.networks.conjugate import conjugate_gradients, preconditioner
from confrere.networks.layout import in_precision, lay_out
from confrere.networks.statistics import by_entries, check_quadratic, clearly_convex
from tests.network_problems import connected, rows_of


@pytest.fixture
def large(monkeypatch):
    """Treat small problems like large ones."""
    monkeypatch.setattr(solve, "SMALL", 0)
    monkeypatch.setattr(posed, "IN_CACHE", 0)
    monkeypatch.setattr(pieces, "PIECE", 4)


def posed_and_right_side(p):
    given = posed.posed(p.quadratic, p.network, p.coupling())
    return given, given.right_side(p.quadratic.q)


@pytest.mark.parametrize("penalty", ["squared", np.array([1.0, 0, 2])])
def test_quick_iterations_are_those_of_conjugate_gradients(x64, penalty):
    X, y = rows_of(12)
    p = GTVMin(connected(12), alpha=0.7, X=X, y=[None, *y[1:]], penalty=penalty)
    given, b = posed_and_right_side(p)
    system, made = solve.system_of(given, jnp.float64), quick.prepared(given, jnp.float64)
    start = np.random.default_rng(0).normal(size=b.shape)
    for k in (0, 1, 5, 12):
        plain = conjugate_gradients(system, preconditioner(system), jnp.asarray(b), jnp.asarray(start), 0.0, k)
        found = quick.quick_gradients(given, made, b, start, 0.0, k)
        np.testing.assert_allclose(found.W, plain.W, atol=1e-9)
        np.testing.assert_allclose(found.residual, plain.residual, rtol=1e-5, atol=1e-12)
        assert int(found.iterations) == int(plain.iterations) == k
    found = quick.quick_gradients(given, made, b, None, 1e-6, 100)
    assert int(found.iterations) < 40
    W, k = quick.steps(made, jnp.asarray(b), None, 1e-6, 100)  # without norms: of what it begins with
    assert k == found.iterations
    np.testing.assert_allclose(W, found.W, atol=1e-12)


def test_pieces_cover_every_node_on_all_threads_and_hand_on_what_goes_wrong(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 4)
    for n in (1, 4, 5, 8, 11):
        seen = np.zeros(n, int)
        pieces.in_pieces(n, lambda part, seen=seen: np.add.at(seen, np.arange(part.start, part.stop), 1))
        assert (seen > 0).all()

    def broken(part: slice) -> None:
        raise ValueError("a piece")

    with pytest.raises(ValueError, match="a piece"):
        pieces.in_pieces(11, broken)


def test_inverses_in_pieces_are_those_of_the_whole(x64, large):
    X, y = rows_of(11)
    given, b = posed_and_right_side(GTVMin(connected(11), alpha=0.4, X=X, y=y))
    system = solve.system_of(given, jnp.float64)
    np.testing.assert_allclose(quick.prepared(given, jnp.float64).inverse, preconditioner(system), rtol=1e-9)
    np.testing.assert_allclose(given.times(b), system.times(jnp.asarray(b)), rtol=1e-12)
    Q = np.random.default_rng(0).normal(size=(11, 3, 3))
    order = np.random.default_rng(1).permutation(11)
    Q = Q + Q.transpose(0, 2, 1)
    np.testing.assert_array_equal(placed(Q, np.float64, order), Q[order].transpose(2, 0, 1))


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("tol", [1e-3, 1e-12])
def test_what_is_solved_the_quick_way_is_the_closed_form(large, alpha, tol):
    X, y = rows_of(12)
    p = GTVMin(connected(12), alpha=alpha, X=X, y=y)
    np.testing.assert_allclose(p.solve(tol), p.closed_form(), atol=1e4 * tol)


def test_the_quick_way_on_rows_that_leave_models_open_has_the_solution_of_least_norm(large):
    X, y = rows_of(9, d=4, rows=(1, 3))
    net = Network.from_edges([(0, 1), (1, 2), (2, 3), (5, 6)], 9)
    p = GTVMin(net, alpha=0.5, X=X, y=[None, *y[1:]])
    np.testing.assert_allclose(p.solve(1e-12), p.closed_form(), atol=1e-6)


def test_where_the_recurrence_loses_too_much_the_plain_iterations_go_on(large, monkeypatch):
    right = quick.quick_gradients

    def spoilt(given, made, b, start, tol, most):
        W = right(given, made, b, start, tol, most).W * 1.01
        return quick.Found(W, 1, np.linalg.norm(b - given.times(W)) / np.linalg.norm(b))

    monkeypatch.setattr(solve, "quick_gradients", spoilt)
    X, y = rows_of(12)
    p = GTVMin(connected(12), alpha=1.0, X=X, y=y)
    np.testing.assert_allclose(p.solve(1e-12), p.closed_form(), atol=1e-8)


@pytest.mark.parametrize("edges", [[(0, i) for i in range(1, 40)], [(i, i + 1) for i in range(0, 39, 2)]])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_ordered_layout_is_that_of_the_nodes_in_their_order(x64, edges, weighted):
    net = Network.from_edges(edges, weights=np.linspace(0.5, 2, len(edges)) if weighted else None)
    order = net.near_order
    assert sorted(order.tolist()) == list(range(net.n))
    W = np.random.default_rng(0).normal(size=(net.n, 2))
    found = in_precision(lay_out(net.adjacency(), order), np.float64).differences(jnp.asarray(W[order]))
    np.testing.assert_allclose(found, (net.laplacian() @ W)[order], atol=1e-12)


def test_the_matrix_that_a_network_gives_away_is_not_its_own():
    net = connected(5)
    net.adjacency().data[:] = 7
    assert (net.adjacency().data != 7).all()


def of_eigenvalues(values, seed):
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    Q = (turn * values) @ turn.T
    return (Q + Q.T) / 2


def test_only_what_is_convex_beyond_doubt_passes_the_quick_check():
    good = np.stack([of_eigenvalues(np.array([1.0, 2, 0.2, 4]), seed) for seed in range(20)])
    units = np.array([1e5, 1.0, 1e-5, 3.0])
    assert clearly_convex(by_entries(good)).all()
    assert clearly_convex(by_entries(good * units[:, None] * units)).all()
    for lowest in (1e-7, 0.0, -1e-7, -0.1, -5.0):
        bad = np.stack([of_eigenvalues(np.array([lowest, 1, 2, 4]), seed) for seed in range(20)])
        assert not clearly_convex(by_entries(bad)).any()
    assert not clearly_convex(np.zeros((4, 4, 2))).any()
    beyond = np.stack([1e300 * np.eye(4), 1e-300 * np.eye(4)])  # single precision
    assert not clearly_convex(by_entries(beyond)).any()
    check_quadratic(Quadratic(np.stack([1e300 * np.eye(4), np.zeros((4, 4))]), np.zeros((2, 4)), np.zeros(2)), 2)


@pytest.mark.parametrize("what", ["askew", "askew a little", "negative", "nan", "infinite", "infinite beside"])
def test_one_wrong_matrix_among_many_is_named(monkeypatch, what):
    monkeypatch.setattr(pieces, "PIECE", 4)
    Q, q, c = np.tile(np.eye(3), (30, 1, 1)), np.zeros((30, 3)), np.zeros(30)
    wrong = {
        "askew": np.eye(3, k=1), "askew a little": 1e-8 * np.eye(3, k=1), "negative": np.diag([0.0, -2.0, 0.0]),
        "nan": np.full((3, 3), np.nan), "infinite": np.diag([0.0, np.inf, 0.0]),
        "infinite beside": np.array([[0, np.inf, 0], [np.inf, 0, 0], [0, 0, 0]]),
    }  # fmt: skip
    Q[17] += wrong[what]
    with pytest.raises(ValueError, match="Q of node 17"):
        check_quadratic(Quadratic(Q, q, c), 30)
