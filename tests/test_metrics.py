"""Metrics against scikit-learn, with ties and padding; every metric is defined for every silo."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

import confrere as cf
from confrere.models.metrics import METRICS, metrics_of

POOL = {  # rows of scores to draw from, so that two of them are tied exactly or not at all
    2: np.random.default_rng(2).permutation(np.arange(16.0)).reshape(8, 2) / 2,
    3: np.random.default_rng(3).normal(scale=2, size=(8, 3)),
}
ROWS = 16  # one shape for all examples, so that each metric is compiled once per number of classes


@functools.cache
def compiled(name):
    return jax.jit(METRICS[name])


def score(name, scores, y, live=None):
    """A metric of the live rows, NaN in all others."""
    live = np.ones(len(y), bool) if live is None else live
    scores = np.where(live[:, None], scores, np.nan).astype(np.float32)
    return float(compiled(name)(scores, np.asarray(y, np.int32), live))


@st.composite
def rows(draw, classes):
    """Scores out of a small pool, so that ties are common; labels; and which rows are live."""
    scores = POOL[classes][draw(st.lists(st.integers(0, 7), min_size=ROWS, max_size=ROWS))]
    y = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=ROWS, max_size=ROWS)))
    live = np.arange(ROWS) < draw(st.integers(1, ROWS))
    return scores, y, live


any_rows = given(st.one_of(rows(2), rows(3)))


def areas(scores, y):
    """One AUROC per class for which both kinds of rows occur."""
    if scores.shape[1] == 2:
        columns = {1: scores[:, 1] - scores[:, 0]}
    else:
        columns = dict(enumerate(scipy.special.softmax(scores.astype(np.float32), axis=1).T))
    members = {k: y == k for k in columns}
    return [sklearn.metrics.roc_auc_score(members[k], columns[k]) for k in columns if 0 < members[k].sum() < len(y)]


@any_rows
def test_accuracy_is_that_of_scikit_learn(drawn):
    scores, y, live = drawn
    expected = sklearn.metrics.accuracy_score(y[live], scores[live].argmax(axis=1))
    assert score("accuracy", *drawn) == pytest.approx(expected, abs=1e-6)


@any_rows
def test_balanced_accuracy_is_the_mean_recall_of_the_classes_that_occur(drawn):
    scores, y, live = drawn
    found, label = scores[live].argmax(axis=1), y[live]
    expected = sklearn.metrics.recall_score(label, found, labels=np.unique(label), average="macro", zero_division=0)
    assert score("balanced_accuracy", *drawn) == pytest.approx(expected, abs=1e-6)


@any_rows
def test_log_loss_is_that_of_scikit_learn(drawn):
    scores, y, live = drawn
    chances = scipy.special.softmax(scores[live], axis=1)
    expected = sklearn.metrics.log_loss(y[live], chances, labels=np.arange(scores.shape[1]))
    assert score("log_loss", *drawn) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@settings(max_examples=200)
@any_rows
def test_auroc_is_that_of_scikit_learn_and_a_half_where_that_is_undefined(drawn):
    scores, y, live = drawn
    known = areas(scores[live], y[live])
    expected = np.mean(known) if known else 0.5
    assert score("auroc", *drawn) == pytest.approx(expected, abs=1e-6)


@any_rows
def test_brier_is_that_of_scikit_learn(drawn):
    scores, y, live = drawn
    chances, classes = scipy.special.softmax(scores[live], axis=1), np.arange(scores.shape[1])
    expected = np.square(chances - np.eye(len(classes))[y[live]]).sum(axis=1).mean()
    if len(classes) == 2:
        expected = sklearn.metrics.brier_score_loss(y[live] == 1, chances[:, 1], pos_label=True)
    assert score("brier", *drawn) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@given(rows(2))
def test_rmse_is_that_of_scikit_learn(drawn):
    scores, _, live = drawn
    predicted, y = scores[:, :1], scores[:, 1]
    expected = sklearn.metrics.root_mean_squared_error(y[live], predicted[live, 0])
    hidden = [np.where(mask, a, np.nan).astype(np.float32) for mask, a in ((live[:, None], predicted), (live, y))]
    assert float(compiled("rmse")(*hidden, live)) == pytest.approx(expected, rel=1e-5, abs=1e-6)


# Where textbooks leave a gap

NOBODY = {"accuracy": 0, "balanced_accuracy": 0, "log_loss": 0, "auroc": 0.5, "brier": 0, "rmse": 0}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_silo_without_rows_has_a_defined_score(name, classes):
    found = score(name, np.ones((ROWS, classes)), np.zeros(ROWS), np.zeros(ROWS, bool))
    assert found == NOBODY[name]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("label", [0, 1])
def test_a_silo_of_one_class_has_defined_scores(classes, label):
    scores = np.zeros((ROWS, classes))
    scores[: ROWS // 4, label] = 1
    scores[ROWS // 4 :, 1 - label] = 1
    y = np.full(ROWS, label)
    assert score("accuracy", scores, y) == score("balanced_accuracy", scores, y) == 0.25
    assert score("auroc", scores, y) == 0.5
    assert 0 < score("log_loss", scores, y) < 2


@pytest.mark.parametrize("classes", [2, 3])
def test_auroc_is_one_for_perfect_scores_and_a_half_for_constant_ones(classes):
    y = np.arange(ROWS) % classes
    assert score("auroc", np.eye(classes)[y], y) == 1
    assert score("auroc", np.zeros((ROWS, classes)), y) == 0.5


def test_auroc_tells_scores_apart_where_probabilities_cannot():
    y = np.arange(ROWS) % 2
    scores = np.stack([np.zeros(ROWS), 100 + y], axis=1)  # both round to probability one
    assert score("auroc", scores, y) == 1


def test_auroc_of_a_large_silo_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = np.arange(100_000) % 2  # 2.5e9 pairs: more than an int32 can count
    scores = np.stack([np.zeros(len(y)), y + rng.normal(size=len(y))], axis=1).astype(np.float32)
    assert score("auroc", scores, y) == pytest.approx(sklearn.metrics.roc_auc_score(y, scores[:, 1]), abs=1e-5)


def test_metrics_are_in_double_precision_where_the_computation_is(x64):
    scores, y = np.array([[0.0, 1 / 3], [0.0, -0.2], [0.0, 0.7]]), np.array([1, 0, 0])
    chances = scipy.special.softmax(scores, axis=1)
    found = METRICS["log_loss"](jnp.asarray(scores), jnp.asarray(y), jnp.ones(3, bool))
    assert float(found) == pytest.approx(sklearn.metrics.log_loss(y, chances), rel=1e-12)


def test_each_task_has_metrics_of_its_own():
    assert metrics_of("regression") == ("rmse",)
    assert set(metrics_of("classification")) == set(METRICS) - {"rmse"}


# Over several silos


def test_over_silos_metrics_are_weighted_by_rows():
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(rows, 2)), np.arange(rows) % 2) for rows in (40, 4, 9)]
    silos = cf.Silos.from_arrays(pairs).split(0.5, seed=3)
    history = cf.simulate(cf.local(lr=2.0), cf.models.logistic(), silos, rounds=3)
    tests = [s.rows("test") for s in silos.silos]
    sizes = np.array([len(y) for _, y in tests])
    scores = [X @ history.personal(i)["w"] + history.personal(i)["b"] for i, (X, _) in enumerate(tests)]
    right = [(s.argmax(axis=1) == y).mean() for s, (_, y) in zip(scores, tests, strict=True)]
    chances = [scipy.special.softmax(s, axis=1) for s in scores]
    losses = [sklearn.metrics.log_loss(y, p, labels=[0, 1]) for p, (_, y) in zip(chances, tests, strict=True)]
    area = [(areas(s, y) or [0.5])[0] for s, (_, y) in zip(scores, tests, strict=True)]
    for name, values in {"accuracy": right, "log_loss": losses, "auroc": area}.items():
        assert len(set(np.round(values, 3))) == 3  # else any weighting would do
        np.testing.assert_allclose(history.silo_metrics[name][-1], values, rtol=1e-5)
        np.testing.assert_allclose(history.metrics[name][-1], np.average(values, weights=sizes), rtol=1e-5)
