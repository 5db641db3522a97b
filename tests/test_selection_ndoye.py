"""The adapted Ndoye factor against a transcription of its formula, on the Titanic, and with silos that lie."""

import numpy as np
import pytest

import confrere as cf
from confrere.data.silo import fold_numbers
from tests.selection_problems import amounts, classes, half_squares, log_losses, logistic_fit, ridge_fit


def transfer(silos, user, other, folds, l2, fit, losses):
    """Section 4.3: the mean loss of f_i on the user's rows less its cross-validated loss at home."""
    X, y = silos[other].rows("train")
    fold = fold_numbers(y, folds, np.random.default_rng(0))
    home = np.zeros(len(y))
    for k in range(folds):
        rest = fold != k
        home[~rest] = losses(X[~rest], y[~rest], fit(X[rest], y[rest], l2))
    return losses(*silos[user].rows("train"), fit(X, y, l2)).mean() - home.mean()


@pytest.mark.parametrize("folds", [2, 4])
def test_scores_of_classes_are_those_of_the_formula(folds):
    silos = classes()
    found = cf.selection.ndoye(silos, 0, folds=folds, l2=0.05, resamples=5)
    expected = [transfer(silos, 0, i, folds, 0.05, logistic_fit, log_losses) for i in (1, 2, 3)]
    np.testing.assert_allclose(found.scores[1:], expected, atol=2e-6)


def test_scores_of_amounts_are_those_of_the_formula():
    silos = amounts()
    found = cf.selection.ndoye(silos, "b", l2=0.02, resamples=5)
    expected = [transfer(silos, "b", i, 4, 0.02, ridge_fit, half_squares) for i in ("a", "c")]
    np.testing.assert_allclose(found.scores[[0, 2]], expected, atol=1e-4)  # parameters are sent in single precision


def test_exactly_the_weights_and_one_number_are_sent():
    found = cf.selection.ndoye(classes(features=3), 0, resamples=5)
    assert found.bytes_up.tolist() == [0] + [4 * (2 * 3 + 2 + 1)] * 3
    assert all(0 < b < 100 for b in found.bytes_down[1:])


def test_intervals_hold_the_score_and_narrow_with_the_users_rows():
    few, many = (cf.selection.ndoye(classes((rows, 50, 50)), 0) for rows in (40, 4000))
    for found in (few, many):
        assert (found.low[1:] < found.scores[1:]).all()
        assert (found.scores[1:] < found.high[1:]).all()
    ratio = (few.high - few.low)[1:] / (many.high - many.low)[1:]
    assert (ratio > 5).all()  # ten times, but for chance
    assert (ratio < 20).all()


def test_a_silo_that_exaggerates_its_loss_at_home_looks_better_than_it_is():
    silos = classes(flipped=(3,))
    lie = lambda name, offer: offer._replace(loss=np.float32(9.0)) if name == "silo 3" else offer  # noqa: E731
    assert cf.selection.ndoye(silos, 0, resamples=5).ranking[-1] == "silo 3"
    assert cf.selection.ndoye(silos, 0, heard=lie, resamples=5).ranking[0] == "silo 3"


def test_what_is_lost_or_is_no_number_is_not_ranked():
    def heard(name, offer):
        return None if name == "silo 1" else offer._replace(loss=np.float32(np.nan)) if name == "silo 2" else offer

    found = cf.selection.ndoye(classes(), 0, heard=heard, resamples=5)
    assert found.ranking == ["silo 3"]
    assert found.silent == ("silo 1", "silo 2")
    assert "did not answer" in found.reasons["silo 1"]
    assert "no finite number" in found.reasons["silo 2"]
    assert found.kept == ("silo 3",)


def test_silos_with_one_row_are_not_asked_and_one_class_is_enough():
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(n, 2)), np.arange(n) % 2 if n > 5 else np.ones(n, int)) for n in (30, 1, 5)]
    found = cf.selection.ndoye(cf.Silos.from_arrays(pairs, names=["user", "single", "one class"]), 0, resamples=5)
    assert found.ranking == ["one class"]
    assert found.reasons["single"] == "it has 1 training row, fewer than the minimum of 5"
    few = cf.selection.ndoye(cf.Silos.from_arrays(pairs), 0, resamples=5, min_count=1)
    assert few.reasons["1"] == "it has 1 training row, fewer than the minimum of 2"  # no row is left to judge a fold
    assert found.bytes_down[1] == 0


@pytest.mark.parametrize("folds", ["x", 2.5, True, 1])
def test_folds_that_are_no_whole_number_above_one_are_refused(folds):
    with pytest.raises(ValueError, match="folds"):
        cf.selection.ndoye(classes(), 0, folds=folds)


@pytest.mark.parametrize("method", [cf.selection.ndoye, cf.selection.influence])
def test_a_model_that_is_not_unique_without_a_penalty_is_refused_with_the_remedy(method):
    rng = np.random.default_rng(0)
    constant = [(np.column_stack([rng.normal(size=40), np.ones(40)]), np.arange(40) % 2) for _ in range(3)]
    three = [(rng.normal(size=(40, 2)), np.arange(40) % 3) for _ in range(3)]
    for pairs in (constant, three):
        silos = cf.Silos.from_arrays(pairs)
        with pytest.raises(ValueError, match=r"not unique: .* Say a positive l2"):
            method(silos, 0, l2=0)
        assert len(method(silos, 0, resamples=5).ranking) == 2


def test_networks_are_trained_by_descent():
    silos = classes((50, 40, 40), flipped=(2,))
    found = cf.selection.ndoye(silos, 0, model=cf.models.mlp([4]), resamples=5, descent=cf.selection.Descent(steps=60))
    assert found.ranking == ["silo 1", "silo 2"]
    assert found.bytes_up[1] == 4 * (3 * 4 + 4 + 4 * 2 + 2 + 1)


def test_descent_and_newton_agree_on_a_logistic_model():
    silos = classes((40, 35))
    renamed = cf.models.logistic("zero")._replace(name="by descent")
    how = {"l2": 0.1, "resamples": 5}
    newton = cf.selection.ndoye(silos, 0, **how)
    descent = cf.selection.ndoye(silos, 0, model=renamed, descent=cf.selection.Descent(lr=0.5, steps=300), **how)
    np.testing.assert_allclose(descent.scores[1], newton.scores[1], atol=0.02)  # the penalty of two columns is halved


def test_folds_must_be_two_or_more():
    with pytest.raises(ValueError, match="2 folds or more, not 1"):
        cf.selection.ndoye(classes(), 0, folds=1)


@pytest.mark.slow
@pytest.mark.parametrize("user", [0, 1])
def test_the_twin_of_the_titanic_comes_first_in_twenty_of_twenty_seeds(user):
    firsts = []
    for seed in range(20):
        silos = cf.data.titanic("age-some", seed=seed)
        firsts.append(cf.selection.ndoye(silos, user, resamples=1).ranking[0])
    assert firsts == [silos.names[1 - user]] * 20
