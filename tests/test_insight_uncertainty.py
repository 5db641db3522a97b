"""Intervals beside predictions: they cover as often as they say, and say so where nothing vouches for them."""

from pathlib import Path

import jax
import numpy as np
import pytest

import confrere as cf
from confrere.answers.replicas import Run, by_runs, run_again
from confrere.insight.explanations.calibration import conformal, dispersion
from confrere.saved import load_model, save_model
from confrere.simulation.rows import on_devices

SLOPES = np.array([1.0, -1.0, 0.5])


def population(task, seed, rows=(120, 200, 200), tests=300):
    """Three silos of one population, with test rows of the first; and the true probabilities, or means, of these."""
    rng = np.random.default_rng(seed)
    pairs, parts = [], []
    for i, count in enumerate(rows):
        X = rng.normal(size=(count + (tests if i == 0 else 0), 3))
        z = X @ SLOPES
        y = z + rng.logistic(size=len(z)) > 0 if task == "classes" else 10 + z + rng.normal(size=len(z))
        pairs.append((X, y))
        parts.append(np.where(np.arange(len(z)) < count, 0, 2).astype(np.int8))
    silos = cf.Silos.from_arrays(pairs, names=[f"s{i}" for i in range(len(rows))]).with_parts(parts)
    return silos, 1 / (1 + np.exp(-(silos[0].rows("test")[0] @ SLOPES)))


def coverage(task, seeds, level=0.9, validation=0):
    found, widths = [], []
    for seed in range(seeds):
        silos, truth = population(task, seed)
        if validation:
            own = silos[0].part.copy()
            own[:validation] = 1
            silos = silos.with_parts([own, *(s.part for s in silos.silos[1:])])
        model = cf.personalise(silos, 0, uncertainty=40).model
        X, y = silos[0].rows("test")
        told = model.predict_interval(X, level)
        assert told.calibrated
        if task == "classes":
            inside = (told.low[:, 1] <= truth) & (truth <= told.high[:, 1])
            found.append((inside.mean(), told.possible[np.arange(len(y)), y.astype(int)].mean()))
        else:
            found.append(((told.low <= y) & (y <= told.high)).mean())
        widths.append(np.mean(told.high - told.low))
    return np.mean(found, axis=0), np.mean(widths)


@pytest.mark.slow
def test_intervals_of_probabilities_cover_the_true_ones_and_sets_of_labels_the_labels():
    (probability, label), width = coverage("classes", 6)
    assert 0.85 <= probability <= 1
    assert 0.85 <= label <= 0.96
    assert width < 0.35


@pytest.mark.slow
def test_prediction_intervals_cover_the_labels_by_rows_left_out_and_by_validation_rows():
    left_out, width = coverage("amounts", 6)
    assert 0.86 <= left_out <= 0.95
    assert width == pytest.approx(2 * 1.645, rel=0.15)  # the noise is a standard normal
    held, _ = coverage("amounts", 6, validation=60)
    assert 0.84 <= held <= 0.96


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confrere.answers.AnswerWarning")  # 60 rows are too few for some of the seeds
@pytest.mark.parametrize(("task", "validation"), [("classes", 0), ("classes", 60), ("amounts", 0), ("amounts", 60)])
def test_coverage_over_many_seeds(task, validation):
    found, _ = coverage(task, 40, 0.9, validation)
    assert np.all(np.abs(np.atleast_1d(found)[-1] - 0.9) < 0.03)
    assert np.atleast_1d(found)[0] > 0.87


def test_replicas_of_a_run_with_every_row_and_silo_once_are_the_run():
    silos, _ = population("classes", 0)
    recipe, model = cf.weight_erosion(user=0, lr=0.5), cf.models.logistic()
    seen = silos.for_user(0)
    history = cf.simulate(recipe, model, seen, 8, user=0, metrics=())
    block = on_devices(seen.block("train"), model)
    which = np.tile(np.arange(block.y.shape[1], dtype=np.int32), (2, 3, 1))
    again = run_again(Run(recipe, 8), model, seen, 0, block, which, np.ones((2, 3), np.float32), 0)
    assert np.allclose(again["w"][1], history.personal(0)["w"], atol=1e-5)


def test_replicas_of_runs_are_reproducible_differ_by_draw_and_spread_as_theory_says():
    silos, _ = population("amounts", 1, rows=(100,))
    recipe = cf.local(lr=0.5, batch=None, steps=10)
    one, two = (by_runs([Run(recipe, 10)], cf.models.linear(), silos, 0, 200, seed=3) for _ in range(2))
    assert (one.members[0]["w"] == two.members[0]["w"]).all()
    X = np.column_stack([silos[0].rows("train")[0], np.ones(100)])
    y = silos[0].rows("train")[1]
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    bread = np.linalg.inv(X.T @ X)
    theory = np.sqrt(np.diag(bread @ (X.T * residual**2) @ X @ bread))  # the sandwich that the bootstrap tends to
    seen = np.concatenate([one.members[0]["w"][:, :, 0], one.members[0]["b"]], axis=1).std(axis=0)
    assert seen == pytest.approx(theory, rel=0.2)


