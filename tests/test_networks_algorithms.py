"""Every algorithm ends where GTVMin has its minimum, and does on the way what its lines say."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import confrere as cf
from confrere.networks import GTVMin, Network, accelerated
from tests.network_problems import connected, problem, rows_of
from tests.playing import LINEAR

EXACT = {"atol": 1e-8, "rtol": 0}


@pytest.fixture(scope="module")
def p():
    return problem(rows=(12, 20))


@pytest.fixture(scope="module")
def best(p):
    return p.closed_form()


def top(p):
    """The largest eigenvalue of any node's Q_i + alpha d_i."""
    return max(np.linalg.eigvalsh(Q)[-1] + p.alpha * d for Q, d in zip(p.quadratic.Q, p.network.degrees, strict=True))


# all of them end at the minimum


def algorithms(p):
    low, high = cf.networks.extreme_eigenvalues(p)
    nets = cf.networks
    return {
        "fedgd": lambda: nets.fedgd(p, lr=1 / (low + high), iterations=1500),
        "nesterov": lambda: nets.accelerated_fedgd(p, iterations=400),
        "chebyshev": lambda: nets.accelerated_fedgd(p, iterations=300, method="chebyshev"),
        "fedrelax": lambda: nets.fedrelax(p, iterations=1500),
        "async": lambda: nets.async_fedgd(p, lr=0.5 / top(p), activation=0.5, iterations=6000),
        "async-late": lambda: nets.async_fedgd(p, lr=0.5 / top(p), activation=0.5, delay=3, iterations=8000),
        "fedsgd": lambda: nets.fedsgd(p, lr=1 / (low + high), batch=50, iterations=1500),
        "nodes-fail": lambda: nets.faulty_fedgd(p, lr=1 / (low + high), nodes=0.3, iterations=4000),
    }


NAMES = ["fedgd", "nesterov", "chebyshev", "fedrelax", "async", "async-late", "fedsgd", "nodes-fail"]


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_ends_at_the_closed_form(name, p, best, x64):
    h = algorithms(p)[name]()
    np.testing.assert_allclose(h.W, best, **EXACT)
    np.testing.assert_allclose(h.objective[-1], p.objective(best), rtol=1e-12)
    np.testing.assert_allclose(p.solve(), best, **EXACT)


def test_in_single_precision_they_end_as_near_as_it_goes(p, best):
    h = cf.networks.fedgd(p, lr=0.3 / top(p), iterations=3000)
    assert h.W.dtype == np.float32
    np.testing.assert_allclose(h.W, best, atol=2e-5)


# FedGD


def test_fedgd_follows_its_algorithm(p, x64):
    X, y, A = *p.rows, p.network.adjacency().toarray()
    W, seen = np.zeros((6, 3)), []
    for _ in range(7):
        new = W.copy()
        for i in range(6):
            own = 2 / len(y[i]) * X[i].T @ (y[i] - X[i] @ W[i])
            new[i] = W[i] + 0.02 * (own + 2 * p.alpha * sum(A[i, j] * (W[j] - W[i]) for j in range(6)))
        W = new
        seen.append(p.objective(W))
    h = cf.networks.fedgd(p, lr=0.02, iterations=7)
    np.testing.assert_allclose(h.W, W, rtol=1e-12)
    np.testing.assert_allclose(h.objective, seen, rtol=1e-12)
    assert h.iterations == 7


def test_the_recipe_does_what_the_problem_s_own_loop_does(x64):
    X, y = rows_of(4, d=2)
    net, alpha, lr, rounds = connected(4), 0.4, 0.05, 9
    start = {"w": np.zeros((2, 1)), "b": np.zeros(1)}
    silos = cf.Silos.from_arrays(list(zip(X, y, strict=True)))
    h = cf.simulate(cf.gtv_gd(net, lr=lr, alpha=alpha), LINEAR, silos, rounds, metrics=(), record=(), params=start)
    own = GTVMin(net, alpha=2 * alpha, X=[np.c_[a, np.ones(len(a))] for a in X], y=y)  # the model's loss is half of it
    W = cf.networks.fedgd(own, lr=lr / 2, iterations=rounds).W
    np.testing.assert_allclose(np.c_[np.asarray(h.models["w"])[..., 0], h.models["b"]], W, rtol=1e-9)


