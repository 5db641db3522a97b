"""The scikit-learn face: ordinary estimators without silos, personal models with them, routed through scikit-learn."""

import copy
import functools
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import confrere as cf
from confrere.answers import AnswerWarning
from confrere.data import DataWarning
from confrere.estimator.fitting import spare_rows, spare_width, with_spare_features
from confrere.estimator.rows import frame_of, silos_of, tables_of

TRUE = np.array([1.0, -1.0, 0.5])
NAMES = ("a", "b", "c")
FOLDS = KFold(6)  # rows are of silos in turn, so that every fold has its share of each; 50 rows share a program with 60


def hospitals(rows=60, seed=0):
    """Rows of three silos in turn; c's labels are the wrong way round."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * rows, 3))
    silo = np.tile(NAMES, rows)
    y = X @ TRUE + rng.logistic(size=len(X)) > 0
    return X, np.where(y == (silo == "c"), "well", "ill"), silo


def patients(rows=60, seed=0):
    """The same with missing values, categories in text and in codes, and an empty column."""
    X, y, silo = hospitals(rows, seed)
    rng = np.random.default_rng(seed + 1)
    table = pd.DataFrame(X, columns=["age", "pressure", "marker"])
    table.loc[rng.random(len(X)) < 0.2, "pressure"] = np.nan
    table["sex"] = rng.choice(["f", "m"], len(X))
    table["code"] = pd.Categorical(rng.choice([1, 2, 3], len(X)))
    table.loc[5, "sex"] = None
    return table, y, silo


@pytest.fixture(scope="module")
def fitted():
    X, y, silo = hospitals()
    return cf.PersonalizedClassifier().fit(X, y, silo=silo)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("estimator", [cf.PersonalizedClassifier, cf.PersonalizedRegressor])
def test_scikit_learns_own_checks_pass(estimator):
    done = check_estimator(estimator(), on_skip=None)
    assert len(done) > 45
    assert {check["status"] for check in done} <= {"passed", "skipped"}
    skipped = {check["check_name"] for check in done if check["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}


def test_a_model_for_every_silo_is_what_personalise_gives(fitted):
    X, y, silo = hospitals()
    table = pl.DataFrame(X, schema=["x0", "x1", "x2"]).with_columns(y=pl.Series(y), silo=pl.Series(silo))
    silos = cf.Silos.from_table(table, label="y", silo="silo")
    for name in NAMES:
        answer = cf.personalise(silos, name)
        np.testing.assert_allclose(fitted.models_[name].coefficients, answer.model.params["w"], atol=1e-4)
        np.testing.assert_allclose(fitted.models_[name].intercepts, answer.model.params["b"], atol=1e-4)
        assert fitted.weights_[name] == pytest.approx(answer.weights, abs=1e-4)
        assert fitted.relevance_[name] == pytest.approx(answer.relevance, abs=1e-3)
        rows = table.filter(pl.col("silo") == name).drop("y", "silo")
        proba = fitted.predict_proba(rows.to_numpy(), silo=name)
        np.testing.assert_allclose(proba, answer.model.predict_proba(rows), atol=1e-4)


def test_each_row_is_predicted_by_its_silos_model(fitted):
    X, y, silo = hospitals()
    together = fitted.predict_proba(X, silo=silo)
    for name in NAMES:
        np.testing.assert_array_equal(together[silo == name], fitted.predict_proba(X[silo == name], silo=name))
    assert fitted.score(X, y, silo=silo) == (fitted.predict(X, silo=silo) == y).mean() > 0.65
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert not np.allclose(fitted.predict_proba(X[:1], silo="a"), fitted.predict_proba(X[:1], silo="c"), atol=0.1)


def test_it_says_what_was_chosen_whom_it_listened_to_and_when(fitted):
    assert list(fitted.models_) == list(fitted.algorithm_) == list(fitted.weights_) == list(NAMES)
    assert fitted.algorithm_["a"].startswith("auto (evidence-weighted borrowing): ")
    assert "unrelated" in fitted.algorithm_["a"]
    assert fitted.relevance_["a"]["c"] < 0.3 < fitted.relevance_["a"]["b"]


@pytest.mark.slow
def test_the_history_is_that_of_the_exchange_and_counts_what_was_sent(fitted):
    history = fitted.history_["a"]
    assert history.algorithm == "evidence"
    assert history.bytes_up[:, 0].sum() == 0 < history.bytes_up[:, 1].sum()
    D = 4  # features and intercept: h, the upper half of H, then n, the loss and the silo's number
    assert history.bytes_up[0, 1] == 4 * (D + D * (D + 1) // 2 + 3)
    np.testing.assert_allclose(history.personal("a")["w"], fitted.models_["a"].coefficients, atol=1e-3)
    assert fitted.history_["a"] is history


def test_a_user_gets_its_own_model_alone(fitted):
    X, y, silo = hospitals()
    own = cf.PersonalizedClassifier(user="b").fit(X, y, silo=silo)
    assert list(own.models_) == ["b"]
    np.testing.assert_array_equal(own.predict_proba(X), fitted.predict_proba(X, silo="b"))


def test_silos_may_be_numbers():
    X, y, silo = hospitals()
    numbered = cf.PersonalizedClassifier(user=2).fit(X, y, silo=np.searchsorted(NAMES, silo) + 1.0)
    assert list(numbered.models_) == ["2"]
    assert list(numbered.weights_["2"]) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda m, X, y, s: m.predict(X), "for each of a, b, c: say whose rows these are with silo="),
        (lambda m, X, y, s: m.predict(X[:2], silo=["a", "z"]), r"no model for the silo 'z' \(row 1.*a, b, c"),
        (lambda m, X, y, s: m.predict(X[:2], silo=["a"]), "one name for each of the 2 rows"),
        (lambda m, X, y, s: m.predict(X[:2], silo=["a", None]), "row 1 .* has no silo"),
        (lambda m, X, y, s: m.predict(X[:, :2], silo=s), "2 features.* expecting 3"),
        (lambda m, X, y, s: m.predict([[0, np.inf, 0]], silo="a"), "infinity"),
        (lambda m, X, y, s: clone(m).set_params(user="z").fit(X, y, silo=s), "user 'z' is none of the silos: a, b, c"),
        (lambda m, X, y, s: clone(m).set_params(user="a").fit(X, y), "give silo="),
        (lambda m, X, y, s: clone(m).set_params(algorithm="fedmagic").fit(X, y, silo=s), "no algorithm 'fedmagic'"),
        (lambda m, X, y, s: clone(m).fit(X, y, silo=s[:-1]), "one name for each of the 180 rows"),
        (lambda m, X, y, s: clone(m).fit(X, np.full(len(y), "ill"), silo=s), "only one class, ill"),
        (lambda m, X, y, s: clone(m).fit(X, [None, *y[1:]], silo=s), "y contains None"),
        (lambda m, X, y, s: clone(m).fit(X, y).predict(X, silo=s), "fitted without silo="),
        (lambda m, X, y, s: cf.PersonalizedRegressor().fit(X, y, silo=s), "y must hold numbers"),
        (lambda m, X, y, s: clone(m).fit(pd.DataFrame(X)[:0], y[:0]), "0 rows"),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(fitted, make, said):
    with pytest.raises(ValueError, match=said):
        make(fitted, *hospitals())


def test_alone_it_is_the_ridge_optimum():
    X, y, _ = hospitals()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = cf.PersonalizedClassifier().fit(X, y)
    exact = ridge_by_newton(X, y == "well")
    w, b = ours.models_["all"].coefficients, ours.models_["all"].intercepts
    np.testing.assert_allclose(np.append(w[:, 1] - w[:, 0], b[1] - b[0]), exact, atol=1e-4)
    assert ours.weights_ == {"all": {"all": 1.0}}
    assert "no other silo" in ours.algorithm_["all"]


def ridge_by_newton(X, positive, iterations=50):
    """The minimum of the log-loss + 1/2 |w|^2 + 0.1/2 b^2, in double precision."""
    Z = np.column_stack([X, np.ones(len(X))])
    A, theta = np.diag([1.0] * X.shape[1] + [0.1]), np.zeros(X.shape[1] + 1)
    for _ in range(iterations):
        p = 1 / (1 + np.exp(-Z @ theta))
        theta = theta - np.linalg.solve((Z.T * (p * (1 - p))) @ Z + A, Z.T @ (p - positive) + A @ theta)
    return theta


def test_a_regression_alone_finds_its_line_and_keeps_its_units():
    X, _, _ = hospitals()
    y = 500 + 100 * X @ TRUE + np.random.default_rng(1).normal(size=len(X))
    model = cf.PersonalizedRegressor().fit(X, y)
    assert model.score(X, y) > 0.999
    np.testing.assert_allclose(model.predict(np.eye(3)) - model.predict(np.zeros((1, 3))), 100 * TRUE, atol=1)
    constant = cf.PersonalizedRegressor().fit(X, np.full(len(X), 7.0))
    np.testing.assert_allclose(constant.predict(X), 7, atol=1e-3)


@pytest.mark.slow
def test_a_regression_borrows_where_its_own_rows_leave_room():
    X, _, silo = hospitals()
    noise = 150 * np.random.default_rng(1).normal(size=len(X))
    model = cf.PersonalizedRegressor().fit(X, 500 + 100 * X @ TRUE + noise, silo=silo)
    assert model.weights_["a"]["b"] > 0.2
    slopes = lambda m, **silo: m.predict(np.eye(3), **silo) - m.predict(np.zeros((3, 3)), **silo)  # noqa: E731
    own = silo == "a"
    alone = cf.PersonalizedRegressor().fit(X[own], (500 + 100 * X @ TRUE + noise)[own])
    error = np.linalg.norm(slopes(model, silo="a") - 100 * TRUE)
    assert error < np.linalg.norm(slopes(alone) - 100 * TRUE)


def test_labels_may_be_of_any_kind():
    X, y, _ = hospitals()
    expected = cf.PersonalizedClassifier().fit(X, y).predict(X) == "well"
    for labels in (
        y == "well",
        np.where(y == "well", 7, -3),
        np.where(y == "well", 2.0, 1.0),
        y.astype(object).tolist(),
    ):
        model = cf.PersonalizedClassifier().fit(X, labels)
        np.testing.assert_array_equal(model.predict(X) == model.classes_[1], expected)
        assert model.predict(X).dtype == model.classes_.dtype == np.asarray(labels).dtype
        assert set(model.classes_.tolist()) == set(np.asarray(labels).tolist())


def test_three_classes_alone():
    X, _, _ = hospitals()
    y = np.select([X[:, 0] > 0.5, X[:, 1] > 0], ["red", "green"], "blue")
    model = cf.PersonalizedClassifier().fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.predict_proba(X).shape == (len(X), 3)


@pytest.mark.slow
def test_three_classes_of_which_a_silo_lacks_one():
    X, _, silo = hospitals()
    y = np.select([X[:, 0] > 0.5, X[:, 1] > 0], ["red", "green"], "blue")
    kept = (silo != "a") | (y != "red")
    model = cf.PersonalizedClassifier().fit(X[kept], y[kept], silo=silo[kept])
    assert model.score(X[kept], y[kept], silo=silo[kept]) > 0.8
    assert model.predict_proba(X, silo="a").shape == (len(X), 3)


def test_a_silo_of_one_class_borrows_the_rest():
    X, y, silo = hospitals()
    y = np.where(silo == "a", "well", y)
    with pytest.warns(AnswerWarning, match="a has fewer than two rows outside its most frequent class") as told:
        model = cf.PersonalizedClassifier().fit(X, y, silo=silo)
    said = [str(w.message) for w in told] + list(model.algorithm_.values())
    assert not [text for text in said if "prevalence" in text]  # the estimators have no such argument
    proba = model.predict_proba(X, silo=silo)
    assert np.isfinite(proba).all()
    assert (model.predict(X[silo == "a"], silo="a") == "well").mean() > 0.9
    assert model.score(X[silo == "b"], y[silo == "b"], silo="b") > 0.65


def test_tables_with_gaps_and_categories_are_encoded_as_the_intake_does():
    table, y, silo = patients()
    model = cf.PersonalizedClassifier(user="a").fit(table, y, silo=silo)
    silos = cf.Silos.from_table(table.assign(y=y, silo=silo), label="y", silo="silo", categorical="code")
    assert model.models_["a"].feature_names == silos.feature_names
    assert {"pressure=missing", "sex=m", "sex=missing", "code=1", "code=3"} <= set(silos.feature_names)
    answer = cf.personalise(silos, "a")
    np.testing.assert_allclose(model.models_["a"].coefficients, answer.model.params["w"], atol=2e-4)
    np.testing.assert_allclose(model.predict_proba(table), answer.model.predict_proba(table), atol=2e-4)
    assert model.feature_names_in_.tolist() == ["age", "pressure", "marker", "sex", "code"]
    assert model.n_features_in_ == 5


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda table: pl.from_pandas(table).to_arrow()])
def test_all_kinds_of_tables_give_the_same(kind):
    table, y, _ = patients()
    table["code"] = table["code"].astype(str).astype("category")  # polars makes numbers of pandas' codes
    one = cf.PersonalizedClassifier().fit(table, y)
    assert "code=1" in one.models_["all"].feature_names
    other = cf.PersonalizedClassifier().fit(kind(table), y)
    np.testing.assert_array_equal(one.predict_proba(table), other.predict_proba(kind(table)))


def test_an_array_is_a_table_without_names():
    X, y, _ = hospitals()
    X[3, 1] = np.nan
    array = cf.PersonalizedClassifier().fit(X, y)
    table = cf.PersonalizedClassifier().fit(pd.DataFrame(X, columns=["age", "pressure", "marker"]), y)
    assert array.models_["all"].feature_names == ("x0", "x1", "x1=missing", "x2")
    np.testing.assert_array_equal(array.models_["all"].coefficients, table.models_["all"].coefficients)
    assert not hasattr(array, "feature_names_in_")


def test_a_value_that_was_never_missing_or_seen_is_taken_as_the_mean():
    table, y, _ = patients()
    model = cf.PersonalizedClassifier().fit(table[["age", "code"]].assign(age=table.age + 3), y)
    odd = pd.DataFrame({"age": [np.nan, table.age.mean() + 3], "code": pd.Categorical([9, 9])})
    with pytest.warns(DataWarning, match=r"'code' has level\(s\) that no training row had, '9'"):
        gap, mean = model.predict_proba(odd)
    np.testing.assert_allclose(gap, mean, atol=1e-12)


def test_a_cell_of_new_rows_that_is_no_number_is_refused():
    table, y, _ = patients()
    model = cf.PersonalizedClassifier().fit(table[["age", "code"]], y)
    odd = pd.DataFrame({"age": ["high"], "code": pd.Categorical([1])})
    with pytest.raises(ValueError, match=r"column 'age', row 0 .*'high' is no number: mend the cell, or leave the row"):
        model.predict(odd)


def test_columns_that_cannot_be_features_are_left_out_with_a_warning():
    table, y, _ = patients()
    table["born"] = pd.date_range("1950-01-01", periods=len(table)).strftime("%Y-%m-%d")
    table["name"] = [f"patient {i}" for i in range(len(table))]
    table["ward"] = "west"
    with pytest.warns(DataWarning) as told:
        model = cf.PersonalizedClassifier().fit(table, y)
    assert [("born" in str(w.message), "name" in str(w.message)) for w in told] == [(True, False), (False, True)]
    assert {w.filename for w in told} == {__file__}
    assert not [n for n in model.models_["all"].feature_names if n.startswith(("born", "name"))]
    assert model.n_features_in_ == 8
    constant = "column 'ward' has the same value in all rows and is left out"
    assert model.notes_ == (*(str(w.message) for w in told), constant)


def test_a_column_that_is_text_in_one_silo_and_digits_in_another_is_a_category():
    X, y, silo = hospitals()
    table = pd.DataFrame({"age": X[:, 0], "ward": np.where(silo == "a", "1", np.where(X[:, 1] > 0, "x", "2"))})
    tables = tables_of(frame_of(table), (), (y == "ill") * 1, ["well", "ill"])
    assert silos_of(tables, silo).feature_names == ("age", "ward=1", "ward=2", "ward=x")


def test_a_pickle_predicts_the_same_and_holds_no_rows(fitted):
    X, _, silo = hospitals()
    kept = pickle.dumps(fitted)
    again = pickle.loads(kept)
    np.testing.assert_array_equal(again.predict_proba(X, silo=silo), fitted.predict_proba(X, silo=silo))
    assert again.weights_ == fitted.weights_
    assert X[0].tobytes() not in kept
    assert len(kept) < 20_000
    with pytest.raises(AttributeError, match="not kept in a pickle"):
        _ = again.history_


def test_a_clone_is_unfitted_and_has_the_parameters():
    model = clone(cf.PersonalizedClassifier(user="a", algorithm="fedavg", random_state=3))
    assert model.get_params() == {"user": "a", "algorithm": "fedavg", "random_state": 3}
    assert not hasattr(model, "models_")


def test_silos_reach_the_model_in_a_pipeline(routing, fitted):
    X, y, silo = hospitals()
    model = cf.PersonalizedClassifier().set_fit_request(silo=True).set_predict_request(silo=True)
    model.set_score_request(silo=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y, silo=silo)
    np.testing.assert_array_equal(pipeline.predict(X, silo=silo), fitted.predict(X, silo=silo))
    assert pipeline.score(X, y, silo=silo) == fitted.score(X, y, silo=silo)


def test_silos_reach_the_model_in_cross_validation(routing):
    X, y, silo = hospitals()
    model = cf.PersonalizedClassifier().set_fit_request(silo=True).set_score_request(silo=True)
    found = cross_validate(model, X, y, cv=FOLDS, params={"silo": silo}, return_estimator=True)
    for (train, test), one, score in zip(FOLDS.split(X), found["estimator"], found["test_score"], strict=True):
        assert list(one.models_) == list(NAMES)
        assert score == one.score(X[test], y[test], silo=silo[test])
        assert len(train) == 150


class ScoredByLogLoss(cf.PersonalizedClassifier):
    """As in the documentation: the score of one's own."""

    def score(self, X, y, sample_weight=None, silo=None):
        return -log_loss(y, self.predict_proba(X, silo=silo), sample_weight=sample_weight, labels=self.classes_)


