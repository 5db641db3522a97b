"""What the exercises find, computed once more by plain numpy: neither the library's networks nor its algorithms."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from confrere.data.fmi import rows_of
from confrere.reproduce.book import fl_algorithms_2025, flavours_2025, trustworthy, trustworthy_2025
from confrere.reproduce.book.stations import of_station, split_stations

pytest.importorskip("sklearn")


def joined(places, k):
    """The adjacency of the k nearest, symmetrised."""
    gaps = cdist(places, places)
    np.fill_diagonal(gaps, np.inf)
    A = np.zeros(gaps.shape)
    np.put_along_axis(A, np.argsort(gaps, axis=1, kind="stable")[:, :k], 1, axis=1)
    return np.maximum(A, A.T)


def moments(X, y):
    """X'X/m and X'y/m of every station."""
    return np.stack([a.T @ a / len(a) for a in X]), np.stack([a.T @ b / len(b) for a, b in zip(X, y, strict=True)])


def laplacian(places, k):
    A = joined(places, k)
    return np.diag(A.sum(axis=1)) - A


def step(W, Q, q, L, lr):
    return W - 2 * lr * (np.einsum("nij,nj->ni", Q, W) - q + 0.5 * L @ W)


def test_how_far_models_move_with_noise(shared_data, x64):
    stations = split_stations(4740)
    L = laplacian(stations.coordinates, 4)
    draw = np.random.RandomState(4740)
    noise = [draw.normal(0, 1, len(y)) for y in stations.y]

    def models(mean, deviation):
        Q, q = moments(stations.X, [y + mean + deviation * z for y, z in zip(stations.y, noise, strict=True)])
        W = np.zeros(q.shape)
        for _ in range(1000):
            W = step(W, Q, q, L, 0.1)
        return W

    clean, found = models(0, 0), trustworthy.run()
    for mean, deviation, value in ((0, 55, found["deviation"]["55"]), (55, 1, found["mean"]["55"])):
        moved = np.linalg.norm(models(mean, deviation) - clean, axis=1).sum()
        np.testing.assert_allclose(value, moved, rtol=1e-10)


def test_where_fedgd_stops_by_itself_with_and_without_guesses(shared_data, x64, monkeypatch):
    monkeypatch.setattr(trustworthy_2025, "ATTACKS", 1)
    stations, found = split_stations(4740), trustworthy_2025.run()
    L = laplacian(stations.coordinates, 4)
    draw = np.random.RandomState(4740)
    guesses = [y * (1 + draw.uniform(-0.01, 0.01)) for y in stations.y_validation]
    own, asked = moments(stations.X, stations.y), moments(stations.X_validation, guesses)
    for rho, name in ((0, ""), (0.5, "_explainable")):
        Q, q = (a + rho * b for a, b in zip(own, asked, strict=True))
        W, changes = np.zeros(q.shape), [np.inf]
        while len(changes) < 3 or changes[-2] - changes[-1] > 1e-4:
            W, before = step(W, Q, q, L, 0.05), W
            changes.append(np.linalg.norm(W - before, axis=1).mean())
        assert found["iterations" + name] == len(changes) - 1
        np.testing.assert_allclose(found["node_0" + name], W[0], rtol=1e-9)


def test_vertical_models_solve_their_equations(shared_data):
    rows = rows_of("2024")
    whole = np.flatnonzero([len(y) == 96 for y in of_station(rows)[1]])
    columns = flavours_2025.series(rows, whole)
    y, A, alpha = columns.mean(axis=1)[1:77], joined(rows.coordinates[whole], 4), 0.9
    X = [np.stack([c[:76], np.ones(76)], axis=1) for c in columns.T]
    n = len(X)
    M, b = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
    for i in range(n):
        here = slice(2 * i, 2 * i + 2)
        M[here, here], b[here] = (1 + alpha * A[i].sum()) * X[i].T @ X[i], X[i].T @ y
        for j in np.flatnonzero(A[i]):
            M[here, 2 * j : 2 * j + 2] = -alpha * X[i].T @ X[j]
    W = np.linalg.solve(M, b).reshape(n, 2)
    train = np.mean([(y - a @ w) ** 2 for a, w in zip(X, W, strict=True)])
    network = flavours_2025.Network.nearest(rows.coordinates[whole], 4)
    np.testing.assert_allclose(flavours_2025.by_columns(network, columns)["coupled"]["train"], train, rtol=1e-8)


@pytest.mark.slow
def test_trees_learn_from_own_rows_and_public_rows_alike(shared_data):
    from sklearn.tree import DecisionTreeRegressor

    stations, found = split_stations(42, "2025"), fl_algorithms_2025.run()
    A = joined(stations.coordinates, 4)
    public = np.random.RandomState(42).uniform(-33, 12, (10, 10))
    tree = lambda X, y: DecisionTreeRegressor(max_depth=5, random_state=42).fit(X, y)  # noqa: E731
    trees = [tree(X, y) for X, y in zip(stations.X, stations.y, strict=True)]
    alone = error(stations, trees)
    for _ in range(10):
        said = A @ np.stack([one.predict(public) for one in trees]) / A.sum(axis=1, keepdims=True)
        parts = zip(stations.X, stations.y, said, strict=True)
        trees = [tree(np.r_[X, public], np.r_[y, guess]) for X, y, guess in parts]
    np.testing.assert_allclose(found["local"]["validation"], alone, rtol=0.01)
    np.testing.assert_allclose(found["fedrelax"]["validation"], error(stations, trees), rtol=0.01)  # ties of splits


def error(stations, trees):
    parts = zip(trees, stations.X_validation, stations.y_validation, strict=True)
    return np.mean([np.mean((one.predict(X) - y) ** 2) for one, X, y in parts])
