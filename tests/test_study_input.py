"""What a study is given: algorithms, grids, users and seeds, and what it refuses."""

import functools

import pytest

import confrere as cf
from confrere.study.contenders import LEARNING_RATES, contenders

from .study_helpers import small_silos

LOGISTIC = cf.models.logistic()


def candidates(algorithms, grid=None):
    """The candidates by name."""
    return {c.name: list(c.candidates) for c in contenders(algorithms, grid or {}, {}, 5)}


def test_open_numbers_of_functions_are_filled_in():
    found = candidates([cf.local, cf.weight_erosion])
    assert [c["lr"] for c in found["local"]] == list(LEARNING_RATES)
    assert found["weight_erosion"][0] == {"lr": 0.03, "p_d": 0.01, "p_s": 0.2}


def test_ready_recipes_keep_their_numbers_unless_the_grid_names_them():
    recipes = {"slow": cf.fedavg(lr=0.01), "erode": cf.weight_erosion(user="b", lr=0.5)}
    assert candidates(recipes)["slow"] == [{"lr": 0.01}]
    found = candidates(recipes, {"erode": {"p_d": [0, 0.1]}})
    assert [c["p_d"] for c in found["erode"]] == [0.0, 0.1]
    assert found["slow"] == [{"lr": 0.01}]


def test_a_grid_is_the_product_of_its_values_and_one_algorithms_own_come_first():
    grid = {"lr": [0.1, 1], "weight_erosion": {"lr": 0.5, "p_d": [0.01, 0.1]}, "l2": 0.01}
    found = candidates([cf.local, cf.weight_erosion], grid)
    assert found["local"] == [{"lr": 0.1, "l2": 0.01}, {"lr": 1.0, "l2": 0.01}]
    assert [(c["lr"], c["p_d"], c["l2"]) for c in found["weight_erosion"]] == [(0.5, 0.01, 0.01), (0.5, 0.1, 0.01)]


def test_numbers_that_follow_others_follow_them_in_a_grid():
    assert candidates([cf.fine_tuned], {"lr": [0.1, 1]})["fine_tuned"][1] == {"lr": 1.0, "tune_lr": 1.0}


def test_functions_with_settings_are_algorithms_too():
    (found,) = contenders([functools.partial(cf.fedavg, batch=7)], {"lr": 0.1}, {}, 5)
    assert found.name == "fedavg"
    assert found.static["batch"] == 7


def test_an_algorithm_without_numbers_has_one_candidate():
    def bare():
        return cf.fedsgd(lr=0.1)._replace(hyper={}, name="bare", make=lambda loss: None)

    assert candidates({"bare": bare}) == {"bare": [{}]}


@pytest.mark.parametrize(
    ("algorithms", "grid", "words"),
    [
        ([cf.fedavg, cf.fedavg], {}, "two algorithms are called 'fedavg'"),
        ([], {}, "no algorithm given"),
        ([cf.local], {"p_d": [1]}, "p_d.*none of the algorithms"),
        ([cf.local], {"fedavg": {"lr": 1}}, "'fedavg', which is none"),
        ([cf.local], {"local": {"p_d": 1}}, "none of its numbers"),
        ([cf.local], {"batch": [4, 8]}, "shapes the program"),
        ([cf.local], {"lr": []}, "one finite number or more"),
        ([cf.local], {"lr": [float("nan")]}, "finite"),
        ([cf.local], {"lr": "fast"}, "must be a number"),
        ([cf.local], {"lr": [-1.0]}, "lr"),
        ([cf.evidence], {"candidates": [1, 2]}, "the grid of evidence: candidates must be some of"),
    ],
    ids=[
        "twice",
        "none",
        "unknown",
        "unknown-algorithm",
        "unknown-number",
        "static",
        "empty",
        "nan",
        "word",
        "negative",
        "no-names",
    ],
)
def test_what_cannot_be_right_is_refused(algorithms, grid, words):
    with pytest.raises(ValueError, match=words):
        candidates(algorithms, grid)