def test_a_score_of_ones_own_sees_the_silos_and_scorers_by_name_do_not(routing):
    X, y, silo = hospitals()
    model = ScoredByLogLoss(algorithm="ridge_local").set_fit_request(silo=True).set_score_request(silo=True)
    asked = {"cv": KFold(2), "params": {"silo": silo}, "error_score": "raise"}
    found = cross_validate(model, X, y, return_estimator=True, **asked)
    for (_, test), one, score in zip(KFold(2).split(X), found["estimator"], found["test_score"], strict=True):
        chance = np.array([one.predict_proba(X[[i]], silo=silo[i])[0, list(one.classes_).index(y[i])] for i in test])
        assert score == pytest.approx(np.log(chance).mean())
    model.set_predict_proba_request(silo=True)
    with pytest.raises(ValueError, match="say whose rows these are with silo="):
        cross_validate(model, X, y, scoring="neg_log_loss", **asked)


@pytest.mark.slow
def test_folds_that_leave_a_silo_out_of_training_are_told_so_and_stratified_ones_are_fine(routing):
    X, y, silo = (part[np.argsort(hospitals()[2], kind="stable")] for part in hospitals())
    model = cf.PersonalizedClassifier(algorithm="ridge_local").set_fit_request(silo=True).set_score_request(silo=True)
    with pytest.raises(ValueError, match="In cross-validation, let every fold train on rows of each silo"):
        cross_validate(model, X, y, cv=KFold(3), params={"silo": silo}, error_score="raise")
    strata = [f"{one} {label}" for one, label in zip(silo, y, strict=True)]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, strata))
    found = cross_validate(model, X, y, cv=folds, params={"silo": silo}, error_score="raise")
    assert (found["test_score"] > 0.6).all()