def test_conformal_scores_and_dispersion_are_what_the_formulas_say():
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random(99))
    assert conformal(scores, 0.9) == scores[89]
    p = rng.uniform(0.2, 0.8, 400)
    truth = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + 0.8)))  # predictions are too low by 0.8 in log-odds
    y = (rng.random(400) < truth).astype(float)
    narrow = p + 0.02 * rng.normal(size=(60, 1))
    wide = p + 0.2 * rng.normal(size=(60, 1))
    assert dispersion(p, y, narrow) > 4
    assert dispersion(p, y, wide) == 1
    assert dispersion(p, (rng.random(400) < p).astype(float), narrow) == 1


@pytest.mark.filterwarnings("ignore:0 has only 12 training rows")
def test_what_cannot_be_calibrated_says_so_and_degenerate_silos_are_defined():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 12, 3))
    tiny = cf.Silos.from_arrays([(X[0], X[0][:, 0] > 0), (X[1], X[1][:, 0] > 0)])
    model = cf.personalise(tiny, 0, uncertainty=20).model
    told = model.predict_interval(X[1])
    assert not told.calibrated
    assert "too few" in told.words
    assert told.possible.all()
    assert ((told.low <= told.high) & np.isfinite(told.low)).all()
    with pytest.raises(ValueError, match="no intervals"):
        cf.personalise(tiny, 0).model.predict_interval(X[1])
    with pytest.raises(ValueError, match="a share above 0"):
        model.predict_interval(X[1], level=95)
    with pytest.raises(ValueError, match="single draw"):
        cf.personalise(tiny, 0, uncertainty=1)


@pytest.mark.slow
def test_a_lonely_silo_and_a_user_of_one_class_have_intervals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    alone = cf.Silos.from_arrays([(X, X[:, 0] + rng.normal(size=60) > 0)])
    told = cf.personalise(alone, 0, uncertainty=20).model.predict_interval(X)
    assert ((told.low < told.high) & (told.low >= 0) & (told.high <= 1)).all()
    one = cf.Silos.from_arrays([(X, np.zeros(60, int)), (X, X[:, 0] > 0)])
    with pytest.warns(UserWarning, match="nothing could be validated"):
        model = cf.personalise(one, 0, uncertainty=20).model
    told = model.predict_interval(X)
    assert np.isfinite(told.low).all()
    assert (told.low <= model.predict_proba(X)).all()


@pytest.mark.parametrize("task", ["classes", pytest.param("amounts", marks=pytest.mark.slow)])
def test_intervals_survive_saving_to_the_bit(task, tmp_path):
    silos, _ = population(task, 0)
    answer = cf.personalise(silos, 0, uncertainty=40)
    loaded = load_model(save_model(answer, silos, tmp_path / "model"))
    X = silos[0].rows("test")[0]
    one, two = answer.model.predict_interval(X), loaded.model.predict_interval(X)
    assert (one.low == two.low).all()
    assert (one.high == two.high).all()
    assert one.words == two.words
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["CARD.md", "manifest.json", "model.safetensors"]
    assert "95% intervals" in (tmp_path / "model" / "CARD.md").read_text()
    assert set(loaded.manifest["why"]) == set(silos.names)


def test_networks_and_named_algorithms_have_intervals_too():
    silos, _ = population("amounts", 2)
    X, y = silos[0].rows("test")
    named = cf.personalise(silos, 0, cf.fine_tuned(lr=0.1, steps=5), cf.models.mlp([4], "regression"), uncertainty=20)
    told = named.model.predict_interval(X, 0.9)
    assert told.calibrated
    assert 0.8 <= ((told.low <= y) & (y <= told.high)).mean() <= 1
    assert jax.tree.leaves(named.model.uncertainty.members[0])[0].shape[0] == 20


def test_the_numbers_on_the_page_about_explanations_are_those_that_come_out():
    page = " ".join((Path(__file__).parents[1] / "docs" / "explanations.md").read_text(encoding="utf-8").split())
    heart = cf.data.heart_disease().split(test=0.25, seed=0)
    answer = cf.personalise(heart, "va", others="train", uncertainty=50)
    X, y = heart["va"].rows("test")
    told = answer.model.predict_interval(X)
    held = int(told.possible[np.arange(len(y)), y.astype(int)].sum())
    both, width = int(told.possible.all(axis=1).sum()), 100 * np.median((told.high - told.low)[:, 1])
    assert f"On the {len(y)} test patients of `va` the sets of labels held the true one for {held}" in page
    assert f"for {both} they named both" in page
    assert f"interval of a probability: {width:.0f} percentage points" in page