def test_what_is_no_algorithm_is_refused():
    for wrong in (cf.fedavg(lr=0.1), "fedavg", 3):
        with pytest.raises(TypeError):
            cf.Study(small_silos(), LOGISTIC, wrong)
    with pytest.raises(TypeError, match="must return a Recipe"):
        candidates({"odd": lambda: 3})
    with pytest.raises(ValueError, match="needs a value for 'strength'"):
        candidates({"odd": lambda strength: cf.local(lr=strength)})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"users": ["z"]}, KeyError, "no silo 'z'"),
        ({"users": "a"}, ValueError, "users must be 'all'"),
        ({"users": []}, ValueError, "no user"),
        ({"seeds": 0}, ValueError, "1 seed or more"),
        ({"seeds": [1, 1]}, ValueError, "once"),
        ({"seeds": [-1]}, ValueError, "0 or more"),
        ({"seeds": "ten"}, TypeError, "seeds"),
        ({"folds": 1}, ValueError, "2 folds"),
        ({"tune": "test"}, ValueError, "tune must be"),
        ({"tune": None}, ValueError, "one value each"),
        ({"criterion": "rmse"}, ValueError, "criterion"),
        ({"metrics": []}, ValueError, "name one"),
        ({"metrics": ["speed"]}, ValueError, "speed"),
        ({"rounds": 0}, ValueError, "rounds"),
        ({"others": "none"}, ValueError, "others"),
        ({"memory": -5}, ValueError, "memory must be a finite number, 1 or more, not -5"),
        ({"memory": 0}, ValueError, "memory must be"),
        ({"memory": float("nan")}, ValueError, "memory must be"),
        ({"memory": "1 GB"}, ValueError, "memory must be a number"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        cf.Study(small_silos(), LOGISTIC, [cf.local], **{"seeds": 1, "rounds": 1, **options}).run()


def test_silos_must_be_silos_and_agree():
    with pytest.raises(TypeError, match="function that makes them"):
        cf.Study(lambda seed: [seed], LOGISTIC, [cf.local(lr=1)], seeds=1).run()
    with pytest.raises(ValueError, match="seed 1 has the silos"):
        cf.Study(lambda seed: small_silos((20, 20, 20)[: 3 - seed]), LOGISTIC, [cf.local(lr=1)], seeds=2).run()


def test_a_silo_called_all_is_refused_beside_others():
    rows = [(s.X, s.y) for s in small_silos().silos]
    named = cf.Silos.from_arrays(rows, names=["a", "all", "c"])
    for users in ("all", ["a"], ["all"]):
        with pytest.raises(
            ValueError, match=r"a silo is called 'all', which stands for the mean over users.*rename it"
        ):
            cf.Study(named, LOGISTIC, [cf.local(lr=0.1)], users, seeds=1).run()


def test_rounds_may_differ_by_algorithm():
    recipes = {"short": cf.local(lr=0.1), "long": cf.local(lr=0.1)}
    study = cf.Study(small_silos(), LOGISTIC, recipes, rounds={"short": 1}, baselines=False)
    assert {c.name: c.rounds for c in study.contenders} == {"short": 1, "long": 30}


def test_a_baseline_that_exists_is_added_once(monkeypatch):
    def ridge_local(l2=1.0):
        return cf.local(lr=l2)._replace(name="ridge_local")

    monkeypatch.setitem(vars(cf), "ridge_local", ridge_local)
    study = cf.Study(small_silos(), LOGISTIC, [cf.local(lr=0.1)], seeds=1)
    assert [(c.name, c.rounds) for c in study.contenders] == [("local", 30), ("ridge_local", 1)]
    assert len(cf.Study(small_silos(), LOGISTIC, [cf.local(lr=0.1), ridge_local], seeds=1).contenders) == 2
    assert len(cf.Study(small_silos(), LOGISTIC, [cf.local(lr=0.1)], baselines=False).contenders) == 1
    assert len(cf.Study(small_silos(), cf.models.mlp(), [cf.local(lr=0.1)]).contenders) == 1
