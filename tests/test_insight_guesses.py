"""A clinician's guesses: the score (8.11), and training that heeds them (8.12), against closed forms."""

import json
import re

import numpy as np
import polars as pl
import pytest

import confrere as cf
from confrere.answers import Predictor
from confrere.insight.explanations.guided import as_rows, guess_loss
from confrere.networks import GTVMin, Network, explainability, explainable

SLOPES = np.array([1.0, -2.0])


def amounts(rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2, rows, 2))
    return cf.Silos.from_arrays([(x, x @ SLOPES + 0.3 * rng.normal(size=rows)) for x in X], names=["a", "b"])


def classes(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3, rows, 2))
    return cf.Silos.from_arrays([(x, x @ SLOPES + rng.logistic(size=rows) > 0) for x in X], names=["a", "b", "c"])


def expected(task, slopes=(-1.0, 1.0), rows=8, seed=5):
    """Guesses of somebody who sees things the other way round."""
    X = np.random.default_rng(seed).normal(size=(rows, 2))
    z = X @ np.asarray(slopes)
    return cf.insight.Guesses.of(X, z if task == "amounts" else 1 / (1 + np.exp(-z)), 2 if task == "classes" else None)


def test_the_score_of_a_linear_model_is_that_of_the_book():
    silos, guesses = amounts(), expected("amounts")
    model = cf.personalise(silos, "a").model
    w = np.concatenate([np.asarray(model.params["w"])[:, 0], np.asarray(model.params["b"])])
    rows = np.column_stack([guesses.X, np.ones(len(guesses))])
    found = cf.insight.agreement(model, guesses)
    assert found.score == pytest.approx(explainability([w], [rows], [guesses.said])[0], rel=1e-4)
    assert found.low < found.score < found.high
    assert found.same is None
    itself = cf.insight.Guesses(guesses.X, model.predict(guesses.X))
    assert cf.insight.agreement(model, itself).score == 0


@pytest.mark.parametrize("rho", [0.0, 0.5, 20.0])
def test_training_alone_with_guesses_ends_at_the_closed_form_of_the_book(rho):
    silos, guesses = amounts(), expected("amounts")
    model = cf.insight.guided(cf.models.linear(), guesses, rho)
    history = cf.simulate(cf.local(lr=0.3, batch=None, steps=1), model, cf.insight.flagged(silos, 0), 400, metrics=())
    ones = lambda X: np.column_stack([X, np.ones(len(X))])  # noqa: E731
    problem = GTVMin(
        Network.from_edges([[0, 1]], 2), X=[ones(s.X) for s in silos.silos], y=[s.y for s in silos.silos], alpha=0
    )
    closed = explainable(problem, [ones(guesses.X), np.zeros((0, 3))], [guesses.said, np.zeros(0)], rho).closed_form()
    for place, silo in enumerate(silos.names):  # the other silo is left as it is
        found = history.personal(silo)
        assert np.concatenate([found["w"][:, 0], found["b"]]) == pytest.approx(closed[place], abs=2e-3)


def test_guesses_without_weight_change_nothing():
    silos, guesses = classes(), expected("classes")
    recipe = cf.weight_erosion(user="a", lr=0.5)
    plain = cf.simulate(recipe, cf.models.logistic("zero"), silos, 10, metrics=())
    model = cf.insight.guided(cf.models.logistic("zero"), guesses, 0.0)
    heeding = cf.simulate(recipe, model, cf.insight.flagged(silos, 0), 10, metrics=())
    assert np.allclose(plain.personal("a")["w"], heeding.personal("a")["w"], atol=1e-6)
    one, two = cf.personalise(silos, "a"), cf.personalise(silos, "a", guesses=guesses, guess_weight=0)
    assert (np.asarray(one.model.params["w"]) == np.asarray(two.model.params["w"])).all()


@pytest.mark.filterwarnings("ignore:a. on held-out rows")  # guesses that are wrong make a model that is
@pytest.mark.parametrize(("algorithm", "model", "task"), [
    ("auto", None, "classes"), (cf.weight_erosion(user="a", lr=1.0, p_d=0.2), None, "classes"),
    pytest.param("auto", None, "amounts", marks=pytest.mark.slow),
    pytest.param(cf.local(lr=1.0, steps=5), None, "classes", marks=pytest.mark.slow),
    pytest.param(cf.local(lr=0.3, steps=20), cf.models.mlp([4], "regression"), "amounts", marks=pytest.mark.slow),
])  # fmt: skip
def test_the_heavier_guesses_weigh_the_nearer_the_model_comes_to_them(algorithm, model, task):
    silos, guesses = (classes if task == "classes" else amounts)(), expected(task)
    score = {}
    for weight in (0, 1, 1000):
        answer = cf.personalise(silos, "a", algorithm, model, guesses=guesses, guess_weight=weight, rounds=60)
        score[weight] = cf.insight.agreement(answer.model, guesses).score
    assert score[0] > score[1] > score[1000]
    assert score[1000] < 0.02 * score[0]
    assert "heeds 8 guesses" in " ".join(answer.notes)
    assert answer.model.feature_names == silos.feature_names


