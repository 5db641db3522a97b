"""What a run leaves behind: personal models, shares, summaries, and two runs joined."""

import dataclasses
import functools
import json
import pickle

import jax
import numpy as np
import pytest

import confrere as cf
from confrere.history import by_rows, join
from tests.helpers import two_class_silos

ROUNDS = 3


@functools.cache
def silos():
    return cf.Silos(two_class_silos((16, 12, 9)).silos, ("u", "v", "w")).split(0.4, seed=1)


def run(rounds=ROUNDS, recipe=None, **how):
    recipe = erosion() if recipe is None else recipe
    return cf.simulate(recipe, cf.models.logistic(), silos(), rounds, **{"metrics": ("accuracy", "log_loss"), **how})


def erosion(lr=0.3):
    return cf.weight_erosion(user=1, lr=lr, p_d=0.05, batch=3)


@functools.cache
def history():
    active = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    return run(active=active)


def test_a_history_can_be_pickled_and_resumed_from():
    h = run(rounds=2)
    again = pickle.loads(pickle.dumps(dataclasses.replace(h)))
    np.testing.assert_array_equal(again.personal(1)["w"], h.personal(1)["w"])
    np.testing.assert_array_equal(again.weights, h.weights)
    assert again.summary() == h.summary()
    np.testing.assert_array_equal(run(resume=again).loss, run(resume=h).loss)


def test_a_personal_model_is_found_by_name_or_place():
    h = run(recipe=cf.local(lr=0.3, batch=3))
    for place, name in enumerate(h.names):
        for found in (h.personal(name), h.personal(place), h.personal(np.int64(place))):
            jax.tree.map(lambda a, b, i=place: np.testing.assert_array_equal(a, b[i]), found, h.models)
    assert not np.array_equal(h.personal(0)["w"], h.personal(1)["w"])


@pytest.mark.parametrize(
    ("silo", "error", "words"),
    [("x", KeyError, "no silo 'x'.*0, 1, 2"), (3, IndexError, "no silo 3.*are 3"), (-1, IndexError, "no silo -1")],
)
def test_a_silo_that_is_not_there_has_no_model(silo, error, words):
    with pytest.raises(error, match=words):
        history().personal(silo)


def test_models_are_plain_arrays():
    assert {type(a) for a in jax.tree.leaves(history().models)} == {np.ndarray}


def test_shares_are_the_weights_of_those_who_counted():
    h = history()
    assert h.shares.shape == (ROUNDS, 1, 3)
    counted = np.where(h.arrived, h.weights[:, 0], 0)
    np.testing.assert_allclose(h.shares[0, 0], counted[0] / counted[0].sum(), rtol=1e-6)
    np.testing.assert_array_equal(h.shares[1, 0], 0)  # without the user nobody counts
    np.testing.assert_allclose(h.shares[2, 0], counted[2] / counted[2].sum(), rtol=1e-6)
    np.testing.assert_allclose(h.shares.sum(axis=2)[:, 0], [1, 0, 1], rtol=1e-6)


def test_shares_times_mass_are_the_raw_weights():
    h = history()
    np.testing.assert_allclose((h.shares * h.mass[:, :, None])[0, 0], h.weights[0, 0] * h.arrived[0], rtol=1e-6)


def test_a_summary_is_the_last_row_and_can_be_written_as_json():
    h = history()
    found = json.loads(json.dumps(h.summary()))
    assert found["metrics"] == {name: pytest.approx(values[-1]) for name, values in h.metrics.items()}
    assert (found["algorithm"], found["rounds"], found["part"]) == ("weight_erosion", ROUNDS, "test")
    assert found["bytes_up"] == 6 * 4 * 8
    assert found["bytes_down"] == h.bytes_down.sum()


def test_a_history_cannot_be_changed_by_assignment():
    with pytest.raises(dataclasses.FrozenInstanceError):
        history().rounds = 7


def test_a_history_prints_without_its_models():
    assert "models" not in repr(history())
    assert "weight_erosion" in repr(history())