def test_the_recipes_end_at_the_minimum_too(x64):
    X, y = rows_of(4, d=2, rows=(12, 20))
    net, alpha = connected(4), 0.2
    start = {"w": np.zeros((2, 1)), "b": np.zeros(1)}
    silos = cf.Silos.from_arrays(list(zip(X, y, strict=True)))
    best = GTVMin(net, alpha=2 * alpha, X=[np.c_[a, np.ones(len(a))] for a in X], y=y).closed_form()
    away = np.random.default_rng(0).uniform(size=(3000, 4)) < 0.5
    away[0] = True
    for recipe, rounds, active in (
        (cf.gtv_relax(net, alpha=alpha, steps=1), 300, None),
        (cf.gtv_async(net, lr=0.1, alpha=alpha), 3000, away),
        (cf.gtv_async(net, lr=0.1, alpha=alpha, delay=2), 3000, away),
    ):
        h = cf.simulate(recipe, LINEAR, silos, rounds, metrics=(), record=(), params=start, active=active)
        np.testing.assert_allclose(np.c_[np.asarray(h.models["w"])[..., 0], h.models["b"]], best, atol=1e-8)


def test_schedules_are_one_rate_per_iteration(p, x64):
    falling = cf.networks.fedgd(p, lr=cf.networks.inverse(0.05, shift=3), iterations=20)
    listed = cf.networks.fedgd(p, lr=[0.05 * 4 / (k + 3) for k in range(1, 21)], iterations=20)
    np.testing.assert_allclose(falling.W, listed.W, rtol=1e-12)
    roots = cf.networks.inverse_root(0.05)(np.arange(1, 10))
    np.testing.assert_allclose(roots, 0.05 / np.sqrt(np.arange(1, 10)))


def test_stopping_rules_stop_where_they_say(p, x64):
    lr = 0.3 / top(p)
    full = cf.networks.fedgd(p, lr=lr, iterations=400)
    h = cf.networks.fedgd(p, lr=lr, iterations=400, stop=cf.networks.decrease(1e-6))
    drops = -np.diff(full.objective)
    assert h.iterations == np.flatnonzero(drops < 1e-6)[0] + 2
    np.testing.assert_allclose(h.objective, full.objective[: h.iterations], rtol=1e-12)
    h = cf.networks.fedgd(p, lr=lr, iterations=4000, stop=cf.networks.small_gradient(1e-9))
    Q, q, _ = p.quadratic
    gradient = 2 * (np.einsum("nij,nj->ni", Q, h.W) + p.alpha * (p.network.laplacian() @ h.W)) + q
    assert h.iterations < 4000
    assert np.linalg.norm(gradient) < 1e-9


def test_projected_steps_end_at_the_best_single_model(p, x64):
    X, y = p.rows
    alone = GTVMin(p.network, alpha=0.0, X=X, y=y)
    h = cf.networks.fedgd(alone, lr=0.1, iterations=1500, project=cf.networks.single_model)
    scaled = [np.vstack([a / len(a) ** 0.5 for a in X]), np.concatenate([b / len(b) ** 0.5 for b in y])]
    np.testing.assert_allclose(h.W, np.tile(np.linalg.lstsq(*scaled, rcond=None)[0], (6, 1)), **EXACT)


def test_projected_steps_stay_within_the_ball(p, x64):
    h = cf.networks.fedgd(p, lr=0.3 / top(p), iterations=2000, project=cf.networks.within(0.5))
    norms = np.linalg.norm(h.W, axis=1)
    assert norms.max() <= 0.5 + 1e-12
    assert (norms > 0.4999).any()
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = h.W + 0.01 * rng.normal(size=h.W.shape)
        other *= np.minimum(1, 0.5 / np.linalg.norm(other, axis=1, keepdims=True))
        assert p.objective(other) >= p.objective(h.W) - 1e-12


