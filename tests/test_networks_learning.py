"""Networks learnt from how alike silos are, models without parameters, flavours, diagnosis and explanations."""

import sys

import numpy as np
import pytest

import confrere as cf
from confrere.networks import GTVMin, Network
from confrere.networks.predictors import copies
from tests.network_problems import connected, problem, rows_of, solution_by_hand

nets = cf.networks


def discrepancies(n=7, seed=0):
    D = np.triu(np.random.default_rng(seed).uniform(size=(n, n)), 1)
    return D + D.T


# how alike silos are


def test_silos_of_one_law_are_nearer_than_silos_of_two():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(60, 3)) for _ in range(6)]
    y = [a @ ([1.0, 2.0, 3.0] if i < 3 else [-1.0, 0.0, 5.0]) + 0.1 * rng.normal(size=60) for i, a in enumerate(X)]
    told = [
        nets.fitted_parameters(X, y),
        nets.gradients_at(X, y, np.zeros(3)),
        nets.latent_vectors([np.c_[a, b] for a, b in zip(X, y, strict=True)], lambda rows: rows * rows[:, -1:]),
    ]
    for vectors in told:
        D = nets.distances_between(vectors)
        assert D[:3, :3].max() < D[:3, 3:].min()
        groups = nets.clusters(vectors, 2)
        assert len(set(groups[:3])) == len(set(groups[3:])) == 1
        assert groups[0] != groups[3]


def test_mixtures_tell_of_their_means():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    rows = [np.r_[rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + shift] for shift in (5, 5, 9)]
    z = nets.mixture_parameters(rows, parts=2, seed=1)
    assert z.shape == (3, 2 * 2 + 2 * 4)
    weighed = nets.mixture_parameters(rows, parts=2, seed=1, weights=True)
    np.testing.assert_array_equal(weighed[:, :12], z)
    np.testing.assert_allclose(weighed[:, 12:], 0.5, atol=0.02)
    assert nets.clusters(z, 2, "gmm").shape == (3,)


def test_label_overlap_counts_rows_of_common_labels():
    D = nets.label_overlap([[0, 0, 1], [1, 2], [2]])
    np.testing.assert_allclose(D[0, 1], 1 - 2 / 5)
    np.testing.assert_allclose(D[1, 2], 1 - 2 / 3)
    assert D[0, 2] == 1
    np.testing.assert_allclose(D, D.T)


# networks


@pytest.mark.parametrize("edges", [1, 5, 21])
def test_the_budget_is_spent_on_the_most_alike_pairs(edges):
    D = discrepancies()
    net = nets.least_discrepant(D, edges)
    assert len(net.edges) == edges
    chosen = net.adjacency().toarray() > 0
    others = ~chosen & ~np.eye(7, dtype=bool)
    assert not others.any() or D[chosen].max() <= D[others].min()


@pytest.mark.parametrize("k", [1, 2, 6])
def test_every_silo_is_joined_with_those_most_like_it(k):
    D = discrepancies()
    net = nets.nearest_by(D, k)
    for i in range(7):
        for j in range(7):
            closer = [sum(D[a, c] < D[a, b] for c in range(7) if c != a) for a, b in ((i, j), (j, i))]
            assert i == j or (net.adjacency()[i, j] == 1) == (min(closer) < k)


def test_joined_by_distances_is_joined_by_vectors():
    z = np.random.default_rng(0).normal(size=(9, 3))
    assert nets.nearest_by(nets.distances_between(z), 3) == Network.nearest(z, 3)


def test_silos_of_the_same_classes_are_joined():
    y = [["a", "b"], ["c", "d"], ["b", "a", "a"], ["d", "c"]]
    assert nets.nearest_by(nets.label_overlap(y), 1).edges.tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize("degree", [0, 1, 2, 2.5, 6])
def test_every_node_has_the_degree_asked_for(degree):
    net = nets.of_degree(discrepancies(), degree)
    np.testing.assert_allclose(net.degrees, degree, atol=1e-9)
    assert net.weights.max(initial=0) <= 1 + 1e-9


