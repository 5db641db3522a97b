"""The data sets: the Titanic's further splits and tasks, and those that scikit-learn brings along."""

import csv
import sys

import jax
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression

import confrere as cf
from confrere.data import splits


@pytest.fixture(scope="module")
def raw(shared_data):
    with (shared_data / "titanic" / "titanic3.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def everybody(silos):
    """All rows of all silos, in some order."""
    return np.concatenate([s.X for s in silos.silos]), np.concatenate([s.y for s in silos.silos])


# Further splits of the Titanic


@pytest.mark.parametrize(
    ("split", "column", "unknown"), [("gender", "sex", None), ("class", "pclass", None), ("port", "embarked", "S")]
)
def test_a_silo_per_value_of_a_column(raw, split, column, unknown):
    silos = cf.data.titanic(split, seed=1)
    values = np.array([row[column] or unknown for row in raw])
    kinds, counts = np.unique(values, return_counts=True)
    assert silos.names == tuple(kinds)
    assert [len(s.y) for s in silos.silos] == counts.tolist()
    rates = [np.mean([row["survived"] == "1" for row, v in zip(raw, values, strict=True) if v == k]) for k in kinds]
    np.testing.assert_allclose([s.y.mean() for s in silos.silos], rates)


def test_the_features_of_a_silo_agree_with_the_column_it_was_split_by():
    for silo, female in zip(cf.data.titanic("gender").silos, (1, 0), strict=True):
        assert (silo.X[:, 1] == female).all()


def test_passengers_of_unknown_age_are_shared_in_proportion():
    silos = cf.data.titanic("age-strict-share-na", seed=3)
    assert silos.names == ("0-20", "21-35", "36+")
    filled = [(np.abs(s.X[:, 8] - 263 / 1309) < 1e-9).sum() for s in silos.silos]
    assert sum(filled) == 263
    np.testing.assert_allclose(filled, 263 * np.array([248, 476, 322]) / 1046, atol=1)


def test_the_papers_split_and_the_general_one_have_the_same_silos():
    paper, general = cf.data.titanic("age-strict"), cf.data.titanic(splits.age_strict())
    assert paper.names == general.names
    for one, two in zip(paper.silos, general.silos, strict=True):
        np.testing.assert_array_equal(np.unique(one.X, axis=0), np.unique(two.X, axis=0))
        assert sorted(one.y) == sorted(two.y)


@pytest.mark.parametrize("split", ["gender", "class", "port", "age-strict-share-na", "age-strict", "age-some", "iid"])
def test_half_of_every_silo_is_for_test(split):
    silos = cf.data.titanic(split, seed=2)
    assert silos.kind == "artificial"
    assert silos.origin == f"Titanic (1309 passengers), dealt out by {split}"
    for silo in silos.silos:
        assert silo.count("test") == 1 + len(silo.y) // 2
        assert silo.count("train") == len(silo.y) - silo.count("test")


def test_the_seed_decides_the_halves():
    one, two, other = (cf.data.titanic("gender", seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one[0].X, two[0].X)
    assert not np.array_equal(one[0].X, other[0].X)


def test_silos_of_passengers_can_be_dealt_out_again_by_what_was_recorded():
    again = cf.data.titanic("gender").divide(splits.age_strict((20, 35)), seed=1)
    assert [len(s.y) for s in again.silos] == [248, 476, 322, 263]
    assert again.origin == "Titanic (1309 passengers), dealt out by gender, dealt out by age_strict"


def test_removing_a_column_removes_every_feature_made_from_it():
    silos = cf.data.titanic(splits.unequal_missingness(2, 1.0, ["age"]), seed=1)
    assert silos.feature_names[-1] == "age=missing"
    train = np.concatenate([s.X[s.part == 0] for s in silos.silos])
    last = silos["b"].X
    gone = last[:, -1] == 1
    assert gone.sum() == (~np.isclose(last[:, 8], 263 / 1309)).sum()  # all whose age had been known
    known = train[train[:, -1] == 0]
    np.testing.assert_allclose(last[gone][:, [7, 8]], np.tile(known[:, [7, 8]].mean(axis=0), (gone.sum(), 1)))
    assert not silos["a"].X[:, -1].any()


# Further tasks on the Titanic


def test_the_age_in_years_is_the_label_of_those_whose_age_is_known(raw):
    silos = cf.data.titanic("class", seed=1, label="age")
    X, y = everybody(silos)
    assert sorted(y) == sorted(float(row["age"]) for row in raw if row["age"])
    assert len(y) == 1046
    features = ("fare", "sex", "embarked_C", "embarked_Q", "travel_alone", "pclass_1", "pclass_2", "survived")
    assert silos.feature_names == features
    assert X[:, -1].sum() == sum(row["survived"] == "1" for row in raw if row["age"])
    assert silos.label_names is None


def test_the_fare_in_pounds_is_the_label_and_the_missing_one_is_left_out(raw):
    silos = cf.data.titanic("age-some", seed=1, label="fare")
    X, y = everybody(silos)
    assert sorted(y) == sorted(float(row["fare"]) for row in raw if row["fare"])
    assert len(y) == 1308
    assert silos.feature_names[0] == "sex"
    assert silos.feature_names[-2:] == ("is_minor", "survived")
    assert silos.sizes("test") == tuple(1 + len(s.y) // 2 for s in silos.silos)
    assert X.shape[1] == 9


@pytest.mark.parametrize("split", ["age-strict", "age-some", "age-strict-share-na"])
def test_a_split_by_age_is_refused_where_age_is_the_label(split):
    with pytest.raises(ValueError, match=f"{split}' gives the label away"):
        cf.data.titanic(split, label="age")


def test_a_split_function_cannot_see_the_label_among_the_columns():
    with pytest.raises(ValueError, match=r"no column 'age'.*survived, fare, sex, pclass, embarked"):
        cf.data.titanic(splits.age_strict(), label="age")
    with pytest.raises(ValueError, match="no column 'fare'"):
        cf.data.titanic(splits.feature_skew(3, "fare"), label="fare")


def test_an_unknown_label_is_refused():
    with pytest.raises(ValueError, match="survived, age, fare, not 'cabin'"):
        cf.data.titanic(label="cabin")


def rmse(predicted, y):
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


@pytest.mark.parametrize("label", ["age", "fare"])
def test_a_regression_with_the_right_shapes_beats_the_mean_in_every_silo(x64, label):
    """The authors' age regression subtracted (B, 1) from (B,), which can learn no more than the mean of the labels."""
    silos = cf.data.titanic("iid", seed=0, label=label)
    recipe = cf.fedsgd(lr=0.3, weights="size")
    train = [s.rows("train") for s in silos.silos]
    best = LinearRegression().fit(*(np.concatenate(both) for both in zip(*train, strict=True)))
    for user in range(4):
        own = silos.for_user(user, others="train")
        run = cf.simulate(recipe, cf.models.linear(), own, 400, user=user, metrics=("rmse",))
        X, y = silos[user].rows("test")
        found = float(np.asarray(run.metrics["rmse"])[-1])
        assert found < 0.95 * y.std()
        assert found == pytest.approx(rmse(best.predict(X), y), rel=0.01)


def test_the_authors_broadcast_learns_the_mean_only():
    """The defect itself, written out: the loss of all pairs of labels and predictions is least at a constant."""
    silos = cf.data.titanic("iid", seed=0, label="age")
    X, y = (jax.numpy.asarray(a) for a in everybody(silos))

    def published(params):
        predicted = X @ params["w"] + params["b"]  # (B, 1)
        return ((y - predicted) ** 2).mean()  # (B, B)

    params = {"w": jax.numpy.zeros((X.shape[1], 1)), "b": jax.numpy.zeros(1)}
    step = lambda _, p: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(published)(p))  # noqa: E731
    params = jax.lax.fori_loop(0, 1500, step, params)
    predicted = np.asarray(X @ params["w"] + params["b"])[:, 0]
    assert rmse(predicted, np.asarray(y)) == pytest.approx(float(y.std()), rel=1e-4)
    assert float(np.abs(params["w"]).max()) < 0.5


# scikit-learn's data sets


@pytest.mark.parametrize(
    ("make", "load", "labels"),
    [(cf.data.breast_cancer, load_breast_cancer, ("malignant", "benign")), (cf.data.diabetes, load_diabetes, None)],
    ids=["breast_cancer", "diabetes"],
)
def test_scikit_learns_rows_standardised_in_artificial_silos(make, load, labels):
    silos, bunch = make(seed=3), load()
    X, y = everybody(silos)
    assert len(silos) == 4
    assert (silos.kind, silos.label_names) == ("artificial", labels)
    assert "standardised over all rows, dealt out by iid" in silos.origin
    assert silos.feature_names == tuple(bunch.feature_names)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(X.std(axis=0, ddof=1), 1)
    assert sorted(y) == sorted(bunch.target)
    scaled = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0, ddof=1)
    key = lambda X, y: sorted(map(tuple, np.round(np.column_stack([X, y]), 8).tolist()))  # noqa: E731
    np.testing.assert_allclose(key(X, y), key(scaled, bunch.target), atol=1e-7)


def test_any_number_of_silos_or_any_split():
    assert len(cf.data.breast_cancer(silos=7)) == 7
    by_age = cf.data.diabetes(split=splits.age_strict((40, 60)))
    assert by_age.names == ("0-40", "41-60", "61+")
    place = by_age.feature_names.index("age")
    assert by_age[0].X[:, place].max() < by_age[1].X[:, place].min()


def test_breast_cancer_can_be_learnt_and_diabetes_beats_the_mean():
    cancer = cf.data.breast_cancer().for_user(0)
    run = cf.simulate(cf.fedsgd(lr=0.5), cf.models.logistic(), cancer, 50, user=0, metrics=("accuracy",))
    assert float(np.asarray(run.metrics["accuracy"])[-1]) > 0.9
    sugar = cf.data.diabetes().for_user(0)
    run = cf.simulate(cf.fedsgd(lr=0.2), cf.models.linear(), sugar, 100, user=0, metrics=("rmse",))
    assert float(np.asarray(run.metrics["rmse"])[-1]) < 0.85 * sugar[0].rows("test")[1].std()


def test_without_scikit_learn_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ModuleNotFoundError, match=r"scikit-learn.*pip install 'confrere\[data\]'"):
        cf.data.breast_cancer()