@pytest.mark.parametrize(
    "name", ["fedgd", "fedsgd", "fedrelax", "async", "nesterov", "chebyshev", "fedavg", "lasso", "faulty"]
)
def test_every_loop_stops_by_every_rule_that_it_has(name, p, x64):
    nets, lr = cf.networks, 0.3 / top(p)
    lasso = GTVMin(p.network, p.quadratic, alpha=0.2, penalty="norm")
    run = {
        "fedgd": lambda **how: nets.fedgd(p, lr=lr, **how),
        "fedsgd": lambda **how: nets.fedsgd(p, lr=lr, batch=50, **how),
        "fedrelax": lambda **how: nets.fedrelax(p, **how),
        "async": lambda **how: nets.async_fedgd(p, lr=lr, activation=1.0, **how),
        "nesterov": lambda **how: nets.accelerated_fedgd(p, **how),
        "chebyshev": lambda **how: nets.accelerated_fedgd(p, method="chebyshev", **how),
        "fedavg": lambda **how: nets.fedavg(p, eta=0.05, **how),
        "lasso": lambda **how: nets.network_lasso(lasso, **how),
        "faulty": lambda **how: nets.faulty_fedgd(p, lr=lr, nodes=0.1, **how),
    }[name]
    full = run(iterations=150)
    assert full.objective.shape == (150,)
    h = run(iterations=150, stop=nets.fixed_count(7))
    assert h.iterations == 7
    np.testing.assert_allclose(h.objective, full.objective[:7], rtol=1e-12)
    if name == "faulty":
        np.testing.assert_allclose(h.perturbation, full.perturbation[:7], rtol=1e-12)
    h = run(iterations=150, stop=nets.decrease(1e-4))
    assert h.iterations == np.flatnonzero(-np.diff(full.objective) < 1e-4)[0] + 2
    if name == "lasso":
        with pytest.raises(ValueError, match="this loop has no gradient to stop by"):
            run(iterations=150, stop=nets.small_gradient(1e-3))
        return
    h = run(iterations=150, stop=nets.small_gradient(0.05))
    Q, q, _ = p.quadratic
    own = 2 * np.einsum("nij,nj->ni", Q, h.W) + q
    slope = own.sum(axis=0) if name == "fedavg" else own + 2 * p.alpha * (p.network.laplacian() @ h.W)
    assert (np.linalg.norm(slope) < 0.05) or (name == "fedavg" and h.iterations == 150)  # its end is not the minimum
    assert h.iterations > 1


def test_iterations_for_a_wanted_accuracy_bring_it(p, best, x64):
    low, high = cf.networks.extreme_eigenvalues(p)
    lr = cf.networks.bounds.best_rate(low, high)
    factor = cf.networks.bounds.contraction(lr, low, high)
    distance = np.linalg.norm(best)
    stop = cf.networks.near_enough(distance=distance, tol=1e-3, contraction=factor)
    h = cf.networks.fedgd(p, lr=lr, iterations=5000, stop=stop)
    assert h.iterations == np.ceil(np.log(1e-3 / distance) / np.log(factor))
    assert np.linalg.norm(h.W - best) <= 1e-3


def test_the_network_lasso_s_loop_ends_at_its_solution_with_the_objective_of_the_problem(x64):
    p = problem(n=8, alpha=0.3, penalty="norm", spread=0.1)
    h = cf.networks.network_lasso(p, iterations=4000)
    np.testing.assert_allclose(h.W, p.solve(1e-11), atol=1e-7)
    np.testing.assert_allclose(h.objective[-1], p.objective(h.W), rtol=1e-12)
    early = cf.networks.network_lasso(p, iterations=3)
    np.testing.assert_allclose(early.objective[-1], p.objective(early.W), rtol=1e-12)


# FedSGD