def test_degrees_of_one_on_three_nodes_are_halves():
    net = nets.of_degree(np.ones((3, 3)) - np.eye(3), 1)
    np.testing.assert_allclose(net.weights, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_matching_is_cheaper(seed):
    D = discrepancies(4, seed)
    pairs = [D[0, 1] + D[2, 3], D[0, 2] + D[1, 3], D[0, 3] + D[1, 2]]
    net = nets.of_degree(D, 1)
    np.testing.assert_allclose((net.adjacency().toarray() * D).sum() / 2, min(pairs))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nets.of_degree(discrepancies(), 7), "its degree cannot be 7"),
        (lambda: nets.of_degree(discrepancies(), -1), "degree must be"),
        (lambda: nets.least_discrepant(discrepancies(), 22), "cannot be 22 edges"),
        (lambda: nets.least_discrepant([[0, 1], [2, 0]], 1), "symmetric"),
        (lambda: nets.least_discrepant([[0, 1, 2]], 1), "square"),
        (lambda: nets.clusters(np.eye(3), 2, "spectral"), "method must be"),
    ],
)
def test_networks_that_cannot_be_learnt_are_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


# models without parameters


def test_linear_models_coupled_by_predictions_on_unit_points_are_those_of_fedrelax(x64):
    linear = pytest.importorskip("sklearn.linear_model").LinearRegression(fit_intercept=False)
    p = problem()
    X, y = p.rows
    public = 3**0.5 * np.eye(3)  # (1/3) sum of squared differences of predictions is |w - w'|^2
    h = nets.relax_predictors(p.network, linear, X, y, public, alpha=p.alpha, iterations=5)
    start = nets.fitted_parameters(X, y)
    W = nets.fedrelax(p, iterations=5, start=start).W
    np.testing.assert_allclose([m.coef_ for m in h.models], W, atol=1e-10)


def test_the_step_of_a_predictor_is_the_proximal_step_of_a_linear_model():
    linear = pytest.importorskip("sklearn.linear_model").LinearRegression(fit_intercept=False)
    (X,), (y,) = rows_of(1)
    w, public = np.array([1.0, -2.0, 3.0]), 3**0.5 * np.eye(3)
    found = nets.predictor_step(linear, X, y, public, public @ w, eta=0.3).coef_
    exact = np.linalg.solve(X.T @ X / len(y) + np.eye(3) / 0.6, X.T @ y / len(y) + w / 0.6)  # (4.19)
    np.testing.assert_allclose(found, exact, atol=1e-10)


def test_steps_of_a_tree_come_to_the_tree_of_the_rows_the_sooner_the_longer_they_are():
    tree = pytest.importorskip("sklearn.tree").DecisionTreeRegressor(random_state=0)
    X, y, public = [[0.0], [1.0]], [2.0, 6.0], [[0.0], [1.0]]
    for eta, steps in ((0.05, 40), (5.0, 3)):
        said = np.zeros(2)
        for _ in range(steps):
            said = nets.predictor_step(tree, X, y, public, said, eta).predict(public)
        left = (1 + 2 * eta) ** -float(steps)  # a step goes to (y + said/(2 eta)) / (1 + 1/(2 eta))
        np.testing.assert_allclose(said, np.array(y) * (1 - left))


def test_every_silo_may_heed_its_neighbours_as_much_as_it_likes():
    mean = pytest.importorskip("sklearn.dummy").DummyRegressor()
    net, X, y = Network.from_edges([(0, 1)], weights=[2.0]), [[[0.0]], [[0.0]]], [[0.0], [3.0]]
    h = nets.relax_predictors(net, mean, X, y, [[0.0]], alpha=[0.0, 0.5], iterations=1)
    np.testing.assert_allclose(h.predictions, [[0.0], [1.5]])
    for alpha, said in (([1.0, 2.0, 3.0], "one for each of 2 nodes"), ([1.0, -1.0], "0 or more")):
        with pytest.raises(ValueError, match=said):
            nets.relax_predictors(net, mean, X, y, [[0.0]], alpha=alpha)


