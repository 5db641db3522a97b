"""In which features two silos disagree: exact for linear models, by layers for others."""

import jax
import numpy as np
import pytest

import confrere as cf


def hospital(rng, rows, slopes, task="classes", bias=0.0):
    X = rng.normal(size=(rows, len(slopes)))
    z = X @ slopes + bias
    return (X, z + rng.logistic(size=rows) > 0) if task == "classes" else (X, z + rng.normal(size=rows))


def pair(task="classes", rows=300, seed=0, other=(1.0, -1.0, 0.5)):
    rng = np.random.default_rng(seed)
    return cf.Silos.from_arrays(
        [hospital(rng, rows, (1.0, 1.0, 0.5), task), hospital(rng, rows, other, task)], names=["a", "b"]
    )


@pytest.mark.parametrize("task", ["classes", "amounts"])
def test_shares_are_those_of_the_gradients_written_by_hand_and_sum_to_one(task):
    silos = pair(task)
    outputs = 2 if task == "classes" else 1
    rng = np.random.default_rng(1)
    params = {"w": rng.normal(size=(3, outputs)).astype(np.float32), "b": rng.normal(size=outputs).astype(np.float32)}
    model = cf.models.logistic() if task == "classes" else cf.models.linear()
    found = cf.insight.disagreement(silos, "a", "b", model, params, resamples=0)

    def gradient(silo):
        X = np.column_stack([silo.X, np.ones(len(silo.y))])
        z = X @ np.vstack([params["w"], params["b"]])
        if task == "amounts":
            return X.T @ (z - silo.y[:, None]) / len(X)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        return X.T @ (p - np.eye(2)[silo.y.astype(int)]) / len(X)

    one, two = gradient(silos["a"]), gradient(silos["b"])
    square = np.square(one - two).sum(axis=1)
    wanted = dict(zip(["x0", "x1", "x2", "intercept"], square / square.sum(), strict=True))
    assert found.shares == pytest.approx(wanted, abs=1e-5)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.distance == pytest.approx(np.linalg.norm(one - two), rel=1e-5)
    assert found.relative == pytest.approx(np.linalg.norm(one - two) / np.linalg.norm(one), rel=1e-5)
    assert {p.name: p.difference for p in found.parts}["x1"] == pytest.approx((two - one)[1, -1], abs=1e-5)
    assert all(np.isnan(p.low) for p in found.parts)
    assert "no intervals" in str(found)


def test_the_feature_that_differs_is_found_and_the_others_are_left_to_chance():
    found = cf.insight.disagreement(pair(rows=500), "a", "b")
    first, *rest = found.parts
    assert first.name == "x1"
    assert first.clear
    assert first.low < first.share < first.high
    assert not any(p.clear for p in rest)
    assert "x1" in str(found)
    assert found.interval[0] < found.distance < found.interval[1]


def test_silos_of_one_population_clearly_disagree_about_anything_in_one_case_of_twenty():
    silos = [pair(rows=150, seed=seed, other=(1.0, 1.0, 0.5)) for seed in range(25)]
    found = [cf.insight.disagreement(some, 0, 1, resamples=100) for some in silos]
    assert np.mean([any(p.clear for p in one.parts) for one in found]) <= 0.16


def test_at_the_optimum_of_both_the_silos_pull_in_opposite_directions():
    silos = pair()
    found = cf.insight.disagreement(silos, "a", "b", resamples=0)
    back = cf.insight.disagreement(silos, "b", "a", resamples=0)
    assert found.shares == pytest.approx(back.shares, abs=1e-5)
    assert found.relative == pytest.approx(2.0, abs=0.1)  # equal sizes: g_b = -g_a, but for the ridge


def test_of_a_network_the_parts_are_layers():
    silos = pair()
    model = cf.models.mlp([4])
    params = model.init(jax.random.key(0), 3, 2)
    found = cf.insight.disagreement(silos, "a", "b", model, params, resamples=20)
    assert sorted(found.shares) == ["layer0", "layer1"]
    assert sum(found.shares.values()) == pytest.approx(1)
    with pytest.raises(ValueError, match="params: say at which model"):
        cf.insight.disagreement(silos, "a", "b", model)


def test_the_same_silo_and_a_silo_of_one_row_are_defined():
    silos = pair()
    itself = cf.insight.disagreement(silos, "a", "a")
    assert itself.distance == 0
    assert set(itself.shares.values()) == {0.0}
    assert "no disagreement" in str(itself)
    tiny = cf.Silos.from_arrays([(silos["a"].X, silos["a"].y), (silos["b"].X[:1], [1])], names=["a", "b"])
    found = cf.insight.disagreement(tiny, "a", "b")
    assert "single row" in str(found)
    assert found.to_dict()["interval"] == [None, None]
    assert found.table.height == 4
