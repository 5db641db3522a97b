"""Similarity: each measure against plain numpy, its degenerate cases, and what crosses the border for it."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import confrere as cf
from confrere.insight.similarity.common_set import synthetic_rows
from confrere.insight.similarity.measures import MEASURES
from confrere.insight.similarity.own import counts_of, told
from confrere.insight.similarity.summaries import layout_of
from tests.selection_problems import amounts, classes, logistic_fit, reordered, ridge_fit

L2 = 0.01
SIZES = (60, 50, 40, 45)


@pytest.fixture(scope="module")
def silos():
    return classes(SIZES, flipped=(3,))


@pytest.fixture(scope="module")
def found(silos):
    return cf.insight.similarity(silos, resamples=60, common=COMMON)


COMMON = np.random.default_rng(5).normal(size=(30, 3))


def thetas(silos):
    return np.array([logistic_fit(*s.rows("train"), L2) for s in silos.silos])


def apart(vectors):
    return np.linalg.norm(vectors[:, None] - vectors[None], axis=2)


def test_models_are_as_far_apart_as_the_optima_of_a_general_optimiser(silos, found):
    np.testing.assert_allclose(found.matrices["models"], apart(thetas(silos)), atol=1e-4)


def test_gradients_are_those_of_gradient_descent_on_all_rows(silos, found):
    data = [(np.column_stack([s.X, np.ones(len(s.y))]), s.y) for s in silos.silos]
    rows = sum(SIZES)
    step = 1 / (0.25 * sum(np.square(Z).sum() for Z, _ in data) / rows)
    theta, lengths, between = np.zeros(4), np.zeros(4), np.zeros((4, 4))
    for _ in range(10):
        g = np.array([Z.T @ (1 / (1 + np.exp(-Z @ theta)) - y) / len(y) for Z, y in data])
        lengths += np.linalg.norm(g, axis=1)
        between += apart(g)
        theta -= step * np.array(SIZES) @ g / rows
    expected = between / ((lengths[:, None] + lengths[None]) / 2)
    np.testing.assert_allclose(found.matrices["gradients"], expected, atol=1e-10)


def test_transfer_is_what_ndoye_finds_for_every_user_and_is_not_the_same_both_ways(silos, found):
    T = found.matrices["transfer"]
    for i, user in enumerate(silos.names):
        scores = cf.selection.ndoye(silos, user, others="train", resamples=1).scores
        np.testing.assert_allclose(T[i], scores, atol=1e-6)
    assert np.nanmax(np.abs(T - T.T)) > 0.01
    alike = found.measures["transfer"].dissimilarity
    np.testing.assert_array_equal(alike, alike.T)
    assert alike[0, 3] == pytest.approx((T[0, 3] + T[3, 0]) / 2)


def test_influence_is_what_selection_finds_and_is_no_distance(silos, found):
    for i, user in enumerate(silos.names):
        expected = cf.selection.influence(silos, user, others="train", resamples=60)
        np.testing.assert_allclose(found.matrices["influence"][i], expected.scores)
        np.testing.assert_allclose(found.intervals["influence"][i], expected.intervals)
    with pytest.raises(ValueError, match="who would be missed"):
        found.map("influence")


def test_outcomes_differ_by_half_the_sum_of_differences_of_shares(silos, found):
    share = np.array([s.y.mean() for s in silos.silos])
    np.testing.assert_allclose(found.matrices["outcomes"], np.abs(share[:, None] - share[None]), atol=1e-12)


def test_features_lie_apart_by_means_and_spreads_in_pooled_standard_deviations(silos, found):
    every = np.concatenate([s.X for s in silos.silos])
    told_of = [np.concatenate([s.X.mean(axis=0), s.X.std(axis=0)]) for s in silos.silos]
    expected = apart(np.array(told_of) / np.tile(every.std(axis=0), 2)) / np.sqrt(3)
    np.testing.assert_allclose(found.matrices["features"], expected, atol=1e-12)


def test_predictions_are_compared_on_the_rows_that_were_given(silos, found):
    t = thetas(silos)
    p = 1 / (1 + np.exp(-(COMMON @ t[:, :-1].T + t[:, -1])))
    expected = np.abs(p.T[:, None] - p.T[None]).mean(axis=2)
    np.testing.assert_allclose(found.matrices["predictions"], expected, atol=1e-4)


def test_a_silo_with_flipped_labels_is_told_apart_in_every_sense_that_knows_labels(found):
    for name in ("models", "gradients", "transfer", "predictions"):
        m = found.measures[name]
        assert (m.dissimilarity[3, :2] > m.chance[3, :2]).all(), name
        assert m.dissimilarity[0, 1] <= m.chance[0, 1], name
    assert found.like("silo 0")[-1].silo == "silo 3"
    assert {other.silo for other in found.like("silo 3")} == {"silo 0", "silo 1", "silo 2"}


def test_what_is_told_of_variation_is_the_covariance_of_the_draws():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(301, 3)) @ rng.normal(size=(3, 6))
    said = told(values, [4, 2])
    np.testing.assert_allclose(said.factors.T @ said.factors, np.cov(values[1:].T), rtol=0.01, atol=1e-2)
    assert len(said.factors) == 3
    assert told(np.ones((50, 2))).factors.shape == (0, 2)
    assert told(np.ones((1, 2))).draws(5, rng).shape == (5, 2)


def test_chance_is_that_of_the_binomial_law(found, silos):
    y = [s.y for s in silos.silos]
    spread = [b.mean() * (1 - b.mean()) / len(b) for b in y]
    expected = 1.96 * np.sqrt(np.add.outer(spread, spread))
    some = ~np.eye(4, dtype=bool)
    ratio = (found.chance["outcomes"] / expected)[some]
    assert 0.75 < ratio.mean() < 1.25


def test_intervals_reach_as_far_as_chance_on_either_side_and_not_below_zero(found):
    m = found.measures["models"]
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(m.low[off], np.maximum(m.matrix - m.chance, 0)[off])
    np.testing.assert_allclose(m.high[off], (m.matrix + m.chance)[off])
    assert ((m.low > 0) == (m.matrix > m.chance))[off].all()
    T = found.measures["transfer"]
    assert (T.low[off] < T.matrix[off]).all()
    assert (T.matrix[off] < T.high[off]).all()


def test_the_order_of_silos_changes_nothing(silos, found):
    order = [2, 0, 3, 1]
    here, there = found, cf.insight.similarity(reordered(silos, order), resamples=60, common=COMMON)
    square = np.ix_(order, order)
    for name in here.measures:
        np.testing.assert_array_equal(there.matrices[name], here.matrices[name][square])
        np.testing.assert_array_equal(there.intervals[name], here.intervals[name][square])
    np.testing.assert_allclose(there.map().places, here.map().places[order], atol=1e-12)
    assert there.groups().words == here.groups().words
    assert [o.silo for o in there.like("silo 1")] == [o.silo for o in here.like("silo 1")]


def test_equal_silos_are_at_distance_zero():
    one = classes((40,)).silos[0]
    silos = cf.Silos.from_arrays([(one.X, one.y)] * 3, names=list("abc"))
    found = cf.insight.similarity(silos, resamples=25)
    for name, m in found.measures.items():
        if m.dissimilarity is not None:
            assert not m.dissimilarity.any(), name
    assert not found.combined.matrix.any()
    assert found.groups().words == "no grouping: all silos are equal"
    assert found.like("a")[0].differs == ()
    assert (found.measures["models"].high[0, 1:] > 0).all()  # equal rows, but the populations may differ


def test_what_fewer_rows_have_than_the_group_size_is_not_told():
    def shares(rare):
        y = np.array([0] * 40 + [1] * rare)
        X = np.column_stack([np.arange(len(y)) % 7, y]).astype(float)  # a feature that only the rare rows have
        other = (np.column_stack([np.arange(50) % 7, np.arange(50) % 2]).astype(float), np.arange(50) % 2)
        found = cf.insight.similarity(
            cf.Silos.from_arrays([(X, y), other]), ["outcomes", "features"], resamples=0, min_group=5
        )
        return found.matrices["outcomes"][0, 1], found.measures["features"].features

    assert shares(1)[0] == shares(4)[0] == 0.5
    assert shares(5)[0] == pytest.approx(0.5 - 5 / 45)


def test_a_silo_with_too_few_rows_tells_nothing_and_the_others_go_on():
    found = cf.insight.similarity(classes((30, 30, 4)), resamples=25)
    for m in found.measures.values():
        assert np.isnan(m.matrix[2]).all()
        assert np.isnan(m.matrix[:, 2]).all()
        assert "silo 2" not in {c.silo for c in m.crossings}
        assert np.isfinite(m.matrix[0, 1])
    assert "of fewer than 5 nothing is told" in found.like("silo 0")[-1].words[0]
    assert found.map().without == ("silo 2",)
    assert "2 silos cannot be grouped" in found.groups().words
    json.loads(found.to_json())
    with pytest.raises(ValueError, match="there is no pair"):
        cf.insight.similarity(classes((30, 4, 4)))
    with pytest.raises(ValueError, match="nobody to compare"):
        cf.insight.similarity(classes((30,)))


def test_silos_of_one_class_are_defined():
    X = np.random.default_rng(0).normal(size=(3, 30, 2))
    silos = cf.Silos.from_arrays([(X[0], np.zeros(30, int)), (X[1], np.ones(30, int)), (X[2], np.arange(30) % 2)])
    found = cf.insight.similarity(silos, resamples=25)
    assert found.matrices["outcomes"][0, 1] == 1
    for m in found.measures.values():
        assert np.isfinite(m.matrix[~np.eye(3, dtype=bool)]).all(), m.name
    assert np.isfinite(found.map().places).all()


def test_a_feature_that_a_silo_lacks_is_left_out_of_its_distances():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({
        "age": rng.normal(60, 10, 90), "chol": [None] * 30 + rng.normal(200, 20, 60).tolist(),
        "ill": rng.integers(2, size=90), "clinic": np.repeat(["a", "b", "c"], 30),
    })  # fmt: skip
    silos = cf.Silos.from_table(table, label="ill", silo="clinic")
    found = cf.insight.similarity(silos, ["features", "predictions"], resamples=0)
    names = list(silos.feature_names)
    assert names == ["age", "chol", "chol=missing"]
    assert names[found.measures["features"].features[0, 1]] == "chol=missing"
    X = {n: silos[n].X for n in "abc"}
    age = np.concatenate([x[:, 0] for x in X.values()]).std()
    miss = np.concatenate([x[:, 2] for x in X.values()]).std()
    d = [(X["a"][:, 0].mean() - X["b"][:, 0].mean()) / age, (X["a"][:, 0].std() - X["b"][:, 0].std()) / age, 1 / miss]
    assert found.matrices["features"][0, 1] == pytest.approx(np.linalg.norm(d) / np.sqrt(2))


def test_the_common_set_looks_like_the_pool_and_has_one_level_each():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({
        "age": [None if k % 5 == 0 else float(a) for k, a in enumerate(rng.normal(60, 10, 200))],
        "kind": rng.choice(["x", "y", "z"], 200, p=[0.5, 0.3, 0.2]), "ill": rng.integers(2, size=200),
        "clinic": np.repeat(["a", "b"], 100),
    })  # fmt: skip
    silos = cf.Silos.from_table(table, label="ill", silo="clinic")
    layout = layout_of(silos)
    every = np.concatenate([s.X for s in silos.silos])
    known = every[:, 1] == 0
    mean, spread = every.mean(axis=0), every.std(axis=0)
    mean[0], spread[0] = every[known, 0].mean(), every[known, 0].std()
    rows = synthetic_rows(silos, layout, mean, spread, 4000, rng)
    assert silos.feature_names == ("age", "age=missing", "kind=x", "kind=y", "kind=z")
    np.testing.assert_allclose(rows.mean(axis=0), every.mean(axis=0), atol=0.05)
    assert (rows[:, 2:].sum(axis=1) == 1).all()
    assert np.ptp(rows[rows[:, 1] == 1, 0]) == 0


def test_amounts_are_compared_in_standard_units():
    silos = amounts((30, 25, 20))
    found = cf.insight.similarity(silos, resamples=25)
    y = np.concatenate([s.y for s in silos.silos])
    fitted = [ridge_fit(s.X, (s.y - y.mean()) / y.std(), L2) for s in silos.silos]
    np.testing.assert_allclose(found.matrices["models"], apart(np.array(fitted)), atol=1e-6)
    z = [np.array([s.y.mean() - y.mean(), s.y.std()]) / y.std() for s in silos.silos]
    np.testing.assert_allclose(found.matrices["outcomes"], apart(np.array(z)), atol=1e-9)
    shifted = replace(silos, silos=tuple(replace(s, y=10 * s.y + 3) for s in silos.silos))
    moved = cf.insight.similarity(shifted, resamples=0)
    for name, matrix in moved.matrices.items():
        np.testing.assert_allclose(matrix, found.matrices[name], atol=1e-6)


def test_more_than_two_classes_are_compared_class_by_class():
    rng = np.random.default_rng(0)
    silos = cf.Silos.from_arrays([(rng.normal(size=(40, 2)), np.arange(40) % 3) for _ in range(3)])
    found = cf.insight.similarity(silos, resamples=25)
    assert not found.matrices["outcomes"][0, 1] > 0.05
    assert all(np.isfinite(m.matrix[0, 1:]).all() for m in found.measures.values())
    assert (found.matrices["predictions"] <= 1).all()


def test_what_crosses_is_counted_number_by_number(silos):
    found = cf.insight.similarity(silos, resamples=0, common=COMMON)
    one = {name: m.crossings[0] for name, m in found.measures.items()}
    assert (one["models"].up, one["models"].down) == (8 * 4, 0)
    assert (one["gradients"].up, one["gradients"].down) == (8 * 4 * 10, 8 * 4 * 10)
    assert (one["outcomes"].up, one["outcomes"].down) == (8 * 3, 0)
    assert (one["features"].up, one["features"].down) == (8 * 3 * 3, 0)
    assert (one["predictions"].up, one["predictions"].down) == (8 * 30, 8 * 30 * 3)
    assert (one["transfer"].up, one["transfer"].down) == (8 * (4 + 2 + 3), 3 * 8 * (4 + 2))
    drawn = cf.insight.similarity(silos, ["models"], resamples=60).measures["models"].crossings[0]
    assert 8 * 4 < drawn.up <= 8 * (4 + 4 * 4)
    assert set(found.reveals) == set(MEASURES)


def test_without_resamples_nothing_is_said_of_chance(silos):
    found = cf.insight.similarity(silos, ["models", "features"], resamples=0)
    assert np.isnan(found.intervals["models"]).all(where=~np.eye(4, dtype=bool)[:, :, None])
    assert found.map().ellipses == ()
    assert "20 resamples or more" in found.groups().words
    assert "nothing is said of chance" in found.like(0)[0].words[0]
    assert "no intervals" in str(found)


def test_plain_values_hold_all_that_was_found(found):
    told_of = json.loads(found.to_json())
    assert set(told_of) >= {"names", "measures", "combined", "map", "groups", "like", "without"}
    np.testing.assert_allclose(told_of["measures"]["models"]["matrix"], found.matrices["models"])
    assert told_of["measures"]["transfer"]["matrix"][0][0] is None
    assert [o["silo"] for o in told_of["like"]["silo 0"]] == [o.silo for o in found.like("silo 0")]


def test_words_say_in_what_sense_and_what_it_rests_on(found):
    last = found.like("silo 0")[-1]
    assert "models" in last.differs
    assert "outcomes" not in last.differs
    said = " ".join(last.words)
    assert "different by more than chance explains" in said
    assert "the other way" in said
    assert last.words[-1] == "It rests on 60 rows here and 45 rows there."


@pytest.mark.parametrize(("arguments", "words"), [
    ({"measures": ["moods"]}, "there is no 'moods'; there are models, gradients"),
    ({"measures": []}, "name one"),
    ({"resamples": -1}, "resamples"),
    ({"min_group": 0}, "min_group"),
    ({"common": np.ones((3, 7))}, "rows of 3 features"),
    ({"common": np.full((3, 3), np.nan)}, "not finite"),
    ({"common": "rows.csv"}, "no tables"),
])  # fmt: skip
def test_mistakes_are_told(silos, arguments, words):
    with pytest.raises(ValueError, match=words):
        cf.insight.similarity(silos, **arguments)


def test_networks_are_refused(silos):
    with pytest.raises(TypeError, match="similarity needs a model that is linear"):
        cf.insight.similarity(silos, model=cf.models.mlp())


def test_draws_of_rows_belong_to_the_silo():
    counts = counts_of(10, 5, np.random.default_rng(0))
    assert (counts[0] == 1).all()
    assert (counts.sum(axis=1) == 10).all()