def test_fedsgd_follows_its_algorithm_with_consecutive_batches_and_one_divisor(p, x64):
    X, y, A = *p.rows, p.network.adjacency().toarray()
    B, W = 5, np.zeros((6, 3))
    for k in range(9):
        new = W.copy()
        for i in range(6):
            first = k % -(-len(y[i]) // B) * B
            rows, labels = X[i][first : first + B], y[i][first : first + B]
            own = 2 / B * rows.T @ (labels - rows @ W[i])
            new[i] = W[i] + 0.02 * (own + 2 * p.alpha * sum(A[i, j] * (W[j] - W[i]) for j in range(6)))
        W = new
    h = cf.networks.fedsgd(p, lr=0.02, batch=B, iterations=9, order="cyclic")
    np.testing.assert_allclose(h.W, W, rtol=1e-11)
    np.testing.assert_allclose(h.objective[-1], p.objective(W), rtol=1e-11)


@pytest.mark.parametrize("order", ["cyclic", "shuffled"])
def test_the_recipe_of_fedsgd_draws_and_steps_as_the_problem_s_own_loop(order, x64):
    X, y = rows_of(4, d=2, rows=(8, 15))
    assert any(len(b) % 5 for b in y)  # the last slice is short
    net, alpha, lr, rounds = connected(4), 0.4, 0.05, 9
    start = {"w": np.zeros((2, 1)), "b": np.zeros(1)}
    silos = cf.Silos.from_arrays(list(zip(X, y, strict=True)))
    recipe = cf.gtv_sgd(net, lr=lr, alpha=alpha, batch=5, order=order)
    h = cf.simulate(recipe, LINEAR, silos, rounds, metrics=(), record=(), params=start, seed=3)
    own = GTVMin(net, alpha=2 * alpha, X=[np.c_[a, np.ones(len(a))] for a in X], y=y)  # the model's loss is half of it
    W = cf.networks.fedsgd(own, lr=lr / 2, batch=5, iterations=rounds, order=order, seed=3).W
    np.testing.assert_allclose(np.c_[np.asarray(h.models["w"])[..., 0], h.models["b"]], W, rtol=1e-9)


def test_fedsgd_with_falling_rates_comes_near_the_minimum(p, best, x64):
    h = cf.networks.fedsgd(p, lr=cf.networks.inverse(0.1, shift=100), batch=4, iterations=4000)
    assert np.abs(h.W - best).max() < 0.05
    again = cf.networks.fedsgd(p, lr=cf.networks.inverse(0.1, shift=100), batch=4, iterations=4000)
    np.testing.assert_array_equal(h.W, again.W)


# FedRelax


def test_fedrelax_follows_its_algorithm(p, x64):
    X, y, A = *p.rows, p.network.adjacency().toarray()
    W = np.zeros((6, 3))
    for _ in range(5):
        new = W.copy()
        for i in range(6):
            H = X[i].T @ X[i] / len(y[i]) + p.alpha * A[i].sum() * np.eye(3)
            new[i] = np.linalg.solve(H, X[i].T @ y[i] / len(y[i]) + p.alpha * A[i] @ W)
        W = new
    np.testing.assert_allclose(cf.networks.fedrelax(p, iterations=5).W, W, rtol=1e-11)


def test_the_book_s_fedrelax_solves_the_problem_of_half_the_coupling(p, best, x64):
    X, y = p.rows
    half = GTVMin(p.network, alpha=p.alpha / 2, X=X, y=y).closed_form()
    found = cf.networks.fedrelax(p, iterations=1500, book=True).W
    np.testing.assert_allclose(found, half, **EXACT)
    assert np.abs(found - best).max() > 0.01


def test_a_node_without_labels_gets_the_weighted_mean_of_its_neighbours_in_every_iteration(x64):
    X, y = rows_of(6)
    y[4] = None
    p = GTVMin(connected(6), alpha=0.7, X=X, y=y)
    before = cf.networks.fedrelax(p, iterations=3).W
    after = cf.networks.fedrelax(p, iterations=4).W
    A = p.network.adjacency().toarray()
    np.testing.assert_allclose(after[4], A[4] @ before / A[4].sum(), rtol=1e-12)
    np.testing.assert_allclose(cf.networks.fedrelax(p, iterations=1500).W, p.closed_form(), **EXACT)


def test_isolated_nodes_and_components_without_labels_are_defined(x64):
    X, y = rows_of(6, rows=(12, 20))
    y[4] = y[5] = None
    p = GTVMin(Network.from_edges([(0, 1), (1, 2), (4, 5)], 6), alpha=0.7, X=X, y=y)
    for h in (cf.networks.fedrelax(p, iterations=1500), cf.networks.fedgd(p, lr=0.1, iterations=3000)):
        np.testing.assert_allclose(h.W, p.closed_form(), **EXACT)


def test_zero_alpha_is_training_alone(x64):
    X, y = rows_of(6, rows=(12, 20))
    p = GTVMin(connected(6), alpha=0.0, X=X, y=y)
    alone = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(X, y, strict=True)])
    np.testing.assert_allclose(cf.networks.fedrelax(p, iterations=1).W, alone, **EXACT)
    np.testing.assert_allclose(cf.networks.fedgd(p, lr=0.2, iterations=3000).W, alone, **EXACT)


# asynchronous


def test_asynchronous_steps_of_all_nodes_without_delay_are_fedgd(p, x64):
    one = cf.networks.fedgd(p, lr=0.02, iterations=15)
    two = cf.networks.async_fedgd(p, lr=0.02, activation=1.0, iterations=15)
    np.testing.assert_allclose(one.W, two.W, rtol=1e-11)
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-11)


