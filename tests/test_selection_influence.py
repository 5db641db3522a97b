"""Influence against training anew: of silos, candidates, rows and batches."""

import numpy as np
import pytest

import confrere as cf
from confrere.data.silo import fold_numbers
from tests.selection_problems import amounts, classes, half_squares, log_losses, logistic_fit, ridge_fit

EVERY = 3


def parts(silos, user):
    """The rows that judge, and the rows of everybody else by silo."""
    pool = {s.name: s.rows("train") for s in silos.silos}
    X, y = pool[silos.names[user]]
    judges = fold_numbers(y, EVERY, np.random.default_rng(0)) == 0
    pool[silos.names[user]] = X[~judges], y[~judges]
    return (X[judges], y[judges]), pool


def judged(pool, names, test, fit, losses, l2):
    """The mean loss of the judging rows under the model of some silos."""
    X, y = (np.concatenate([pool[name][k] for name in names]) for k in (0, 1))
    return losses(*test, fit(X, y, l2)).mean()


def test_exact_influence_is_the_loss_after_training_anew_less_that_before():
    silos, l2 = classes(), 0.05
    test, pool = parts(silos, 0)
    loss = lambda names: judged(pool, names, test, logistic_fit, log_losses, l2)  # noqa: E731
    expected = [loss([n for n in silos.names if n != name]) - loss(silos.names) for name in silos.names[1:]]
    found = cf.selection.influence(silos, 0, exact=True, l2=l2, resamples=5)
    np.testing.assert_allclose(found.scores[1:], expected, atol=1e-7)


def test_one_newton_step_is_exact_where_losses_are_quadratic():
    silos, l2 = amounts(), 0.02
    test, pool = parts(silos, 1)
    loss = lambda names: judged(pool, names, test, ridge_fit, half_squares, l2)  # noqa: E731
    expected = [loss([n for n in silos.names if n != name]) - loss(silos.names) for name in ("a", "c")]
    found = cf.selection.influence(silos, "b", l2=l2, resamples=5)
    np.testing.assert_allclose(found.scores[[0, 2]], expected, rtol=1e-6)


def test_a_candidate_is_judged_by_what_adding_it_gains():
    silos, l2 = amounts((30, 25, 20, 15)), 0.02
    test, pool = parts(silos, 0)
    loss = lambda names: judged(pool, names, test, ridge_fit, half_squares, l2)  # noqa: E731
    found = cf.selection.influence(silos, "a", pool=["b"], l2=l2, resamples=5)
    expected = [loss("a") - loss("ab"), loss("ab") - loss("abc"), loss("ab") - loss("abd")]
    np.testing.assert_allclose(found.scores[1:], expected, rtol=1e-6)
    assert "if it joined" in found.reasons["c"]
    assert "without it" in found.reasons["b"]


def test_newton_steps_are_near_training_anew_and_better_than_first_order():
    near, exact, first = [], [], []
    for seed in range(6):
        silos = classes((60, 50, 40, 45), seed=seed, flipped=(seed % 3 + 1,))
        near += cf.selection.influence(silos, 0, resamples=1).scores[1:].tolist()
        exact += cf.selection.influence(silos, 0, exact=True, resamples=1).scores[1:].tolist()
        first += [cf.selection.row_influence(silos, 0, of=i).sum() for i in (1, 2, 3)]
    errors = [np.abs(np.array(values) - exact).mean() for values in (near, first)]
    assert np.corrcoef(near, exact)[0, 1] > 0.95
    assert errors[0] < errors[1] / 2


@pytest.mark.slow
def test_on_the_titanic_newton_steps_are_as_good_as_training_anew():
    near, exact = [], []
    for seed in range(9):
        for split in ("age-strict", "age-some"):
            silos = cf.data.titanic(split, seed=seed)
            for user in (seed % 4, (seed + 1) % 4):
                others = [i for i in range(4) if i != user]
                near += cf.selection.influence(silos, user, resamples=1).scores[others].tolist()
                exact += cf.selection.influence(silos, user, exact=True, resamples=1).scores[others].tolist()
    assert len(near) >= 100
    assert np.corrcoef(near, exact)[0, 1] > 0.99
    assert np.mean(np.sign(near) == np.sign(exact)) > 0.95


def test_influence_of_a_row_is_that_of_training_without_it():
    silos, l2 = classes((60, 50, 40)), 0.05
    test, pool = parts(silos, 0)
    whole = judged(pool, silos.names, test, logistic_fit, log_losses, l2)
    X, y = pool["silo 1"]
    expected = []
    for row in range(20):
        rest = np.arange(len(y)) != row
        left = {**pool, "silo 1": (X[rest], y[rest])}
        expected.append(judged(left, silos.names, test, logistic_fit, log_losses, l2) - whole)
    found = cf.selection.row_influence(silos, 0, of="silo 1", l2=l2)[:20]
    assert np.corrcoef(found, expected)[0, 1] > 0.99
    np.testing.assert_allclose(found, expected, atol=0.25 * np.abs(expected).max())