def test_the_rounds_of_a_silo_are_made_only_when_asked_for(fitted):
    made = []
    model = copy.copy(fitted)
    model._rounds = {name: functools.partial(made.append, name) for name in NAMES}
    assert list(model.history_) == list(NAMES)
    assert "c" in model.history_
    assert made == []
    _ = model.history_["b"]
    assert made == ["b"]


def test_silos_reach_the_model_in_a_search(routing):
    X, y, silo = hospitals()
    model = cf.PersonalizedClassifier().set_fit_request(silo=True).set_score_request(silo=True)
    search = GridSearchCV(model, {"user": ["a", None]}, cv=FOLDS).fit(X, y, silo=silo)
    assert search.best_params_ == {"user": None}  # c's labels are the wrong way round, so a's model will not do for it
    assert list(search.best_estimator_.models_) == list(NAMES)
    assert len(search.best_estimator_.predict(X[:3], silo=silo[:3])) == 3


@pytest.mark.slow
def test_a_named_algorithm_is_tuned_and_drawn_from_the_random_state():
    X, y, silo = hospitals()
    one, two = (cf.PersonalizedClassifier("a", "weight_erosion", random_state=s).fit(X, y, silo=silo) for s in (1, 1))
    np.testing.assert_array_equal(one.models_["a"].coefficients, two.models_["a"].coefficients)
    assert one.algorithm_["a"].startswith("weight_erosion: As asked, weight_erosion with lr")
    assert one.history_["a"].algorithm == "weight_erosion"