def test_a_schedule_of_activations_moves_only_the_active(p, x64):
    active = np.zeros((3, 6))
    active[0, 2] = active[1, 4] = 1
    h = cf.networks.async_fedgd(p, lr=0.02, activation=active, iterations=3)
    assert np.flatnonzero(np.abs(h.W).sum(axis=1)).tolist() == [2, 4]
    assert h.objective[1] == h.objective[2]  # nobody was active


def test_late_models_are_those_of_earlier_iterations(x64):
    star = Network.from_edges([(0, 1)])
    p = GTVMin(star, alpha=1.0, X=[np.ones((1, 1))] * 2, y=[None, [1.0]])
    first_waits = [[0, 1]] * 3 + [[1, 0]]
    runs = [cf.networks.async_fedgd(p, 0.1, first_waits, delay=3, iterations=4, seed=s) for s in range(60)]
    heard = {float(np.round(h.W[0, 0], 12)) for h in runs}
    steps = [0.0]
    for _ in range(3):
        steps.append(steps[-1] - 0.1 * (2 * (steps[-1] - 1) + 2 * steps[-1]))
    np.testing.assert_allclose(sorted(heard), [0.2 * w for w in steps], atol=1e-12)


# FedAvg with a proximal step


def test_fedavg_with_a_proximal_step_follows_its_algorithm_and_misses_the_optimum_by_its_step(p, x64):
    X, y = p.rows
    scaled = [np.vstack([a / len(a) ** 0.5 for a in X]), np.concatenate([b / len(b) ** 0.5 for b in y])]
    together = np.linalg.lstsq(*scaled, rcond=None)[0]
    alone = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(X, y, strict=True)])
    errors = {eta: np.abs(cf.networks.fedavg(p, eta, 6000).W[0] - together).max() for eta in (0.01, 0.1, 1.0)}
    assert errors[0.01] < errors[0.1] < errors[1.0]
    assert errors[0.01] < 2e-3
    np.testing.assert_allclose(cf.networks.fedavg(p, 1e7, 3).W, np.tile(alone.mean(axis=0), (6, 1)), atol=1e-6)
    v = np.zeros(3)
    for _ in range(4):
        pairs = zip(X, y, strict=True)
        proxes = [np.linalg.solve(a.T @ a / len(b) + np.eye(3) / 0.3, a.T @ b / len(b) + v / 0.3) for a, b in pairs]
        v = np.mean(proxes, axis=0)
    np.testing.assert_allclose(cf.networks.fedavg(p, 0.3, 4).W, np.tile(v, (6, 1)), rtol=1e-10)


def test_the_recipe_of_fedavg_with_a_proximal_step_does_the_same(x64):
    X, y = rows_of(4, d=2)
    start = {"w": np.zeros((2, 1)), "b": np.zeros(1)}
    silos = cf.Silos.from_arrays(list(zip(X, y, strict=True)))
    h = cf.simulate(cf.fedavg_prox(eta=0.8, steps=1), LINEAR, silos, 5, metrics=(), record=(), params=start)
    own = GTVMin(connected(4), alpha=1.0, X=[np.c_[a, np.ones(len(a))] for a in X], y=y)
    W = cf.networks.fedavg(own, 0.4, 5).W  # the model's loss is half the squared error
    np.testing.assert_allclose(np.c_[np.asarray(h.models["w"])[..., 0], h.models["b"]], W, rtol=1e-9)


# other losses, and what is refused


def test_fedgd_takes_any_differentiable_losses(x64):
    losses = [lambda w: jnp.sum((w - 1.0) ** 2), None, lambda w: jnp.sum(jnp.cosh(w + 1))]
    p = GTVMin(Network.from_edges([(0, 1), (1, 2)]), losses, alpha=0.5)
    h = cf.networks.fedgd(p, lr=0.1, iterations=600, start=np.zeros((3, 2)))
    np.testing.assert_allclose(h.W, p.solve(start=np.zeros((3, 2))), **EXACT)