def test_join_leaves_out_what_the_first_has_already():
    one, two = np.arange(3), np.arange(2, 6)
    assert join(one, two, 1).tolist() == [0, 1, 2, 3, 4, 5]
    assert join(one, two).tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert join(None, two) is None
    assert join(one, None) is None


def test_over_silos_a_mean_counts_every_row_once():
    values = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    np.testing.assert_allclose(by_rows(values, [1, 3, 4]), [3 / 8, 5 / 8])
    np.testing.assert_array_equal(by_rows(values, [0, 0, 0]), [0, 0])
    np.testing.assert_array_equal(by_rows(values[:, :1], [7]), [1, 0])


# Going on


def test_a_run_goes_on_only_as_what_it_was():
    h = run(1)
    with pytest.raises(ValueError, match="other algorithm: weight_erosion"):
        run(2, cf.fedsgd(lr=0.1), resume=h)
    other = cf.Silos.from_arrays([(s.X, s.y) for s in silos().silos], names="abc")
    with pytest.raises(ValueError, match="other silos"):
        cf.simulate(erosion(), cf.models.logistic(), other, 2, resume=h)
    fewer = cf.Silos.from_arrays([(s.X[:-1], s.y[:-1]) for s in silos().silos], names=silos().names)
    with pytest.raises(ValueError, match="other numbers of training rows"):
        cf.simulate(erosion(), cf.models.logistic(), fewer, 2, metrics=("accuracy", "log_loss"), resume=h)


def test_a_run_goes_only_forward():
    with pytest.raises(ValueError, match="3 rounds already"):
        run(2, resume=history())


def test_a_run_does_not_go_on_with_another_model():
    with pytest.raises(ValueError, match="model"):
        cf.simulate(erosion(), cf.models.mlp([4]), silos(), 4, metrics=("accuracy", "log_loss"), resume=history())


def test_a_run_does_not_go_on_with_the_scores_of_another_silo():
    recipe = cf.fedavg(lr=0.3, batch=3)
    h = run(1, recipe, user=0)
    with pytest.raises(ValueError, match="user"):
        run(2, recipe, user=2, resume=h)


def test_a_run_does_not_go_on_with_other_metrics():
    h = run(1)
    with pytest.raises(ValueError, match="metrics"):
        run(2, metrics=["accuracy"], resume=h)
    with pytest.raises(ValueError, match="metrics"):
        run(2, metrics=["balanced_accuracy"], resume=h)


def test_a_run_may_go_on_with_another_learning_rate():
    h = run(1)
    faster = run(2, erosion(lr=0.6), resume=h)
    plain = run(2, resume=h)
    for name in ("w", "b"):
        start, slow, fast = (x.personal(1)[name] for x in (h, plain, faster))
        np.testing.assert_allclose(fast - start, 2 * (slow - start), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("user", [None, 1])
def test_validation_rows_are_measured_beside_test_rows(user):
    silos = two_class_silos((40, 30, 20)).split(test=0.25, validation=0.25, seed=1)
    model = cf.models.logistic()
    history = cf.simulate(cf.fedavg(lr=0.5, batch=8), model, silos, rounds=3, user=user)
    who = range(len(silos)) if user is None else [user]
    losses, counts = [], []
    for i in who:
        X, y = silos[i].rows("validation")
        scores = np.asarray(model.apply(history.personal(i), X))
        losses.append(np.mean(np.log1p(np.exp(-np.where(y == 1, 1, -1) * (scores[:, 1] - scores[:, 0])))))
        counts.append(len(y))
    assert history.validation["log_loss"][-1] == pytest.approx(np.average(losses, weights=counts), rel=1e-5)
    assert history.validation["log_loss"].shape == history.metrics["log_loss"].shape
    assert history.metrics["log_loss"][-1] != history.validation["log_loss"][-1]


def test_without_validation_rows_nothing_is_measured_on_them():
    history = cf.simulate(cf.fedavg(lr=0.5, batch=8), cf.models.logistic(), two_class_silos(), rounds=1)
    assert history.validation == {}