def test_trees_of_neighbours_agree_more_than_trees_alone_and_err_less():
    tree = pytest.importorskip("sklearn.tree").DecisionTreeRegressor(max_depth=5, random_state=0)
    rng = np.random.default_rng(0)
    truth = lambda rows: np.sin(rows[:, 0]) + rows[:, 1]  # noqa: E731
    X = [rng.uniform(-3, 3, (10, 2)) for _ in range(8)]
    y = [truth(a) + 0.5 * rng.normal(size=10) for a in X]
    public, test = rng.uniform(-3, 3, (40, 2)), rng.uniform(-3, 3, (200, 2))
    net = connected(8)
    alone, coupled = (nets.relax_predictors(net, tree, X, y, public, alpha=a, iterations=6) for a in (0.0, 1.0))
    errors = [np.mean([(m.predict(test) - truth(test)) ** 2 for m in h.models]) for h in (alone, coupled)]
    assert np.var(coupled.predictions, axis=0).mean() < 0.5 * np.var(alone.predictions, axis=0).mean()
    assert errors[1] < errors[0]


def test_classifiers_learn_of_classes_that_only_neighbours_have():
    tree = pytest.importorskip("sklearn.tree").DecisionTreeClassifier(random_state=0)
    X, y = [[[0.0], [1.0]], [[2.0], [3.0]]], [["a", "b"], ["c", "c"]]
    net = Network.from_edges([(0, 1)])
    h = nets.relax_predictors(net, tree, X, y, [[0.0], [1.0], [2.9]], alpha=3.0, iterations=1)
    assert h.predictions.shape == (2, 3, 3)
    np.testing.assert_allclose(h.predictions.sum(axis=2), 1)
    assert h.predictions[0, 2, 2] > 0.5
    with pytest.raises(ValueError, match="an array for each of 2 nodes, not 1"):
        nets.relax_predictors(net, tree, X[:1], y[:1], [[0.0]], alpha=1.0)


def test_every_silo_may_have_an_estimator_of_its_own_and_pipelines_take_weights_at_their_last_step(x64):
    linear = pytest.importorskip("sklearn.linear_model").LinearRegression(fit_intercept=False)
    chain = pytest.importorskip("sklearn.pipeline").make_pipeline("passthrough", linear)
    p = problem()
    X, y = p.rows
    public = 3**0.5 * np.eye(3)
    own = [linear, chain] * 3
    h = nets.relax_predictors(p.network, own, X, y, public, alpha=p.alpha, iterations=4)
    W = nets.fedrelax(p, iterations=4, start=nets.fitted_parameters(X, y)).W
    np.testing.assert_allclose([getattr(m, "steps", [(0, m)])[-1][1].coef_ for m in h.models], W, atol=1e-10)
    assert [type(m).__name__ for m in h.models] == ["LinearRegression", "Pipeline"] * 3


def test_estimators_without_weights_see_rows_as_often_as_they_weigh():
    dummy = pytest.importorskip("sklearn.dummy").DummyRegressor

    class Mean(dummy):
        def fit(self, X, y):
            return super().fit(X, y)

    net, points = Network.from_edges([(0, 1)], weights=[2.0]), [[0.0]] * 4
    X, y = [[[0.0]] * 2, [[0.0]] * 3], [[0.0, 2.0], [3.0, 6.0, 9.0]]
    heavy, plain = (nets.relax_predictors(net, e, X, y, points, alpha=0.5, iterations=3) for e in (dummy(), Mean()))
    np.testing.assert_allclose(plain.predictions, heavy.predictions)  # 2 to 1 and 4 to 3: copies are exact


@pytest.mark.parametrize("seed", range(5))
def test_copies_are_as_near_to_weights_as_they_say(seed):
    weights = np.random.default_rng(seed).uniform(0.05, 1, 30)
    times = copies(weights)
    scale = (times @ weights) / (weights @ weights)
    assert np.abs(times / (scale * weights) - 1).max() < 0.06
    assert copies(np.full(5, 0.2)).tolist() == [1] * 5


def test_classifiers_without_probabilities_say_the_class_that_they_predict():
    classifier = pytest.importorskip("sklearn.linear_model").RidgeClassifier()
    X, y = [[[0.0], [1.0]]] * 2, [["a", "b"], ["b", "a"]]
    net, points = Network.from_edges([(0, 1)]), [[0.0], [1.0]]
    h = nets.relax_predictors(net, classifier, X, y, points, alpha=[0.0, 5.0], iterations=1)
    assert h.predictions.tolist() == [[[1.0, 0.0], [0.0, 1.0]]] * 2  # the second gives way