def test_all_gradient_loops_take_any_losses_and_end_where_scipy_does(x64):
    X, y = rows_of(4, d=2)
    net, alpha = connected(4), 0.3
    pairs = [(jnp.asarray(a), jnp.asarray(np.sign(b))) for a, b in zip(X, y, strict=True)]
    losses = [lambda w, a=a, s=s: jnp.mean(jnp.logaddexp(0.0, -s * (a @ w))) for a, s in pairs]
    losses[2] = None
    p = GTVMin(net, losses, alpha=alpha)
    L = net.laplacian().toarray()

    def objective(flat):
        W = flat.reshape(4, 2)
        own = [np.mean(np.logaddexp(0, -np.sign(y[i]) * (X[i] @ W[i]))) for i in (0, 1, 3)]
        return sum(own) + alpha * np.sum(W * (L @ W))

    expected = minimize(objective, np.zeros(8), tol=1e-12, options={"gtol": 1e-9}).x.reshape(4, 2)
    half = max(np.linalg.eigvalsh(a.T @ a / len(a))[-1] for a in X) / 8 + alpha * np.linalg.eigvalsh(L)[-1]
    start = np.zeros((4, 2))
    for h in (
        cf.networks.fedgd(p, lr=1 / (2 * half), iterations=3000, start=start),
        cf.networks.accelerated_fedgd(p, iterations=600, eigenvalues=(0.0, half), start=start),
        cf.networks.async_fedgd(p, lr=1 / (4 * half), delay=2, iterations=12_000, start=start),
    ):
        np.testing.assert_allclose(h.W, expected, atol=1e-6)
        np.testing.assert_allclose(h.objective[-1], objective(h.W.ravel()), rtol=1e-12)


def test_asynchronous_steps_of_trees_are_those_of_the_same_numbers_in_one_array(x64):
    p = problem(n=4)
    losses = [lambda w, a=a, b=b: jnp.mean((b - a @ w) ** 2) for a, b in zip(*p.rows, strict=True)]
    split = [lambda w, f=f: f(jnp.concatenate([w["a"][None], w["b"]])) for f in losses]
    tree = GTVMin(p.network, split, alpha=p.alpha)
    start = {"a": np.zeros(4), "b": np.zeros((4, 2))}
    h = cf.networks.async_fedgd(tree, lr=0.02, delay=2, iterations=8, start=start)
    W = cf.networks.async_fedgd(p, lr=0.02, delay=2, iterations=8).W
    np.testing.assert_allclose(np.c_[h.W["a"], h.W["b"]], W, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: cf.networks.fedgd(p, lr=-0.1), "lr must be a number of 0 or more"),
        (lambda p: cf.networks.fedgd(p, lr=[0.1, 0.2], iterations=3), "one for each of 3 iterations"),
        (lambda p: cf.networks.fedgd(p, lr=0.1, iterations=0), "iterations must be"),
        (lambda p: cf.networks.fedgd(p, lr=0.1, start=np.zeros((2, 3))), "stacked over 6 nodes"),
        (lambda p: cf.networks.fedgd(problem(penalty="norm"), lr=0.1), "no gradient where models are equal"),
        (lambda p: cf.networks.async_fedgd(p, lr=0.1, activation=1.5), "activation must be a share"),
        (lambda p: cf.networks.async_fedgd(p, lr=0.1, activation=[0.5, 0.5]), "one per node"),
        (lambda p: cf.networks.async_fedgd(p, lr=0.1, delay=-1), "delay must be a whole"),
        (lambda p: cf.networks.fedavg(p, eta=0.0), "eta must be above 0"),
        (lambda p: cf.networks.accelerated_fedgd(p, method="heavy-ball"), "method must be"),
        (lambda p: cf.networks.accelerated_fedgd(p, eigenvalues=(2.0, 1.0)), "eigenvalues must be"),
        (lambda p: cf.networks.fedrelax(GTVMin(connected(2), [None] * 2, alpha=1.0)), "needs quadratic losses"),
        (lambda p: cf.networks.fedsgd(GTVMin(p.network, p.quadratic, alpha=1.0), lr=0.1), "needs rows"),
        (lambda p: cf.gtv_gd(connected(3), lr=-1.0), "lr must be"),
        (lambda p: cf.gtv_relax(connected(3), alpha=-1.0), "alpha must be"),
        (lambda p: cf.gtv_async(connected(3), lr=0.1, delay=-2), "delay must be"),
        (lambda p: cf.fedavg_prox(eta=0.0), "eta must be above 0: with"),
        (lambda p: cf.mixers.delayed(cf.mixers.alone(), 0), "longest must be"),
    ],
)
def test_what_makes_no_sense_is_refused(call, said, p):
    with pytest.raises(ValueError, match=said):
        call(p)