def test_shapes_are_few_and_spare_features_are_zero():
    assert [spare_rows(n) for n in (1, 64, 65, 4096, 5000)] == [64, 64, 512, 4096, 5120]
    assert [spare_width(d) for d in (1, 5, 17, 65)] == [4, 16, 64, 80]
    silos = cf.Silos.from_arrays([(np.ones((4, 3)), [0, 1, 0, 1])])
    wide = with_spare_features(silos)
    assert wide.silos[0].X.sum() == silos.silos[0].X.sum()
    assert len(wide.feature_names) == len(set(wide.feature_names)) == wide.silos[0].X.shape[1] == 4


def test_without_scikit_learn_the_names_say_what_to_install():
    code = """
import sys
sys.modules["sklearn"] = None
from confrere import *
import confrere as cf
assert "confrere[sklearn]" in cf.PersonalizedRegressor.__doc__
try:
    PersonalizedClassifier()
except ImportError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "PersonalizedClassifier needs scikit-learn: pip install 'confrere[sklearn]'\n", done.stderr


def test_a_level_that_no_training_row_had_is_warned_about_by_name():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.normal(60, 10, 80), "sex": rng.choice(["f", "m"], 80)})
    model = cf.PersonalizedClassifier().fit(rows, (rows["age"] > 60).astype(int))
    with pytest.warns(DataWarning, match=r"'sex' has level\(s\) that no training row had, 'x'") as caught:
        model.predict(rows.head(3).assign(sex=["x", "x", "m"]))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match=r"column 'sex' lacks values, as no training row did"):
        model.predict(rows.head(3).assign(sex=["f", None, "m"], age=[np.nan, 60, 50]))
