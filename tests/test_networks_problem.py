"""GTVMin: its objective, its exact solution in all precisions, and what is defined where data are degenerate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from confrere.networks import GTVMin, Network, Quadratic, solve
from confrere.networks.blocks import inverses, laid_out, products
from tests.network_problems import connected, objective_by_hand, problem, rows_of, solution_by_hand


def by_hand(p):
    return solution_by_hand(p.network.adjacency().toarray(), *p.rows, p.alpha)


NET = connected(3)


# the objective


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_counts_every_edge_once_and_divides_by_each_node_s_rows(seed):
    p = problem(seed=seed)
    W = np.random.default_rng(seed).normal(size=(6, 3))
    np.testing.assert_allclose(p.objective(W), objective_by_hand(p, *p.rows, W), rtol=1e-12)
    edges = zip(p.network.edges, p.network.weights, strict=True)
    np.testing.assert_allclose(p.total_variation(W), sum(a * ((W[i] - W[j]) ** 2).sum() for (i, j), a in edges))


def test_the_objective_of_a_program_is_the_objective(x64):
    p = problem()
    W = np.random.default_rng(0).normal(size=(6, 3))
    np.testing.assert_allclose(p.value(p.terms(), jnp.asarray(W)), p.objective(W), rtol=1e-12)


def test_statistics_and_rows_and_stacked_rows_are_one_problem():
    X, y = rows_of(5, rows=(7, 8))
    net = connected(5)
    one = GTVMin(net, alpha=0.5, X=X, y=y)
    stacked = GTVMin(net, alpha=0.5, X=jnp.stack(X), y=jnp.stack(y))
    given = GTVMin(net, Quadratic(*one.quadratic), alpha=0.5)
    for other in (stacked, given):
        np.testing.assert_allclose(other.solve(), one.solve(), atol=1e-5)
    W = np.ones((5, 3))
    np.testing.assert_allclose([stacked.objective(W), given.objective(W)], one.objective(W), rtol=1e-5)


# the solution


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_solve_and_the_closed_form_are_the_normal_equations_also_in_single_precision(seed, alpha):
    assert jnp.result_type(float) == jnp.float32
    X, y = rows_of(6, seed=seed)
    p = GTVMin(connected(6), alpha=alpha, X=X, y=y)
    np.testing.assert_allclose(p.closed_form(), by_hand(p), atol=1e-9)
    np.testing.assert_allclose(p.solve(), by_hand(p), atol=1e-8)


def test_solve_keeps_its_tolerance():
    p = problem(alpha=3.0)
    Q, q, _ = p.quadratic
    for tol in (1e-3, 1e-5, 1e-8, 1e-12):
        W = p.solve(tol)
        residual = np.einsum("nij,nj->ni", Q, W) + q / 2 + 3 * (p.network.laplacian() @ W)
        assert np.linalg.norm(residual) <= 2 * tol * np.linalg.norm(q / 2)


def test_double_precision_gives_the_same(x64):
    p = problem()
    np.testing.assert_allclose(p.solve(), by_hand(p), atol=1e-9)
    assert p.solve().dtype == np.float64


def test_large_problems_begin_in_single_precision_and_end_at_the_tolerance():
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 12, 8))
    y = np.einsum("nmd,d->nm", X, np.arange(8.0)) + np.random.default_rng(1).normal(size=(n, 12))
    net = Network.from_edges([(i, (i + k) % n) for i in range(n) for k in (1, 5)])
    p = GTVMin(net, alpha=1.0, X=X, y=y)
    Q, q, _ = p.quadratic
    for tol in (1e-4, 1e-10):
        W = p.solve(tol)
        residual = np.einsum("nij,nj->ni", Q, W) + q / 2 + net.laplacian() @ W
        assert np.linalg.norm(residual) <= 1.5 * tol * np.linalg.norm(q / 2)


@pytest.mark.parametrize("penalty", ["squared", np.array([1.0, 0, 2])])
def test_nodes_of_large_networks_are_put_in_another_order_and_back(monkeypatch, penalty):
    p = problem(n=9, penalty=penalty)
    wanted = p.closed_form()
    monkeypatch.setattr("confrere.networks.posed.IN_CACHE", 0)
    assert p.network.narrow_order.tolist() != list(range(9))
    np.testing.assert_allclose(p.solve(1e-12), wanted, atol=1e-8)


def test_no_other_models_have_a_lower_objective():
    p = problem()
    W, rng = p.solve(), np.random.default_rng(0)
    assert all(p.objective(W + 1e-3 * rng.normal(size=W.shape)) > p.objective(W) for _ in range(20))


def test_alpha_zero_is_every_node_by_itself_and_a_large_alpha_one_model_for_all():
    X, y = rows_of(6)
    net = connected(6)
    alone = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(X, y, strict=True)])
    np.testing.assert_allclose(GTVMin(net, alpha=0.0, X=X, y=y).solve(), alone, atol=1e-8)
    scaled = [np.vstack([a / len(a) ** 0.5 for a in X]), np.concatenate([b / len(b) ** 0.5 for b in y])]
    together = np.linalg.lstsq(*scaled, rcond=None)[0]
    np.testing.assert_allclose(GTVMin(net, alpha=1e7, X=X, y=y).solve(1e-12), np.tile(together, (6, 1)), atol=1e-4)


def test_a_disconnected_network_is_solved_component_by_component():
    X, y = rows_of(7)
    one, two = connected(4, seed=1), connected(3, seed=2)
    edges = np.vstack([one.edges, two.edges + 4])
    both = Network.from_edges(edges, 7, np.r_[one.weights, two.weights])
    W = GTVMin(both, alpha=0.6, X=X, y=y).solve(1e-12)
    np.testing.assert_allclose(W[:4], GTVMin(one, alpha=0.6, X=X[:4], y=y[:4]).solve(1e-12), atol=1e-9)
    np.testing.assert_allclose(W[4:], GTVMin(two, alpha=0.6, X=X[4:], y=y[4:]).solve(1e-12), atol=1e-9)


def test_an_isolated_node_has_the_model_of_training_alone():
    X, y = rows_of(3)
    p = GTVMin(Network.from_edges([(0, 1)], 3), alpha=2.0, X=X, y=y)
    np.testing.assert_allclose(p.solve()[2], np.linalg.lstsq(X[2], y[2], rcond=None)[0], atol=1e-8)


# degenerate data


def test_a_network_without_an_edge_has_no_variation_and_the_models_of_training_alone():
    X, y = np.eye(2), [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    p = GTVMin(Network.from_edges([], n=2), alpha=1.0, X=[X, X], y=y)
    np.testing.assert_allclose(p.solve(), y, atol=1e-10)
    assert p.total_variation(p.solve()) == 0
    assert p.objective(np.zeros((2, 2))) == pytest.approx((1 + 4) / 2 + (9 + 16) / 2)


def test_a_node_without_labels_has_the_weighted_mean_of_its_neighbours():
    X, y = rows_of(5)
    y[2] = None
    p = GTVMin(connected(5), alpha=0.8, X=X, y=y)
    W, A = p.solve(), p.network.adjacency().toarray()
    np.testing.assert_allclose(W[2], A[2] @ W / A[2].sum(), atol=1e-8)
    np.testing.assert_allclose(W, solution_by_hand(A, X, y, 0.8), atol=1e-8)


def test_components_without_labels_are_zero_the_solution_of_least_norm():
    X, y = rows_of(4)
    net = Network.from_edges([(0, 1), (2, 3)], 5)
    p = GTVMin(net, alpha=1.0, X=[*X, None], y=[y[0], y[1], None, [], None])
    assert not p.solve()[2:].any()
    assert np.abs(p.solve()[:2]).min() > 0
    np.testing.assert_allclose(p.closed_form(), p.solve(), atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("net", [connected(4), Network.from_edges([(0, 1), (1, 2)], 4)])
def test_fewer_rows_than_features_and_constant_columns_give_the_solution_of_least_norm(alpha, net):
    X, y = rows_of(4, d=6, rows=(1, 3))
    X = [np.c_[a, np.zeros(len(a)), a[:, :1] * 2] for a in X]  # a column of zeros, and one that is twice another
    p = GTVMin(net, alpha=alpha, X=X, y=y)
    expected = solution_by_hand(net.adjacency().toarray(), X, y, alpha)
    np.testing.assert_allclose(p.solve(1e-12), expected, atol=1e-7)
    np.testing.assert_allclose(p.closed_form(), expected, atol=1e-7)


def test_no_rows_at_all_are_no_models():
    p = GTVMin(NET, Quadratic(np.zeros((3, 2, 2)), np.zeros((3, 2)), np.zeros(3)), alpha=1.0)
    assert not p.solve().any()
    assert not p.closed_form().any()


# penalties


@pytest.mark.parametrize("strengths", [[2.0, 0.5, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
def test_partial_sharing_couples_every_parameter_by_its_own_strength(strengths):
    p = problem(penalty=strengths)
    n, d = 6, 3
    L = p.network.laplacian().toarray()
    H, b = 0.7 * np.kron(L, np.diag(strengths)), np.zeros(n * d)
    for i, (X, y) in enumerate(zip(*p.rows, strict=True)):
        H[i * d : i * d + d, i * d : i * d + d] += X.T @ X / len(y)
        b[i * d : i * d + d] = X.T @ y / len(y)
    expected = np.linalg.solve(H, b).reshape(n, d)
    np.testing.assert_allclose(p.solve(), expected, atol=1e-8)
    np.testing.assert_allclose(p.closed_form(), expected, atol=1e-8)
    W = np.random.default_rng(1).normal(size=(n, d))
    np.testing.assert_allclose(p.total_variation(W), np.sum(W * (L @ W) * strengths))


def test_partial_sharing_of_too_few_rows_has_the_solution_of_least_norm():
    X, y = rows_of(5, d=4, rows=(1, 3))
    p = GTVMin(connected(5), alpha=0.7, X=X, y=y, penalty=[1.0, 0.0, 2.0, 0.0])
    np.testing.assert_allclose(p.solve(1e-12), p.closed_form(), atol=1e-7)


def test_the_network_lasso_satisfies_its_conditions_of_optimality():
    p = problem(n=8, alpha=0.3, penalty="norm", spread=0.1)
    W = p.solve(1e-11)
    rng = np.random.default_rng(0)
    best = p.objective(W)
    assert all(p.objective(W + 1e-4 * rng.normal(size=W.shape)) > best for _ in range(20))
    gaps = np.linalg.norm(W[p.network.edges[:, 0]] - W[p.network.edges[:, 1]], axis=1)
    assert (gaps < 1e-8).any()  # some neighbours have the same model: what the squared penalty never gives
    forces = 2 * np.einsum("nij,nj->ni", p.quadratic.Q, W) + p.quadratic.q
    assert np.abs(forces.sum(axis=0)).max() < 1e-7
    limit = 0.3 * p.network.degrees
    assert (np.linalg.norm(forces, axis=1) <= limit + 1e-7).all()


def test_the_network_lasso_of_two_constants_is_known():
    net, one = Network.from_edges([(0, 1)], 3, [2.0]), np.ones((1, 1))
    p = GTVMin(net, alpha=0.25, X=[one] * 3, y=[[0.0], [3.0], [5.0]], penalty="norm")
    np.testing.assert_allclose(p.solve(1e-12).ravel(), [0.25, 2.75, 5.0], atol=1e-8)  # each moves by alpha A / 2
    merged = GTVMin(net, alpha=2.0, X=[one] * 3, y=[[0.0], [3.0], [5.0]], penalty="norm").solve(1e-12)
    np.testing.assert_allclose(merged.ravel(), [1.5, 1.5, 5.0], atol=1e-8)


# other losses


def test_a_loss_of_rows_and_losses_of_params_are_minimised_to_the_tolerance():
    p = problem()
    X, y = p.rows

    def mean_squared(w, batch):
        return jnp.sum(jnp.where(batch.live, (batch.y - batch.X @ w) ** 2, 0)) / batch.live.sum()

    rows = GTVMin(p.network, mean_squared, alpha=0.7, X=X, y=y)
    losses = [
        lambda w, a=a, b=b: jnp.mean((jnp.asarray(b) - jnp.asarray(a) @ w) ** 2) for a, b in zip(X, y, strict=True)
    ]
    each = GTVMin(p.network, losses, alpha=0.7)
    np.testing.assert_allclose(rows.solve(), p.solve(), atol=1e-8)
    np.testing.assert_allclose(each.solve(start=np.zeros((6, 3))), p.solve(), atol=1e-8)
    np.testing.assert_allclose(each.objective(p.solve()), p.objective(p.solve()), rtol=1e-12)


def test_logistic_losses_and_nodes_without_one_have_a_gradient_of_zero_at_the_solution(x64):
    X, y = rows_of(5)
    signs = [np.sign(b) for b in y]
    losses = [lambda w, a=a, s=s: jnp.mean(jax.nn.softplus(-s * (a @ w))) for a, s in zip(X, signs, strict=True)]
    losses[1] = None
    p = GTVMin(connected(5), losses, alpha=0.3)
    W = p.solve(start=np.zeros((5, 3)))
    gradient = jax.grad(lambda W: p.value(p.terms(), W))(jnp.asarray(W))
    assert np.abs(gradient).max() < 1e-9
    A = p.network.adjacency().toarray()
    np.testing.assert_allclose(W[1], A[1] @ W / A[1].sum(), atol=1e-8)


def test_newton_refuses_a_start_without_a_finite_gradient_or_objective_by_node():
    zeros, ones = np.zeros((3, 1)), np.ones((3, 1))
    steep = GTVMin(NET, [None, lambda w: jnp.sum(jnp.sqrt(w)), None], alpha=1.0)
    with pytest.raises(ValueError, match=r"the gradient of node 1 is not finite at the start.*give another start"):
        steep.solve(start=zeros)
    endless = GTVMin(NET, [lambda w: jnp.sum(w**2) + jnp.inf, None, None], alpha=1.0)
    with pytest.raises(ValueError, match="the objective is not finite at the start"):
        endless.solve(start=ones)


def test_newton_steps_stay_where_the_losses_are_defined():
    losses = [lambda w: jnp.sum(100 * w - jnp.log(w)), None, None]  # a whole step would leave the logarithm's domain
    W = GTVMin(NET, losses, alpha=1.0).solve(start=np.ones((3, 1)))
    np.testing.assert_allclose(W, 0.01, rtol=1e-6)


def test_models_may_be_trees_of_which_only_some_leaves_are_shared(x64):
    X, y = rows_of(4)
    net = connected(4)

    def loss(w, batch):
        errors = jnp.where(batch.live, (batch.y - batch.X @ w["slope"] - w["level"]) ** 2, 0)
        return errors.sum() / jnp.maximum(batch.live.sum(), 1)

    p = GTVMin(net, loss, alpha=0.7, X=X, y=y, penalty={"slope": 1.0, "level": 0.0})
    found = p.solve(start={"slope": np.zeros((4, 3)), "level": np.zeros(4)})
    flat = GTVMin(net, alpha=0.7, X=[np.c_[a, np.ones(len(a))] for a in X], y=y, penalty=[1.0, 1.0, 1.0, 0.0]).solve()
    np.testing.assert_allclose(np.c_[found["slope"], found["level"]], flat, atol=1e-7)
    assert p.total_variation(found) > 0


# blocks


@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 3), (2003, 2), (7, 40)])
def test_blocks_are_multiplied_and_inverted_node_by_node(n, d, x64):
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(n, d, d))
    Q = Q @ Q.transpose(0, 2, 1) + np.eye(d)
    W = rng.normal(size=(n, d))
    np.testing.assert_allclose(products(laid_out(Q), jnp.asarray(W)), np.einsum("nij,nj->ni", Q, W))
    found = jax.jit(inverses)(laid_out(Q)).transpose(1, 2, 0)
    np.testing.assert_allclose(found @ Q, np.broadcast_to(np.eye(d), Q.shape), atol=1e-7)


# what is refused


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: GTVMin(NET, alpha=-1.0, X=[], y=[]), "alpha must be"),
        (lambda: GTVMin(NET, alpha=1.0), "give X and y"),
        (lambda: GTVMin(NET, alpha=1.0, X=[np.ones((2, 1))] * 2, y=[[1.0, 2.0]] * 2), "X must have an array for each"),
        (lambda: GTVMin(NET, alpha=1.0, X=[np.ones((2, 1))] * 3), "y must have an array for each of 3 nodes, not none"),
        (
            lambda: GTVMin(NET, alpha=1.0, X=[np.ones((2, 1))] * 2 + [np.ones((3, 1))], y=[[1.0, 2.0]] * 3),
            r"node 2 has X of shape \(3, 1\) and y of shape \(2,\)",
        ),
        (
            lambda: GTVMin(NET, alpha=1.0, X=[np.ones((2, 1))] * 2 + [np.ones((2, 2))], y=[[1.0, 2.0]] * 3),
            "node 2 has 2 features, where 1 are needed",
        ),
        (
            lambda: GTVMin(NET, alpha=1.0, X=[np.ones((2, 1))] * 3, y=[[1.0, 2.0]] * 2 + [[1.0, np.nan]]),
            "node 2 has a value that is not finite",
        ),
        (lambda: GTVMin(NET, alpha=1.0, X=np.full((3, 2, 1), np.nan), y=np.ones((3, 2))), "node 0 has a value"),
        (lambda: problem(penalty="cubic"), "penalty must be"),
        (lambda: problem(penalty=[1.0, 2.0]), "a model has 3 parameters"),
        (lambda: problem(penalty=[1.0, -2.0, 1.0]), "0 or more"),
        (lambda: GTVMin(NET, [None], alpha=1.0), "3 nodes need as many losses"),
        (lambda: GTVMin(NET, lambda w, b: 0.0, alpha=1.0), "needs their rows"),
        (lambda: GTVMin(NET, [None] * 3, alpha=1.0).solve(), "give start"),
        (lambda: GTVMin(NET, [None] * 3, alpha=1.0).closed_form(), "needs quadratic losses"),
        (lambda: problem().objective(np.zeros((2, 3))), r"must have the shape \(6, 3\)"),
        (lambda: GTVMin(NET, Quadratic(np.ones((3, 2)), np.ones((3, 2)), 0.0), alpha=1.0), "need Q"),
        (lambda: GTVMin(NET, problem().quadratic, alpha=1.0, X=np.ones((3, 2, 1)), y=np.ones((3, 2))), "not both"),
        (
            lambda: GTVMin(NET, Quadratic(np.tile([[1, 2], [0, 1]], (3, 1, 1)), np.ones((3, 2)), 0.0), alpha=1.0),
            "symmetric",
        ),
    ],
)  # fmt: skip
def test_problems_that_are_none_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("small", [0, 20_000])
@pytest.mark.parametrize("units", [1.0, np.array([1e4, 1.0, 1e-3])])
def test_iterations_begin_at_the_start_that_is_given(monkeypatch, small, units):
    monkeypatch.setattr(solve, "SMALL", small)
    X, y = rows_of(6)
    p = GTVMin(connected(6), alpha=0.7, X=[a * units for a in X], y=y)
    exact = p.closed_form()
    np.testing.assert_allclose(p.solve(1e-9, most=1, start=exact) * units, exact * units, rtol=1e-8)
    np.testing.assert_allclose(p.solve(start=exact + 1e3) * units, exact * units, atol=1e-6)
    for penalty in ("squared", "norm"):
        with pytest.raises(ValueError, match=r"start must have the shape \(6, 3\)"):
            problem(penalty=penalty).solve(start=np.zeros((2, 2)))
        with pytest.raises(ValueError, match="start has a value that is not finite at node 1"):
            problem(penalty=penalty).solve(start=np.where(np.arange(18).reshape(6, 3) == 3, np.inf, 0))


def test_a_start_does_not_change_which_of_many_solutions_is_found():
    X, y = rows_of(5, d=6, rows=(1, 2))
    p = GTVMin(Network.from_edges([(0, 1), (1, 2)], 5), alpha=0.5, X=X, y=y)
    np.testing.assert_allclose(p.solve(start=np.ones((5, 6))), p.solve(), atol=1e-8)


def few_rows(seed):
    """Two rows of six columns, of which two are constant, at every node: each is by itself, and leaves much open."""
    rng = np.random.default_rng(seed)
    X = [np.c_[rng.normal(size=(2, 4)), np.ones((2, 2)) * [1.0, 3.0]] for _ in range(8)]
    return GTVMin(connected(8), alpha=0.0, X=X, y=[rng.normal(size=2) for _ in X])


@pytest.mark.parametrize("seed", range(5))
def test_where_rows_leave_models_open_residuals_of_1e_12_are_had_and_the_least_is_told_of_less(seed):
    p = few_rows(seed)
    np.testing.assert_allclose(p.solve(1e-12), p.closed_form(), atol=1e-10)
    with pytest.raises(RuntimeError, match=r"residual is \d.\de-1[3-5] .*double precision leaves no less") as told:
        p.solve(1e-16)
    assert int(str(told.value).split()[1]) < 1000  # iterations: it does not go on for nothing


@pytest.mark.parametrize("seed", range(5))
def test_residuals_of_1e_13_can_be_had_where_rows_say_all(seed):
    p = problem(n=8, seed=seed)
    np.testing.assert_allclose(p.solve(1e-13), p.closed_form(), rtol=1e-9)


def test_what_cannot_be_reached_is_said():
    with pytest.raises(RuntimeError, match="after 2 iterations the residual is"):
        problem().solve(1e-10, most=2)
    with pytest.raises(ValueError, match="use solve"):
        problem(n=30, d=200).closed_form()