@pytest.mark.parametrize(
    "make", [lambda A: cf.gtv_gd(A, lr=0.1), lambda A: GTVMin(A, alpha=1.0, X=[], y=[])], ids=["recipe", "problem"]
)
def test_a_matrix_is_no_network(make):
    with pytest.raises(TypeError, match=r"network must be a confrere.networks.Network, not ndarray"):
        make(np.eye(2))


def test_a_network_of_other_silos_is_refused():
    silos = cf.Silos.from_arrays([(np.ones((2, 1)), [0.0, 1.0])] * 3)
    with pytest.raises(ValueError, match="the network has 4 nodes, but there are 3 silos"):
        cf.simulate(cf.gtv_gd(connected(4), lr=0.1), LINEAR, silos, 1, metrics=(), record=())


# late messages


def test_the_last_message_of_a_silent_silo_stands_in_and_one_never_heard_does_not_count():
    net = Network.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0])
    mixer = cf.mixers.mailbox(cf.mixers.peers(cf.weighted(cf.weights.graph(net))))
    inbox, state = mixer.init({"x": jnp.zeros(1)}, {"x": jnp.zeros((3, 1))})
    sent = [([True, True, False], [[1.0], [2.0], [9.0]]), ([False, True, False], [[0.0], [4.0], [0.0]])]
    for here, message in sent:
        ctx = cf.Ctx(1, jnp.array(here), jnp.ones(3))
        inbox, state, mixed = mixer.update({"x": jnp.array(message)}, state, ctx)
    np.testing.assert_allclose(inbox.shared["x"], [[4.0], [1.0], [4.0]])  # node 2 was never heard
    np.testing.assert_allclose(inbox.mass, [1, 1, 2])
    np.testing.assert_allclose(mixed.mass, [1, 0, 2])  # the weight of those who spoke
    np.testing.assert_array_equal(state[2], [1, 0, -1])


def test_extreme_eigenvalues_of_a_large_problem_are_those_of_its_matrix():
    rng = np.random.default_rng(0)
    net = cf.networks.Network.nearest(rng.normal(size=(150, 2)), 3)
    X = rng.normal(size=(150, 6, 10)) * np.logspace(0, 2, 10)  # scales that differ, and fewer rows than features
    p = cf.networks.GTVMin(net, alpha=0.5, X=list(X), y=list(rng.normal(size=(150, 6))))
    Q = np.kron(0.5 * net.laplacian().toarray(), np.eye(10)).reshape(150, 10, 150, 10)
    for i, rows in enumerate(X):
        Q[i, :, i] += rows.T @ rows / 6
    values = np.linalg.eigvalsh(Q.reshape(1500, 1500))
    np.testing.assert_allclose(cf.networks.extreme_eigenvalues(p), values[[0, -1]], rtol=1e-6)


def test_extreme_eigenvalues_of_a_long_path_are_the_known_ones():
    n = 4000
    net = Network.from_edges([(i, i + 1) for i in range(n - 1)])
    p = GTVMin(net, alpha=0.5, X=np.ones((n, 1, 1)), y=np.ones((n, 1)))
    np.testing.assert_allclose(cf.networks.extreme_eigenvalues(p), [1, 2 + np.cos(np.pi / n)], rtol=1e-9)


def test_the_smallest_eigenvalue_above_zero_of_a_large_problem_comes_after_its_free_directions(monkeypatch):
    rng = np.random.default_rng(0)
    net = Network.from_edges([(i, i + 1) for i in range(0, 300, 2)])  # 150 pairs
    X, y = list(rng.normal(size=(302, 6, 4))), list(rng.normal(size=(302, 6)))
    net = Network.from_edges(net.edges, 302)  # and two nodes alone
    y[0] = y[1] = y[301] = None  # of a pair and a node nobody knows anything: eight directions
    p = GTVMin(net, alpha=0.5, X=X, y=y)
    values = np.concatenate([np.linalg.eigvalsh(Q) for Q in pair_matrices(p)])
    above = np.sort(values)[8:]
    assert above[0] > 1e-9
    np.testing.assert_allclose(cf.networks.extreme_eigenvalues(p, nonzero=True), [above[0], above[-1]], rtol=1e-6)
    monkeypatch.setattr(accelerated, "LARGEST", 100)
    monkeypatch.setattr(accelerated, "MANY", 7)
    with pytest.raises(ValueError, match="8 eigenvalues are 0, too many"):
        cf.networks.extreme_eigenvalues(p, nonzero=True)
    h = cf.networks.accelerated_fedgd(p, iterations=60)  # as far as so many iterations reach
    assert h.objective[-1] < 1.05 * p.objective(p.solve())


