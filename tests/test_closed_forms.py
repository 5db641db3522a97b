"""Whole runs whose answer is known: the limits of Weight Erosion, and the examples of the paper's appendix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from tests.helpers import two_class_silos

LINEAR = cf.models.linear()
SIZES = (9, 7, 5, 12)


def run(recipe, silos, rounds=8, model=None, **how):
    return cf.simulate(
        recipe, cf.models.logistic() if model is None else model, silos, rounds, seed=3, metrics=(), **how
    )


def same_bits(one, two):
    jax.tree.map(np.testing.assert_array_equal, one, two)


def close(one, two, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), one, two)


def regressions(rng, sizes, d=3, spread=1.0):
    """Silos of linear regressions whose true weights differ."""
    pairs = []
    for rows in sizes:
        X = rng.normal(size=(rows, d))
        pairs.append((X, X @ (1 + spread * rng.normal(size=d)) + 0.5 * rng.normal(size=rows)))
    return cf.Silos.from_arrays(pairs)


def least_squares(silos, which=None, weights=None):
    """The minimum of the pooled loss of some silos, each row counting by its silo's weight; by normal equations."""
    which = range(len(silos)) if which is None else which
    weights = np.ones(len(silos)) if weights is None else weights
    A, b = 0, 0
    for i in which:
        X = np.c_[silos[i].X, np.ones(len(silos[i].y))]
        A, b = A + weights[i] * X.T @ X, b + weights[i] * X.T @ silos[i].y
    w = np.linalg.solve(A, b)
    return {"w": jnp.asarray(w[:-1, None]), "b": jnp.asarray(w[-1:])}