def test_rows_that_judge_have_no_influence_of_their_own():
    silos = classes((60, 50))
    own = cf.selection.row_influence(silos, 0, of=0)
    judges = fold_numbers(silos[0].y, EVERY, np.random.default_rng(0)) == 0
    np.testing.assert_array_equal(np.isnan(own), judges)
    with pytest.raises(ValueError, match="silo 'silo 1' cannot be judged row by row: it did not answer"):
        cf.selection.row_influence(silos, 0, of=1, silent=["silo 1"])
    with pytest.raises(ValueError, match="'silo 1' cannot be judged row by row: it has 4 training rows, fewer than"):
        cf.selection.row_influence(classes((60, 4)), 0, of=1)


def test_validation_rows_judge_where_there_are_any():
    silos = classes((80, 50), seed=2).split(test=0.0, validation=0.4, seed=1)
    test, pool = silos[0].rows("validation"), {s.name: s.rows("train") for s in silos.silos}
    pool["silo 1"] = (silos[1].X, silos[1].y)
    loss = lambda names: judged(pool, names, test, logistic_fit, log_losses, 0.05)  # noqa: E731
    found = cf.selection.influence(silos, 0, exact=True, l2=0.05, resamples=5)
    np.testing.assert_allclose(found.scores[1], loss(["silo 0"]) - loss(silos.names), atol=1e-7)


def test_what_crosses_is_a_point_down_and_a_curvature_up_in_every_round():
    found = cf.selection.influence(classes(features=3), 0, resamples=5)
    D = 4
    rounds = found.bytes_down[1:] // (8 * D)
    assert (rounds == rounds[0]).all()
    assert 2 < rounds[0] < 20
    np.testing.assert_array_equal(found.bytes_up[1:], rounds * 8 * (2 + D + D * (D + 1) // 2))


def test_a_curvature_that_no_rows_have_is_refused_and_a_false_gradient_is_not():
    def heard(name, told):
        if name == "silo 1":
            return told._replace(H=-told.H)
        return told._replace(gradient=told.gradient + 30) if name == "silo 2" else told

    honest = cf.selection.influence(classes(), 0, resamples=5)
    found = cf.selection.influence(classes(), 0, heard=heard, resamples=5)
    assert found.silent == ("silo 1",)
    assert "cannot come from rows" in found.reasons["silo 1"]
    assert found.score("silo 2") < honest.score("silo 2")  # judged by what it does to the user's own rows


def test_the_same_batch_is_paid_more_early_than_late_and_the_budget_holds():
    silos = classes((24, 60, 60, 60), seed=4)
    batch = ("silo 1", range(60))
    rest = [("silo 2", range(60)), ("silo 3", range(30)), ("silo 3", range(30, 60))]
    early = cf.selection.payments(silos, 0, [batch, *rest], budget=50.0)
    late = cf.selection.payments(silos, 0, [*rest, batch], budget=50.0)
    assert early[0].silo == late[-1].silo == "silo 1"
    assert early[0].paid > late[-1].paid
    for paid in (early, late):
        assert sum(p.paid for p in paid) <= 50
        assert all(p.paid >= 0 for p in paid)
    assert sum(p.worth for p in early) == pytest.approx(sum(p.worth for p in late), abs=1e-8)  # both end with all rows


def test_payments_follow_the_loss_of_the_models_on_the_way():
    silos, l2 = amounts(), 0.01
    test, pool = parts(silos, 0)
    losses = [judged(pool, names, test, ridge_fit, half_squares, l2) for names in ("a", "ac", "acb")]
    paid = cf.selection.payments(silos, "a", ["c", "b"], budget=10.0)
    np.testing.assert_allclose([p.worth for p in paid], -np.diff(losses), rtol=1e-6)
    fees = 10 * np.maximum(-np.diff(losses), 0) / losses[0]
    np.testing.assert_allclose([p.paid for p in paid], fees, rtol=1e-6)


def test_payments_refuse_what_is_no_batch():
    silos = classes((30, 20))
    with pytest.raises(ValueError, match="'silo 0' is the user"):
        cf.selection.payments(silos, 0, ["silo 0"])
    with pytest.raises(ValueError, match="'silo 1': a batch is whole numbers of its training rows, 0 to 19"):
        cf.selection.payments(silos, 0, [("silo 1", [20])])
    for no_numbers in ([True, False, True], [0.5]):
        with pytest.raises(ValueError, match="a batch is whole numbers of its training rows"):
            cf.selection.payments(silos, 0, [("silo 1", no_numbers)])


def test_influence_needs_a_linear_model_and_rows_to_judge_by():
    with pytest.raises(TypeError, match="influence needs a model that is linear"):
        cf.selection.influence(classes(), 0, model=cf.models.mlp([4]))
    with pytest.raises(ValueError, match="every must be 2 or more"):
        cf.selection.influence(classes(), 0, every=1)