def test_guesses_as_rows_weigh_rho_times_the_rows_together():
    guesses = expected("classes")
    rows = as_rows(guesses, 0.5, 60, "classification")
    assert float(rows.weight.sum()) == pytest.approx(30)
    params = {"w": np.array([[0.1, -0.2], [0.3, 0.4]], np.float32), "b": np.zeros(2, np.float32)}
    z = np.asarray(rows.X) @ np.vstack([params["w"], params["b"]])
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    loss = -(np.asarray(rows.weight) * np.log(p[np.arange(len(p)), np.asarray(rows.y)])).sum()
    own = guess_loss(cf.models.logistic(), params, guesses.X, guesses.said)
    assert loss == pytest.approx(0.5 * 60 * float(own), rel=1e-5)


def test_guesses_are_read_from_csv_and_json_with_names_of_classes_or_probabilities(tmp_path):
    table = pl.DataFrame({
        "age": np.arange(40.0), "sex": ["f", "m"] * 20, "ill": ["no", "yes", "yes", "no"] * 10,
        "clinic": ["a"] * 20 + ["b"] * 20,
    })  # fmt: skip
    silos = cf.Silos.from_table(table, label="ill", silo="clinic")
    model = Predictor.of(cf.models.logistic(), [], silos, 0)
    pl.DataFrame({"age": [3, 30], "sex": ["f", "m"], "guess": ["no", "0.25"]}).write_csv(tmp_path / "g.csv")
    (tmp_path / "g.json").write_text(
        json.dumps([{"age": 3, "sex": "f", "guess": "no"}, {"age": 30, "sex": "m", "guess": 0.25}])
    )
    for name in ("g.csv", "g.json"):
        found = cf.insight.read_guesses(tmp_path / name, model, 2)
        assert found.said.tolist() == [[1.0, 0.0], [0.75, 0.25]]
        assert found.X.shape == (2, len(silos.feature_names))
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ValueError, match="list of objects"):
        cf.insight.read_guesses(tmp_path / "bad.json", model, 2)
    with pytest.raises(ValueError, match="no column 'guess'"):
        cf.insight.read_guesses(pl.DataFrame({"age": [3], "sex": ["f"]}), model, 2)
    with pytest.raises(ValueError, match=r"row 1 .* has no guess"):
        cf.insight.read_guesses(pl.DataFrame({"age": [3, 4], "sex": ["f", "f"], "guess": [0.5, None]}), model, 2)


@pytest.mark.parametrize(("case", "words"), [
    ("60,120,f,1.5", "case 0 .* the guess '?1.5'? must be a probability"),
    ("60,,f,0.5", "column 'bp', row 0 .* missing"),
    ("old,120,f,0.5", "column 'age', row 0 .* 'old' is no number"),
    ("60,120,x,0.5", "column 'sex', row 0 .* no level"),
])  # fmt: skip
def test_mistakes_in_a_file_of_guesses_are_told_with_its_name(tmp_path, case, words):
    table = pl.DataFrame({
        "age": np.arange(40.0), "bp": np.arange(40.0) % 7, "sex": ["f", "m"] * 20, "ill": ["no", "yes"] * 20,
        "clinic": ["north"] * 20 + ["south"] * 20,
    })  # fmt: skip
    model = Predictor.of(cf.models.logistic(), [], cf.Silos.from_table(table, label="ill", silo="clinic"), 0)
    file = tmp_path / "cases.csv"
    file.write_text(f"age,bp,sex,guess\n{case}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{re.escape(str(file))}: {words}"):
        cf.insight.read_guesses(file, model, 2)
    file.write_text("age,sex,guess\n60,f,0.5\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^.*cases.csv: the table lacks the column\(s\) 'bp'"):
        cf.insight.read_guesses(file, model, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_case_with_a_feature_that_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=rf"case 1 \(counted from 0\): feature 0 is {value:g}: fill it in"):
        cf.insight.Guesses.of([[1, 2, 3.0], [value, 2, 3.0]], [0.1, 0.2], classes=2)


@pytest.mark.parametrize(("said", "number", "words"), [
    ([1.5], 2, "between 0 and 1"), (["ill"], 2, "must be a probability"), (["3"], 3, "must be one of 0, 1, 2"),
    (["much"], None, "is no number"), ([], None, "no guess"), ([1.0, 2.0], None, "one guess per case"),
])  # fmt: skip
def test_guesses_that_cannot_be_are_refused(said, number, words):
    with pytest.raises(ValueError, match=words):
        cf.insight.Guesses.of(np.zeros((min(len(said), 1), 2)), said, number)


def test_an_algorithm_that_cannot_heed_guesses_says_so():
    silos = classes()
    with pytest.raises(ValueError, match="ridge_local cannot heed guesses"):
        cf.personalise(silos, "a", "ridge_local", guesses=expected("classes"))
    with pytest.raises(ValueError, match="labels are 2 classes"):
        cf.personalise(silos, "a", guesses=expected("amounts"))
    three = cf.insight.Guesses.of([[0.0, 0.0]], [2], classes=3)
    assert three.said.tolist() == [[0, 0, 1]]