def test_neighbours_and_forests_are_coupled_too():
    neighbours = pytest.importorskip("sklearn.neighbors").KNeighborsRegressor(2)
    forest = pytest.importorskip("sklearn.ensemble").RandomForestRegressor(5, random_state=0)
    rng = np.random.default_rng(0)
    X = [rng.uniform(-1, 1, (12, 1)) for _ in range(4)]
    y = [a[:, 0] + i for i, a in enumerate(X)]  # each is off by something else
    public = rng.uniform(-1, 1, (10, 1))
    for estimator in (neighbours, forest):
        alone, coupled = (nets.relax_predictors(connected(4), estimator, X, y, public, alpha=a) for a in (0.0, 1.0))
        gaps = [np.ptp(h.predictions.mean(axis=1)) for h in (alone, coupled)]
        assert gaps[1] < 0.7 * gaps[0]


# flavours


def test_cluster_models_are_least_squares_on_all_rows_of_a_cluster():
    X, y = rows_of(4)
    W = cf.networks.cluster_models(["a", "b", "a", "b"], X, y)
    np.testing.assert_allclose(W[0], np.linalg.lstsq(np.r_[X[0], X[2]], np.r_[y[0], y[2]], rcond=None)[0])
    np.testing.assert_array_equal(W[1], W[3])


def test_spectral_vectors_tell_components_apart():
    net = Network.from_edges([(0, 1), (1, 2), (3, 4), (4, 5)])
    groups = nets.clusters(nets.spectral_vectors(net, 2), 2)
    assert groups[0] == groups[1] == groups[2] != groups[3] == groups[4] == groups[5]
    large = Network.nearest(np.random.default_rng(0).random((500, 2)), 6)
    z = nets.spectral_vectors(large, 3)
    values = np.linalg.eigvalsh(large.laplacian())
    np.testing.assert_allclose(np.einsum("nk,nk->k", z, large.laplacian() @ z), values[:3], atol=1e-8)


def test_vertical_learning_ends_where_no_silo_can_do_better():
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(30, 6))
    y = whole @ rng.normal(size=6) + 0.1 * rng.normal(size=30)
    X = [whole[:, :2], whole[:, 1:4], whole[:, 3:]]
    net, alpha = Network.from_edges([(0, 1), (1, 2)], weights=[1.0, 2.0]), 0.7
    found = nets.vertical(net, X, y, alpha)
    A = net.adjacency().toarray()
    for i in range(3):
        off = (
            found.predictions[i]
            - y
            + alpha * sum(A[i, j] * (found.predictions[i] - found.predictions[j]) for j in range(3))
        )
        np.testing.assert_allclose(X[i].T @ off, 0, atol=1e-10)
        np.testing.assert_allclose(X[i] @ found.models[i], found.predictions[i], atol=1e-10)
    alone = nets.vertical(net, X, y, 0.0, 1)
    np.testing.assert_allclose(alone.models[0], np.linalg.lstsq(X[0], y, rcond=None)[0])
    with pytest.raises(ValueError, match="X must have an array for each of 3 silos, not 2"):
        nets.vertical(net, X[:2], y, 1.0)


def test_a_category_without_rows_is_detected_through_those_like_it():
    rng = np.random.default_rng(0)
    places = np.array([[4.0, 0, 1], [0, 4.0, 1], [-4.0, 0, 1]])
    y = np.repeat([0, 1], 20)
    X = places[y] + 0.3 * np.c_[rng.normal(size=(40, 2)), np.zeros(40)]
    net = Network.from_edges([(0, 2), (1, 2)], weights=[0.5, 2.0])
    p = nets.by_category(net, X, y, alpha=0.1)
    W = p.solve()
    assert ((X @ W[:2].T).argmax(axis=1) == y).all()
    np.testing.assert_allclose(W[2], (0.5 * W[0] + 2 * W[1]) / 2.5, atol=1e-8)


# explanations, diagnosis, regularisation


