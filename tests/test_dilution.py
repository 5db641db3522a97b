"""Dilution: bounds that no run exceeds, known before training, and silos that withdraw below a limit."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import confrere as cf
from confrere.history import History
from tests.helpers import NETWORK
from tests.selection_problems import classes

MODEL = cf.models.logistic("zero")
RECIPES = {
    "fedavg": cf.fedavg(lr=0.2, batch=4, prior=np.array([1.0, 0.5, 2.0, 0.25])),
    "fedsgd": cf.fedsgd(lr=0.2, weights="uniform"),
    "data_interpolation": cf.data_interpolation(user=1, lr=0.2, own_share=0.3),
    "weight_erosion": cf.weight_erosion(user=0, lr=0.2, p_d=0.3),
    "weight_erosion by size": cf.weight_erosion(
        user=1, lr=0.2, p_d=0.2, size_prior=1.0, prior=np.array([1, 1, 0.5, 2])
    ),
    "waffle": cf.waffle(user=1, rounds=8, lr=0.2),
    "fedamp": cf.fedamp(lr=0.2, attention=0.8, prior=np.array([1.0, 0.5, 2.0, 0.25])),
    "clustered": cf.clustered(lr=0.2, eps1=0.9, eps2=0.1, gamma=0.0),
    "multi_task": cf.multi_task(lr=0.2),
    "gtv_gd": cf.gtv_gd(NETWORK, lr=0.1),
    "ifca": cf.ifca(lr=0.2),
    "local": cf.local(lr=0.2),
}
EXACT = ("fedavg", "fedsgd", "data_interpolation", "gtv_gd")


def largest_shares(history: History) -> np.ndarray:
    """The largest share [n] that each silo had in a model that another received."""
    shares = history.shares.copy()
    if history.per_silo:
        shares[:, np.arange(shares.shape[1]), np.arange(shares.shape[2])] = 0  # its own is its own
    return shares.max(axis=(0, 1))


@pytest.mark.parametrize("name", RECIPES)
def test_no_run_exceeds_the_bound(name):
    recipe, rounds = RECIPES[name], 8
    silos = classes((40, 12, 25, 33), flipped=(2,))
    absent = np.random.default_rng(0).random((rounds, 4)) < 0.6
    for active in (None, absent):
        found = cf.insight.dilution(silos, recipe, active=active)
        history = cf.simulate(recipe, MODEL, silos, rounds, active=active, metrics=(), record=("weights",))
        seen = largest_shares(history)
        assert (seen <= found.bound + 1e-6).all(), (seen, found.bound)
        if name in EXACT and active is None:
            np.testing.assert_allclose(seen, found.bound, atol=1e-6)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.lists(st.floats(0.01, 5), min_size=7, max_size=7))
def test_eroded_weights_never_exceed_the_bound_whatever_they_are(alpha, prior):
    n = len(alpha) + 1
    silos = cf.Silos.from_arrays([(np.zeros((3, 1)), np.array([0, 1, 0]))] * n, names=[str(i) for i in range(n)])
    found = cf.insight.dilution(silos, cf.weight_erosion(user=0, lr=1.0, prior=prior[:n]))
    weight = np.array([1.0, *alpha]) * prior[:n]
    assert (weight / weight.sum() <= found.bound + 1e-12).all()


def test_the_bound_of_weight_erosion_is_reached():
    """One silo sends what the user sends, and the others what could not be farther."""
    erode = cf.weights.erosion(user=0, p_d=1.0, p_s=0.0)
    ctx = cf.Ctx(round=1, active=[True] * 4, size=[10] * 4)
    W, _ = erode.update(cf.Geometry.from_messages([[1.0], [1.0], [-1.0], [3.0]]), erode.init(4), ctx)
    found = cf.insight.dilution(classes((10,) * 4), cf.weight_erosion(user=0, lr=1.0, p_d=1.0))
    assert float(W[0, 1] / W.sum()) == found.bound[1] == 0.5


def test_without_a_penalty_weight_erosion_is_a_plain_average():
    found = cf.insight.dilution(classes((10,) * 4), cf.weight_erosion(user=0, lr=1.0, p_d=0.0))
    np.testing.assert_allclose(found.bound, 0.25)


def stable(sizes, staying, limit):
    rows = sum(sizes[i] for i in staying)
    return all(1 - sizes[i] / rows >= limit - 1e-9 for i in staying)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=6), st.floats(0, 1))
def test_those_who_stay_are_the_largest_circle_in_which_everybody_is_content(sizes, limit):
    silos = cf.Silos.from_arrays([(np.zeros((n, 1)), np.arange(n) % 2) for n in sizes])
    found = cf.insight.dilution(silos, cf.fedavg(lr=0.1), min_dilution=limit)
    staying = {i for i, p in enumerate(found.prior) if p > 0}
    circles = [set(c) for k in range(len(sizes) + 1) for c in combinations(range(len(sizes)), k)]
    contented = [c for c in circles if stable(sizes, c, limit)]
    assert staying in contented
    assert all(c <= staying for c in contented)


def test_a_withdrawal_makes_others_withdraw_and_says_why():
    silos = classes((60, 30, 10))
    found = cf.insight.dilution(silos, cf.fedavg(lr=0.1), min_dilution={"silo 0": 0.5, "silo 1": 0.6, "silo 2": 0.1})
    assert list(found.withdrawn) == ["silo 0", "silo 1", "silo 2"]
    assert "75.0 %" in found.withdrawn["silo 1"]  # once the largest has left
    assert "dilution of 0.000" in found.withdrawn["silo 2"]


def test_the_user_does_not_withdraw_and_limits_are_by_name():
    silos = classes((60, 30, 10))
    found = cf.insight.dilution(silos, "fedavg", user=0, min_dilution={"silo 0": 1.0, "silo 1": 0.5})
    assert not found.withdrawn
    found = cf.insight.dilution(silos, "fedavg", user=0, min_dilution=0.8)
    assert list(found.withdrawn) == ["silo 1"]
    assert found.of("silo 2") == pytest.approx(60 / 70)


def test_simulate_leaves_out_who_withdrew_and_tells():
    silos = classes((20, 60, 15, 15))
    history = cf.simulate(cf.fedsgd(lr=0.3), MODEL, silos, 4, user=0, min_dilution=0.5, metrics=())
    assert list(history.withdrawn) == ["silo 1"]
    assert not history.arrived[:, 1].any()
    assert history.bytes_up[:, 1].sum() == 0
    without = cf.simulate(cf.fedsgd(lr=0.3, prior={"silo 1": 0}), MODEL, silos, 4, user=0, metrics=())
    np.testing.assert_array_equal(history.personal(0)["w"], without.personal(0)["w"])
    assert not cf.simulate(cf.fedsgd(lr=0.3), MODEL, silos, 1, user=0, min_dilution=0.4, metrics=()).withdrawn


def test_personalise_asks_first_and_tells_who_left():
    silos = classes((40, 90, 30, 30)).split(test=0.3, seed=0)
    answer = cf.personalise(silos, 0, cf.fedsgd(lr=0.3), rounds=3, others="train", min_dilution=0.6)
    assert list(answer.withdrawn) == ["silo 1"]
    assert "silo 1 withdrew before training" in answer.reason
    assert "silo 1" not in answer.weights
    assert answer.to_dict()["withdrawn"]["silo 1"].startswith("its share of the weight could reach")


def test_what_cannot_be_is_refused():
    silos = classes((60, 30, 10))
    with pytest.raises(ValueError, match="nobody is left to take part"):
        cf.simulate(cf.fedavg(lr=0.1), MODEL, silos, 1, min_dilution=0.9)
    with pytest.raises(ValueError, match="nobody is left to learn with"):
        cf.personalise(silos, 0, cf.fedsgd(lr=0.3), min_dilution=1.0)
    with pytest.raises(ValueError, match="diluted by nobody"):
        cf.personalise(silos, 0, min_dilution=0.5)
    with pytest.raises(ValueError, match="min_dilution must be a share"):
        cf.insight.dilution(silos, "fedavg", min_dilution=1.5)
    with pytest.raises(KeyError, match="there is no silo 'west'"):
        cf.insight.dilution(silos, "fedavg", min_dilution={"west": 0.5})
    with pytest.raises(ValueError, match="there is no algorithm"):
        cf.insight.dilution(silos, "best")
    with pytest.raises(TypeError, match="recipe must be"):
        cf.insight.dilution(silos, 3)


def test_open_numbers_are_taken_at_worst():
    silos = classes((60, 30, 10))
    found = cf.insight.dilution(silos, "data_interpolation", user=1)
    np.testing.assert_allclose(found.bound, [0.6, 1.0, 0.1])
    assert cf.insight.dilution(silos, "evidence", user=0).of("silo 1") == 0  # its summary is seen by itself
    assert cf.insight.dilution(silos, "ridge_local").of("silo 1") == 1


def test_a_dilution_is_plain_json_and_reads_as_a_table():
    found = cf.insight.dilution(classes((60, 30, 10)), "fedavg", user=1, min_dilution=0.5)
    said = json.loads(found.to_json())
    assert said["silos"]["silo 0"]["bound"] is None
    assert said["silos"]["silo 2"] == {"rows": 10, "samples": 0.25, "bound": 0.25, "dilution": 0.75, "limit": 0.5}
    assert list(said["withdrawn"]) == ["silo 0"]
    assert found.table().row_count == 3