def pair_matrices(p):
    """Q of every pair, node by node, and of the nodes alone."""
    Q, pull = p.quadratic.Q, p.alpha * np.kron([[1.0, -1.0], [-1.0, 1.0]], np.eye(p.d))
    zero = np.zeros((p.d, p.d))
    pairs = [np.block([[Q[i], zero], [zero, Q[i + 1]]]) + pull for i in range(0, 300, 2)]
    return [*pairs, Q[300], Q[301]]


def test_nesterov_s_steps_follow_their_lines(p, x64):
    low, high = cf.networks.extreme_eigenvalues(p)
    low = max(low, high * (4 / 12) ** 2)  # as far as twelve iterations reach
    root = np.sqrt(low), np.sqrt(high)
    b = (root[1] - root[0]) / (root[1] + root[0])
    W = old = np.zeros((6, 3))
    for _ in range(12):
        v = W + b * (W - old)
        W, old = v - gradient(p, v) / (2 * high), W
    np.testing.assert_allclose(cf.networks.accelerated_fedgd(p, iterations=12).W, W, rtol=1e-10)


def test_chebyshev_s_steps_leave_the_smallest_polynomial_of_the_first_distance(p, best, x64):
    Q = accelerated.matrix_of(p).toarray()
    values, vectors = np.linalg.eigh(Q)
    low, high = 0.5 * values[0] + 0.5 * values[-1], 1.1 * values[-1]  # not all eigenvalues lie between
    T = np.polynomial.chebyshev.Chebyshev.basis(9, domain=[low, high])
    shrunk = vectors @ (T(values) / T(0.0) * (vectors.T @ -best.ravel()))
    h = cf.networks.accelerated_fedgd(p, iterations=9, method="chebyshev", eigenvalues=(low, high))
    np.testing.assert_allclose(h.W - best, shrunk.reshape(best.shape), rtol=1e-8, atol=1e-12)


def gradient(p, W):
    """Of the objective, node by node."""
    own = [2 / len(y) * X.T @ (X @ w - y) for X, y, w in zip(*p.rows, W, strict=True)]
    return np.stack(own) + 2 * p.alpha * (p.network.laplacian() @ W)


@pytest.mark.parametrize("method", ["nesterov", "chebyshev"])
def test_acceleration_gains_where_the_smallest_eigenvalue_is_zero(method):
    rng = np.random.default_rng(0)
    net = Network.nearest(rng.normal(size=(40, 2)), 3)
    X = rng.normal(size=(40, 8, 4)) * [1.0, 1.0, 0.1, 0.0]  # nobody knows the last feature
    p = GTVMin(net, alpha=0.1, X=list(X), y=list(X @ [1.0, -1.0, 5.0, 0.0]))
    high = cf.networks.extreme_eigenvalues(p)[1]
    plain = cf.networks.fedgd(p, lr=1 / (2 * high), iterations=60).objective
    quick = cf.networks.accelerated_fedgd(p, iterations=60, method=method).objective
    assert quick[-1] < plain[-1] / 2


@pytest.mark.parametrize("method", ["nesterov", "chebyshev"])
def test_acceleration_reaches_the_minimum_where_the_solution_is_not_unique(method, x64):
    rng = np.random.default_rng(0)
    net = Network.from_edges([(i, i + 1) for i in range(9)] + [(11, 12)], 13)  # the last two have no rows
    X = [rng.normal(size=(8, 4)) * [1.0, 1.0, 0.3, 0.0] for _ in range(11)] + [None] * 2
    y = [a @ [1.0, -1.0, 5.0, 0.0] + rng.normal(size=8) for a in X[:11]] + [None] * 2
    p = GTVMin(net, alpha=0.5, X=X, y=y)
    assert cf.networks.extreme_eigenvalues(p)[0] < 1e-12
    low, high = cf.networks.extreme_eigenvalues(p, nonzero=True)
    assert low > 1e-3
    h = cf.networks.accelerated_fedgd(p, iterations=int(20 * (high / low) ** 0.5), method=method)
    best = p.objective(p.closed_form())
    assert h.objective[-1] - best <= 1e-8 * best
    np.testing.assert_allclose(h.W, p.closed_form(), atol=1e-6)  # from zero no free direction is ever entered
