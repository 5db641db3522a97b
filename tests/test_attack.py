"""Attacks, and what free riders earn by them."""

import numpy as np
import pytest

import confrere as cf
from confrere.insight.credit.riders import RIDER
from confrere.insight.credit.tables import credit_in_words
from confrere.transforms import attacked
from tests.selection_problems import classes

MODEL = cf.models.logistic("zero")


def one_round(recipe, silos, **how):
    return cf.simulate(recipe, MODEL, silos, 1, metrics=(), record=("weights", "distance", "norm"), **how)


def test_an_echo_says_nothing_and_the_honest_are_not_touched():
    silos, honest = classes((20, 20, 20)), cf.fedsgd(lr=0.3, weights="uniform")
    plain, echoed = one_round(honest, silos), one_round(attacked(honest, (2,), "echo"), silos)
    assert echoed.norm[0, 2] == 0
    np.testing.assert_array_equal(echoed.norm[0, :2], plain.norm[0, :2])
    without = one_round(cf.fedsgd(lr=0.3, weights="uniform", prior={"silo 2": 0}), silos)
    np.testing.assert_allclose(echoed.personal(0)["w"] * 3 / 2, without.personal(0)["w"], rtol=1e-5)


def test_noise_has_its_scale_and_another_draw_in_every_round():
    silos = classes((20, 20, 20), features=8)
    run = cf.simulate(attacked(cf.fedsgd(lr=0.1), (1,), "noise", scale=0.5), MODEL, silos, 40, metrics=())
    assert np.square(run.norm[:, 1]).mean() / 18 == pytest.approx(0.25, rel=0.2)  # 9 numbers for each of 2 classes
    assert len(set(run.norm[:, 1].tolist())) == 40


def test_what_is_overheard_counts_again_and_is_nothing_when_the_victim_is_absent():
    silos = classes((20, 20, 20))
    recipe = attacked(cf.fedsgd(lr=0.3, weights="uniform"), (2,), "overheard", victim=0)
    double = one_round(cf.fedsgd(lr=0.3, weights="uniform", prior=[2.0, 1.0, 0.0]), silos)
    np.testing.assert_allclose(one_round(recipe, silos).personal(1)["w"], double.personal(1)["w"], rtol=1e-5)
    alone = one_round(recipe, silos, active=[[False, True, True]])
    only = one_round(cf.fedsgd(lr=0.3), silos, active=[[False, True, False]])
    np.testing.assert_allclose(alone.personal(1)["w"], only.personal(1)["w"], rtol=1e-5)


def test_a_copy_of_the_user_keeps_its_whole_weight_in_weight_erosion():
    silos = classes((30, 30, 30))
    recipe = attacked(cf.weight_erosion(user=0, lr=0.3, p_d=0.3), (2,), "overheard", victim=0)
    run = cf.simulate(recipe, MODEL, silos, 10, metrics=())
    assert (run.weights[:, 0, 2] == 1).all()
    assert run.weights[-1, 0, 1] < 0.5
    assert (run.distance[:, 0, 2] == 0).all()
    assert (run.distance[:, 0, 1] > 0).all()


def test_a_prior_holds_under_attack():
    silos = classes((20, 20, 20))
    honest = cf.fedsgd(lr=0.3, weights="uniform", prior=[1.0, 0.0, 1.0])
    for kind, victim in (("echo", None), ("overheard", 0)):
        run = one_round(attacked(honest, (2,), kind, victim=victim), silos)
        assert not run.arrived[0, 1], kind


def test_a_copy_of_the_user_earns_nothing_where_worth_is_paid():
    silos = classes((60, 50, 40)).split(test=0.4, seed=0)
    found = cf.insight.free_rider(silos, 0, cf.fedsgd(lr=1.0), "copy", rounds=10)
    assert found.account(RIDER)["copies_the_user"]
    assert not found.account("silo 1")["copies_the_user"]
    assert found.paid(RIDER, "equal") > 0.3
    for scheme in ("influence", "shapley", "sure"):
        assert found.paid(RIDER, scheme) == 0, scheme
    assert any(words.startswith(f"{RIDER} sent in every round") for words in credit_in_words(found))


def test_by_sure_only_those_earn_whose_interval_is_above_0():
    silos = classes((100, 400, 20, 400), features=5, flipped=(3,)).split(test=0.8, seed=0)
    found = cf.insight.rewards(silos, 0, cf.fedsgd(lr=1.0), budget=10)
    low = found.shapley.value.low
    assert (low > 0).sum() == 1
    for i, name in enumerate(found.names):
        assert (found.paid(name, "sure") > 0) == (i != 0 and low[i] > 0), name
    assert found.paid("silo 1", "sure") == pytest.approx(10)


def test_what_cannot_be_an_attack_is_refused():
    with pytest.raises(ValueError, match="kind must be"):
        attacked(cf.fedsgd(lr=0.1), (0,), "sleep")
    with pytest.raises(ValueError, match="a victim is overheard"):
        attacked(cf.fedsgd(lr=0.1), (0,), "noise", victim=1)
    with pytest.raises(ValueError, match="riding must be"):
        cf.insight.free_rider(classes(), 0, cf.fedsgd(lr=0.1), "taxi")


def test_a_rider_that_shouts_noise_earns_by_counting_and_nothing_by_worth():
    silos = classes((60, 50, 40, 45)).split(test=0.4, seed=0)
    found = cf.insight.free_rider(silos, 0, cf.fedsgd(lr=1.0), "noise", rounds=15, scale=3.0)
    assert found.paid(RIDER, "equal") == pytest.approx(0.25)
    assert found.paid(RIDER, "rows") > 0.2
    assert found.paid(RIDER, "shapley") == found.paid(RIDER, "influence") == 0


def test_stolen_rows_earn_as_much_as_their_owner():
    silos = classes((60, 50, 40)).split(test=0.4, seed=0)
    found = cf.insight.free_rider(silos, 0, cf.fedsgd(lr=1.0), "stolen", victim="silo 1", rounds=10)
    for scheme in ("equal", "rows", "weight", "ndoye", "influence", "shapley"):
        assert found.paid(RIDER, scheme) == pytest.approx(found.paid("silo 1", scheme), abs=1e-3), scheme