def test_guesses_draw_models_to_what_users_expect():
    p = problem()
    X, y = p.rows
    rng = np.random.default_rng(0)
    tests = [rng.normal(size=(5, 3)) for _ in range(6)]
    guesses = [a @ np.ones(3) for a in tests]
    problems = [nets.explainable(p, tests, guesses, rho) for rho in (0, 0.5, 50)]
    scores = [nets.explainability(q.solve(), tests, guesses) for q in problems]
    assert scores[0].mean() > scores[1].mean() > scores[2].mean()
    both = [np.r_[a / len(b) ** 0.5, (0.5 / 5) ** 0.5 * t] for a, b, t in zip(X, y, tests, strict=True)]
    labels = [np.r_[b / len(b) ** 0.5, (0.5 / 5) ** 0.5 * u] for b, u in zip(y, guesses, strict=True)]
    scaled = [a * len(a) ** 0.5 for a in both], [b * len(b) ** 0.5 for b in labels]  # (8.12) as weighted rows
    expected = solution_by_hand(p.network.adjacency().toarray(), *scaled, p.alpha)
    np.testing.assert_allclose(nets.explainable(p, tests, guesses, 0.5).solve(), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("errors", "case"),
    [((1.0, 1.1, 1.0), "fine"), ((1.0, 1.1, None), "fine"), ((1.0, 3.0, 1.0), "overfitting"),
     ((3.0, 3.1, 1.0), "underfitting"), ((3.0, 1.0, None), "unlike"), ((0.0, 0.0, None), "fine")],
)  # fmt: skip
def test_the_four_cases_of_diagnosis(errors, case):
    found = nets.diagnose(*errors)
    assert found.case == case
    assert len(found.advice) > 40


def test_ridge_is_least_squares_on_rows_with_noise():
    X, y = rows_of(1, rows=(10, 11))
    exact = np.linalg.solve(X[0].T @ X[0] / 10 + 0.4 * np.eye(3), X[0].T @ y[0] / 10)
    np.testing.assert_allclose(nets.ridge(X[0], y[0], 0.4), exact)
    rows, labels = nets.augmented(X[0], y[0], 0.4, copies=20_000)
    assert rows.shape == (200_000, 3)
    np.testing.assert_allclose(np.linalg.lstsq(rows, labels, rcond=None)[0], exact, atol=0.01)


@pytest.mark.parametrize("schedule", ["inverse", "inverse_root"])
def test_online_steps_come_near_the_truth(schedule):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    path = nets.online_gd(X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=4000), getattr(nets, schedule)(0.1, shift=5))
    assert path.shape == (4000, 3)
    np.testing.assert_allclose(path[-1], [1.0, -2.0, 0.5], atol=0.05)


def test_what_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"to_networkx needs networkx: pip install 'confrere\[networks\]'"):
        connected(3).to_networkx()


# the author's data


def weather(folder):
    """Features and labels of every station, in order of first appearance, and the stations' places."""
    import polars as pl

    table = pl.read_csv(folder / "fmi_weather" / "FMI_data.csv")
    when = pl.col("Timestamp").str.to_datetime("%Y-%m-%d %H:%M:%S").dt
    scales = {"year": 2025, "month": 13, "day": 32, "hour": 25, "minute": 61}
    columns = [pl.col(name) / 100 for name in ("Latitude", "Longitude")]
    columns += [(getattr(when, part)() / by).alias(part) for part, by in scales.items()]
    rows = table.select("name", "temp", *columns)
    stations = rows["name"].unique(maintain_order=True)
    groups = [rows.filter(pl.col("name") == name).drop("name").to_numpy() for name in stations]
    return [g[:, 1:] for g in groups], [g[:, 0] for g in groups]


def test_fedgd_on_the_weather_stations_gives_the_author_s_errors(shared_data, x64):
    selection = pytest.importorskip("sklearn.model_selection")
    X, y = weather(shared_data)
    split = [selection.train_test_split(a, b, test_size=0.2, random_state=1) for a, b in zip(X, y, strict=True)]
    places = np.stack([a[0, :2] * 100 for a in X])
    p = GTVMin(Network.nearest(places, 3), alpha=0.5, X=[s[0] for s in split], y=[s[2] for s in split])
    h = nets.fedgd(p, lr=0.1, iterations=1000)
    errors = [np.mean([np.mean((s[k + 2] - s[k] @ w) ** 2) for s, w in zip(split, h.W, strict=True)]) for k in (0, 1)]
    np.testing.assert_allclose(errors, [21.0652777154, 21.3362458978], rtol=1e-11)