def played(recipe, silos, model, params, rounds=1):
    """Relative distances and raw weights [rounds, n] of a run for user 0, round by round outside the simulator."""
    algorithm = recipe.make(model.loss, **recipe.hyper)
    data = jax.tree.map(jnp.asarray, silos.block())
    step = jax.jit(lambda s: algorithm.update(s, data, jax.random.key(0), None, lambda message, ctx: message["x"]))
    state, distances, weights = algorithm.init(params, data), [], []
    for _ in range(rounds):
        state, record = step(state)
        g = np.concatenate([np.asarray(a).reshape(len(silos), -1) for a in jax.tree.leaves(record.observed)], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            distances.append(np.linalg.norm(g - g[0], axis=1) / np.linalg.norm(g[0]))
        weights.append(np.asarray(record.weights[0]))
    return np.stack(distances), np.stack(weights)


def first_round(silos, params, model=LINEAR, p_d=0.01, **how):
    """Distances and raw weights of one round of Weight Erosion with full gradients from given parameters."""
    d, alpha = played(cf.weight_erosion(user=0, lr=0.1, p_d=p_d, **how), silos, model, params)
    np.testing.assert_allclose(alpha[0], np.maximum(0, 1 - p_d * d[0]), rtol=1e-5)
    return d[0]


# Limits


@pytest.mark.parametrize("batch", [None, 4])
def test_weight_erosion_without_distance_penalty_is_uniform_fedsgd_bit_for_bit(batch):
    silos = two_class_silos(SIZES)
    eroded = run(cf.weight_erosion(user=1, lr=0.3, p_d=0.0, p_s=0.7, batch=batch), silos)
    uniform = run(cf.fedsgd(lr=0.3, weights="uniform", batch=batch), silos)
    same_bits(eroded.models, uniform.models)
    same_bits(eroded.weights, uniform.weights)
    assert np.abs(uniform.models["w"]).max() > 0.1


def test_without_distance_penalty_late_joiners_and_absences_are_those_of_uniform_fedsgd():
    silos, active = two_class_silos(SIZES), np.random.default_rng(0).uniform(size=(8, 4)) > 0.4
    active[:, 1], active[:5, 3] = True, False
    eroded = run(cf.weight_erosion(user=1, lr=0.3, p_d=0.0), silos, active=active)
    same_bits(eroded.models, run(cf.fedsgd(lr=0.3, weights="uniform"), silos, active=active).models)


def test_local_updates_without_distance_penalty_are_uniform_fedavg_bit_for_bit():
    silos = two_class_silos(SIZES)
    how = {"batch": 4, "steps": 3, "momentum": 0.9}
    eroded = run(cf.weight_erosion(user=1, lr=0.3, p_d=0.0, form="update", **how), silos)
    same_bits(eroded.models, run(cf.fedavg(lr=0.3, weights="uniform", **how), silos).models)


@pytest.mark.parametrize("batch", [None, 4])
def test_with_a_huge_distance_penalty_the_user_trains_alone_from_round_one(batch):
    silos = two_class_silos(SIZES)
    eroded = run(cf.weight_erosion(user=1, lr=0.3, p_d=1e6, batch=batch), silos)
    np.testing.assert_array_equal(eroded.weights, np.tile([0, 1, 0, 0], (8, 1, 1)))
    local = run(cf.local(lr=0.3, batch=batch, steps=1), silos)
    close(eroded.personal(1), local.personal(1), rtol=1e-5, atol=1e-6)
    assert np.abs(local.personal(1)["w"] - local.personal(0)["w"]).max() > 0.1


def test_the_largest_distance_penalty_there_is_gives_no_nan():
    silos = two_class_silos(SIZES)
    eroded = run(cf.weight_erosion(user=1, lr=0.3, p_d=float(np.finfo(np.float32).max)), silos)
    np.testing.assert_array_equal(eroded.weights, np.tile([0, 1, 0, 0], (8, 1, 1)))


def test_a_prior_by_size_without_distance_penalty_is_fedsgd_by_size():
    silos = two_class_silos(SIZES)
    prior = run(cf.weight_erosion(user=1, lr=0.3, p_d=0.0, size_prior=1.0), silos)
    close(prior.models, run(cf.fedsgd(lr=0.3, weights="size"), silos).models, rtol=1e-5, atol=1e-6)


# What a run records is what the equations say


def alphas(distance, sizes, p_d, p_s, times_used):
    """Equation (5) from the distances of every round; times_used(r, size): how often a row was used before round r."""
    alpha, rows = np.ones(len(sizes)), []
    for r, d in enumerate(distance, start=1):
        passes = np.array([times_used(r, size) for size in sizes])
        alpha = np.maximum(0, alpha - (1 + p_s * passes) * p_d * d)
        rows.append(alpha)
    return np.stack(rows)


USES = {
    "one batch": ({"batch": 4}, lambda r, size: (r - 1) * 4 // size),
    "all rows": ({}, lambda r, size: r - 1),
    "all rows, in the authors' count": ({"passes": "code"}, lambda r, size: r),
    "all rows, whatever the batch": ({"batch": 4, "order": "full"}, lambda r, size: r - 1),
    "some steps": ({"form": "update", "batch": 4, "steps": 3}, lambda r, size: (r - 1) * 12 // size),
    "one epoch": ({"form": "update", "batch": 4}, lambda r, size: r - 1),
    "two epochs": ({"form": "update", "batch": 4, "epochs": 2}, lambda r, size: 2 * (r - 1)),
}


@pytest.mark.parametrize("name", USES)
def test_the_size_penalty_counts_how_often_a_row_was_used(x64, name):
    how, times_used = USES[name]
    start = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}
    recipe = cf.weight_erosion(user=0, lr=0.1, p_d=0.01, p_s=0.5, **how)
    distance, weights = played(recipe, two_class_silos(SIZES), cf.models.logistic(), start, 6)
    np.testing.assert_allclose(weights, alphas(distance, SIZES, 0.01, 0.5, times_used), rtol=1e-12)


def test_a_run_follows_algorithm_1(x64):
    """Full gradients of a linear regression, in a loop."""
    silos = regressions(np.random.default_rng(0), SIZES)
    start = {"w": jnp.zeros((3, 1)), "b": jnp.zeros(1)}
    history = run(cf.weight_erosion(user=0, lr=0.1, p_d=0.03, p_s=0.2), silos, 10, LINEAR, params=start)
    x, alpha = np.zeros(4), np.ones(4)
    for r in range(1, 11):
        g = []
        for i in range(4):
            X = np.c_[silos[i].X, np.ones(SIZES[i])]
            g.append(X.T @ (X @ x - silos[i].y) / SIZES[i])
        d = [np.linalg.norm(g_i - g[0]) / np.linalg.norm(g[0]) for g_i in g]
        alpha = np.maximum(0, alpha - (1 + 0.2 * (r - 1)) * 0.03 * np.array(d))
        x = x - 0.1 * sum(a * g_i for a, g_i in zip(alpha, g, strict=True)) / alpha.sum()
        np.testing.assert_allclose(history.distance[r - 1, 0], d, rtol=1e-9)
        np.testing.assert_allclose(history.weights[r - 1, 0], alpha, rtol=1e-9)
    model = history.personal(0)
    np.testing.assert_allclose(np.r_[model["w"][:, 0], model["b"]], x, rtol=1e-9)
    assert 0 < alpha[1:].min() < 0.9 or (alpha[1:] == 0).any()


# The examples of the appendix


@pytest.mark.parametrize("sizes", [(10, 40), (40, 10), (40, 40)])
def test_at_the_pooled_optimum_of_two_silos_the_distance_is_one_plus_the_ratio_of_sizes(x64, sizes):
    silos = regressions(np.random.default_rng(sizes[0]), sizes)
    history = run(cf.weight_erosion(user=0, lr=0.1), silos, 1, LINEAR, params=least_squares(silos))
    expected = 1 + sizes[0] / sizes[1]
    np.testing.assert_allclose(history.distance[0, 0], [0, expected], rtol=1e-9)
    np.testing.assert_allclose(history.weights[0, 0], [1, 1 - 0.01 * expected], rtol=1e-9)


def logistic_optimum(silos, l2):
    """The minimum of the pooled logistic loss with l2/2 |params|^2, by Newton's method on both columns."""
    X = np.concatenate([np.c_[s.X, np.ones(len(s.y))] for s in silos.silos])
    y = np.concatenate([s.y for s in silos.silos])
    half = np.zeros(X.shape[1])  # the columns are -half and +half
    for _ in range(50):
        p = 1 / (1 + np.exp(-2 * X @ half))
        gradient = X.T @ (p - y) / len(y) + l2 * half
        half = half - np.linalg.solve(2 * (X.T * (p * (1 - p))) @ X / len(y) + l2 * np.eye(len(half)), gradient)
    return {"w": jnp.asarray(np.c_[-half[:-1], half[:-1]]), "b": jnp.asarray([-half[-1], half[-1]])}


def test_the_same_holds_in_a_logistic_regression_with_l2(x64):
    silos = two_class_silos((20, 35))
    d = first_round(silos, logistic_optimum(silos, 0.1), cf.models.logistic(), l2=0.1)
    np.testing.assert_allclose(d, [0, 1 + 20 / 35], rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_at_the_global_optimum_some_silo_is_farther_than_one(x64, seed):
    """Unless the user's gradient is zero: the others' gradients must cancel it."""
    rng = np.random.default_rng(seed)
    silos = regressions(rng, rng.integers(6, 40, size=6), spread=rng.uniform(0.01, 2))
    assert first_round(silos, least_squares(silos)).max() > 1


def around_a_mean(targets):
    """One row per silo: the gradient in the bias is b - target."""
    return cf.Silos.from_arrays([(np.zeros((1, 1)), [float(target)]) for target in targets])


@pytest.mark.parametrize("others", [1, 3, 99])
def test_one_is_the_best_bound_on_that_distance(x64, others):
    """Equal silos with gradients -g_0 / N, N being the number of the others, cancel g_0: d = 1 + 1/N for all."""
    silos = around_a_mean([1.0] + [0.0] * others)
    optimum = 1 / (others + 1)
    g_0, g_i = optimum - 1, optimum
    assert g_i == pytest.approx(-g_0 / others)
    d = first_round(silos, {"w": jnp.zeros((1, 1)), "b": jnp.array([optimum])})
    np.testing.assert_allclose(d, [0] + [1 + 1 / others] * others, rtol=1e-12)


def test_at_the_users_own_optimum_all_others_erode_at_once():
    """Exactly: the user's rows lie on the model, and so do those of one other silo."""
    X = np.array([[1.0], [2.0], [-1.0]])
    silos = cf.Silos.from_arrays([(X, 2 * X[:, 0]), (X, X[:, 0]), (3 * X, 6 * X[:, 0])])
    own = {"w": jnp.array([[2.0]]), "b": jnp.zeros(1)}
    for p_d, expected in ((1e-6, [1, 0, 1]), (0.0, [1, 1, 1])):
        history = run(cf.weight_erosion(user=0, lr=0.1, p_d=p_d), silos, 1, LINEAR, params=own)
        np.testing.assert_array_equal(history.weights[0, 0], expected)
        np.testing.assert_array_equal(history.distance[0, 0], [0, np.finfo(np.float32).max, 0])


def test_distances_grow_without_bound_towards_the_users_own_optimum(x64):
    silos = regressions(np.random.default_rng(5), SIZES)
    own, pooled = least_squares(silos, [0]), least_squares(silos)
    found = []
    for t in (1e-2, 1e-4, 1e-6):
        d = first_round(silos, jax.tree.map(lambda a, b, t=t: a + t * (b - a), own, pooled))
        found.append(d[1:] * t)
    assert (found[0] / 1e-2 > 10).all()
    np.testing.assert_allclose(found[1], found[2], rtol=1e-3)  # d is proportional to 1/t


def test_far_from_all_optima_the_distances_are_small(x64):
    """The appendix's first example, in a regression on the same rows: far away the gradients hardly differ."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(10, 3))
    silos = cf.Silos.from_arrays([(X, X @ rng.normal(size=3)) for _ in range(3)])
    near, far = (first_round(silos, {"w": jnp.full((3, 1), s), "b": jnp.zeros(1)}) for s in (1.0, 1e4))
    assert (far < 1e-3).all()
    assert (near[1:] > 100 * far[1:]).all()


# Equal silos


EQUAL = {
    "weight erosion": cf.weight_erosion(user=2, lr=0.3, p_d=0.5),
    "fedsgd": cf.fedsgd(lr=0.3),
    "fedavg": cf.fedavg(lr=0.3, batch=None),
    "local": cf.local(lr=0.3),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_silos_end_equal(name):
    one = two_class_silos((15,))[0]
    history = run(EQUAL[name], cf.Silos.from_arrays([(one.X, one.y)] * 4))
    for i in range(1, 4):
        same_bits(history.personal(i), history.personal(0))
    alone = run(cf.local(lr=0.3), cf.Silos.from_arrays([(one.X, one.y)]))
    close(history.personal(0), alone.personal(0), rtol=1e-5, atol=1e-6)


def test_equal_silos_never_erode():
    one = two_class_silos((15,))[0]
    history = run(EQUAL["weight erosion"], cf.Silos.from_arrays([(one.X, one.y)] * 4))
    np.testing.assert_array_equal(history.weights, 1)
    np.testing.assert_array_equal(history.distance, 0)


def test_fedsgd_by_size_goes_to_the_pooled_optimum_and_uniform_fedsgd_to_that_of_equal_silos(x64):
    silos = regressions(np.random.default_rng(7), SIZES)
    for weights, per_row in (("size", np.ones(4)), ("uniform", 1 / np.array(SIZES))):
        optimum = least_squares(silos, weights=per_row)
        history = run(cf.fedsgd(lr=0.3, weights=weights), silos, 500, LINEAR, record=())
        close(history.personal(0), optimum, rtol=1e-6)


def test_local_training_goes_to_everybodys_own_optimum(x64):
    silos = regressions(np.random.default_rng(8), (30, 40, 25))
    history = run(cf.local(lr=0.3), silos, 500, LINEAR, record=())
    for i in range(3):
        close(history.personal(i), least_squares(silos, [i]), rtol=1e-6)


# The local model as an attractor


def test_weight_erosion_ends_at_the_users_own_optimum_unless_the_cone_stops_it(x64):
    """Six silos, three parameters: the user's gradient shrinks until the others look far away, and all erode."""
    silos = regressions(np.random.default_rng(9), (30, 40, 25, 35, 20, 30), d=2, spread=0.3)
    recipe, own = cf.weight_erosion(user=0, lr=0.2, p_d=0.01), least_squares(silos, [0])
    start = {"w": jnp.zeros((2, 1)), "b": jnp.zeros(1)}
    whole = run(recipe, silos, 500, LINEAR, params=start)
    close(whole.personal(0), own, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(whole.weights[-1, 0], [1, 0, 0, 0, 0, 0])
    stopped = run(recipe, silos, 500, LINEAR, params=start, stop="cone")
    assert 0 < stopped.rounds < 50
    assert (stopped.weights[-1] > 0.3).all()
    assert np.abs(stopped.personal(0)["w"] - own["w"]).max() > 0.05
