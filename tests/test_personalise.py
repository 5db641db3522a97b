"""One call from silos and a user to an answer."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import confrere as cf
from confrere.answers import AnswerWarning, words
from confrere.answers.auto import with_prevalence
from confrere.answers.average import exponential_weights
from confrere.answers.worth import doubts_about, doubts_about_amounts, doubts_about_classes
from confrere.borrowing.glm import Rows
from confrere.core import silo_view
from confrere.program import _traffic_of_shapes
from tests.helpers import programs

TRUE = np.array([1.0, -1.0, 0.5])


def hospital(rng, rows, flipped=False, true=TRUE):
    X = rng.normal(size=(rows, len(true)))
    y = (X @ true + rng.logistic(size=rows) > 0).astype(int)
    return X, 1 - y if flipped else y


@pytest.fixture(scope="module")
def silos():
    rng = np.random.default_rng(0)
    pairs = [hospital(rng, 60), hospital(rng, 60), hospital(rng, 60, flipped=True)]
    return cf.Silos.from_arrays(pairs, names=["a", "b", "c"])


@pytest.fixture(scope="module")
def answer(silos):
    return cf.personalise(silos, user="a")


def test_shares_and_prior_sum_to_one(answer):
    assert list(answer.weights) == ["a", "b", "c"]
    assert sum(answer.weights.values()) + answer.prior == pytest.approx(1, abs=1e-5)
    assert min(answer.weights.values()) >= 0


def test_a_silo_with_flipped_labels_is_unrelated_and_an_honest_one_is_not(answer):
    assert answer.unrelated == ("c",)
    assert answer.relevance["c"] < 0.3 < answer.relevance["b"]
    assert answer.weights["b"] > 5 * answer.weights["c"]


def test_the_reason_names_those_who_counted_and_those_who_did_not(answer):
    assert "from b" in answer.reason
    assert "c (" in answer.reason
    assert "unrelated" in answer.reason


@pytest.mark.slow
def test_the_model_is_the_recipes_own(silos, answer):
    history = answer.history
    assert history.algorithm == "evidence"
    own = history.personal("a")
    np.testing.assert_allclose(answer.model.params["w"], own["w"], atol=2e-4)
    np.testing.assert_allclose(answer.model.params["b"], own["b"], atol=2e-4)


def test_predictions_are_those_of_the_parameters(answer):
    X = np.random.default_rng(1).normal(size=(7, 3))
    w, b = answer.model.params["w"], answer.model.params["b"]
    margin = X @ (w[:, 1] - w[:, 0]) + (b[1] - b[0])
    proba = answer.model.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-margin)), atol=1e-5)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(answer.model.predict(X), margin > 0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [(np.zeros((2, 4)), "3 features"), (np.array([[0.0, np.nan, 1.0]]), "x1 is not finite"), (np.zeros(3), "shape")],
)
def test_rows_that_do_not_fit_are_refused_by_name(answer, rows, said):
    with pytest.raises(ValueError, match=said):
        answer.model.predict(rows)


@pytest.mark.slow  # `train --json` shows the same through the command line
def test_an_answer_can_be_written_as_json(answer):
    said = json.loads(json.dumps(answer.to_dict()))
    assert said["user"] == "a"
    assert said["bytes"]["up"][0] == 0 < said["bytes"]["up"][1]


def test_nothing_of_the_user_is_sent_and_what_others_send_is_counted(silos, answer):
    senders = {entry.silo: entry.count for entry in answer.shared}
    assert set(senders) == {"b", "c"}
    assert senders["b"] * 4 == answer.history.bytes_up[:, 1].sum()
    assert answer.history.bytes_up[:, 0].sum() == 0


def test_no_message_holds_a_row(silos):
    """Whatever a silo sends has a fixed size, and no number of it is a value of a row."""
    model, recipe = cf.models.logistic(), cf.evidence(user=0)
    algorithm = recipe.bound.on(model, user=0)
    block = silos.block("train")
    state = algorithm.init(model.init(jax.random.key(0), 3, 2), block)
    inbox, private, own = silo_view(algorithm.mixer, state, block, 1)
    ctx = cf.Ctx(1, True, own.size, 0, jax.random.key(0))
    message, _ = algorithm.client.update(inbox, private, own, ctx)
    assert set(message) == {"x", "told"}
    assert set(message["x"]._fields) == {"h", "H", "n", "loss"}
    sent = np.concatenate([np.ravel(a) for a in message["x"]])
    assert not np.isclose(sent[:, None], np.asarray(own.X).ravel(), rtol=1e-6, atol=0).any()


@pytest.mark.slow
def test_alone_it_is_the_ridge_optimum():
    silos = cf.Silos.from_arrays([hospital(np.random.default_rng(2), 60)], names=["a"])
    found = cf.personalise(silos, "a")
    ridge = cf.simulate(cf.ridge_local(), cf.models.logistic(), silos, 1).personal("a")
    np.testing.assert_allclose(found.model.params["w"], ridge["w"], atol=1e-4)
    assert found.weights == {"a": pytest.approx(1 - found.prior)}
    assert "nothing from other silos" in found.reason


def test_a_user_with_one_class_is_warned_and_may_say_how_frequent_the_other_is():
    rng = np.random.default_rng(3)
    X, _ = hospital(rng, 60)
    silos = cf.Silos.from_arrays([(X, np.zeros(60, int)), hospital(rng, 60), hospital(rng, 60)], names=["a", "b", "c"])
    with pytest.warns(AnswerWarning, match=r"prevalence= \(confrere train: --prevalence\)"):
        trusting = cf.personalise(silos, "a")
    assert trusting.candidates["pair"] == 1.0
    [caution], [advice] = trusting.cautions, trusting.advice  # apart, so that those who cannot follow it leave it out
    assert "prevalence" not in " ".join([trusting.findings, caution, *trusting.notes])
    assert trusting.reason.endswith(f"{caution} {advice}")
    known = cf.personalise(silos, "a", prevalence=0.4)
    assert known.model.predict_proba(X)[:, 1].mean() == pytest.approx(0.4, abs=1e-3)
    assert trusting.model.predict_proba(X)[:, 1].mean() < 0.3
    assert "40%" in known.reason
    assert not known.advice


@pytest.mark.slow
def test_a_user_without_rows_gets_the_pooled_model():
    rng = np.random.default_rng(4)
    silos = cf.Silos.from_arrays([hospital(rng, 60), hospital(rng, 60), hospital(rng, 60)], names=["a", "b", "c"])
    empty = silos.with_parts([np.full(60, 2, np.int8), np.zeros(60, np.int8), np.zeros(60, np.int8)])
    with pytest.warns(AnswerWarning, match="no training rows"):
        found = cf.personalise(empty, "a")
    assert found.candidates["pool"] == 1.0
    X, y = empty["a"].rows("test")
    assert (found.model.predict(X) == y).mean() > 0.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::confrere.answers.AnswerWarning")  # Switzerland has 8 rows of the second class
def test_of_four_hospitals_any_that_is_flipped_is_flagged_by_any_other(shared_data):
    hospitals = cf.data.heart_disease()
    for flipped, name in enumerate(hospitals.names):
        turned = [replace(s, y=1 - s.y) if i == flipped else s for i, s in enumerate(hospitals.silos)]
        silos = replace(hospitals, silos=tuple(turned), source=None)
        for user in set(hospitals.names) - {name}:
            assert name in cf.personalise(silos, user).unrelated


@pytest.mark.slow
def test_a_named_algorithm_is_tuned_and_says_whom_it_listened_to(silos):
    found = cf.personalise(silos, "a", "weight_erosion", grid={"lr": [0.1, 1.0]}, rounds=5)
    assert found.algorithm == "weight_erosion"
    assert found.history.rounds == 5
    assert sum(found.weights.values()) == pytest.approx(1)
    assert "weight_erosion with lr" in found.reason
    assert found.relevance["c"] < found.relevance["b"]


@pytest.mark.slow
def test_a_network_averages_candidates(silos):
    with pytest.warns(cf.answers.AnswerWarning, match="no better than always telling"):  # three rounds are few
        found = cf.personalise(silos, "a", model=cf.models.mlp([4]), rounds=3)
    assert found.algorithm == "auto (average over candidates)"
    assert sum(weight for weight, _ in found.model.members) == pytest.approx(1)
    assert sum(found.weights.values()) == pytest.approx(1)
    proba = found.model.predict_proba(np.zeros((2, 3)))
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)


def test_a_regression_is_answered_in_the_units_of_its_labels():
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(3):
        X = rng.normal(size=(60, 3))
        pairs.append((X, 50 + 10 * X @ TRUE + rng.normal(size=60)))
    found = cf.personalise(cf.Silos.from_arrays(pairs, names=["a", "b", "c"]), "a")
    np.testing.assert_allclose(found.model.params["w"][:, 0], 10 * TRUE, atol=1)
    assert found.model.predict(np.zeros((1, 3)))[0] == pytest.approx(50, abs=1)


def amounts(centre=0.0, spread=1.0):
    """Three silos whose label is a bent function of two features, in any units."""
    rng = np.random.default_rng(6)
    pairs = []
    for rows in (80, 200, 200):
        X = rng.normal(size=(rows, 2))
        pairs.append((X, centre + spread * (np.abs(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=rows))))
    return cf.Silos.from_arrays(pairs, names=["a", "b", "c"]).split(test=0.5, seed=0)


def test_a_network_learns_amounts_whatever_their_units():
    how = {"algorithm": "fedavg", "model": cf.models.mlp([8], "regression"), "grid": {"lr": [0.1, 0.3]}, "rounds": 20}
    plain, large = amounts(), amounts(1000, 200)
    first, second = (cf.personalise(silos, "a", **how) for silos in (plain, large))
    X, y = large["a"].rows("test")
    np.testing.assert_allclose(second.model.predict(X), 1000 + 200 * first.model.predict(X), rtol=1e-3)
    assert np.sqrt(np.mean((second.model.predict(X) - y) ** 2)) < 0.6 * y.std()
    [name] = second.candidates
    assert second.scores[name] == pytest.approx(200 * first.scores[name], rel=1e-3)
    labels = [entry for entry in second.shared if "sum of squares of the training labels" in entry.what]
    assert [(entry.silo, entry.count) for entry in labels] == [("a", 3), ("b", 3), ("c", 3)]
    [sent] = [entry for entry in second.shared if entry.silo == "b" and "rounds of fedavg" in entry.what]
    assert sent.count == 20 * (5 * 2 + 1) * (2 * 8 + 8 + 8 + 1)  # rounds, runs (folds, rates, training), parameters
    assert sent.why == "10 runs to tune it, 1 to train"


@pytest.mark.slow
def test_a_network_averages_candidates_on_amounts_too():
    silos = amounts(1000, 200)
    found = cf.personalise(silos, "a", model=cf.models.mlp([8], "regression"))
    linear = cf.personalise(silos, "a")
    X, y = silos["a"].rows("test")
    error = lambda answer: np.sqrt(np.mean((answer.model.predict(X) - y) ** 2))  # noqa: E731
    assert error(found) < 0.8 * error(linear)
    table = found.comparison
    assert table["test_rmse"][0] == pytest.approx(error(found), rel=1e-3)
    assert table.filter(table["algorithm"] == "local")["rmse"][0] == pytest.approx(found.scores["alone"], rel=0.3)


def test_amounts_that_cannot_be_told_are_said_to_be_so():
    y = amounts(1000, 200)["a"].rows("train")[1]
    spread = y.std()
    [said] = doubts_about("regression", "a", y, 1.01 * spread, 1.01 * spread).guess
    assert said.startswith("a: ")
    assert "no better than its mean" in said
    assert doubts_about("regression", "a", y, 0.99 * spread, 0.99 * spread) == ((), ())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"user": "z"}, "no silo 'z'"),
        ({"user": "a", "algorithm": "fedmagic"}, "no algorithm 'fedmagic'"),
        ({"user": "a", "prevalence": 1.0}, "prevalence"),
        ({"user": "a", "others": "some"}, "others must be"),
        ({"user": "a", "share": "half"}, "share must be"),
        ({"user": "a", "min_cell": 0}, "min_cell"),
    ],
)
def test_what_cannot_be_right_is_refused(silos, asked, said):
    with pytest.raises((ValueError, KeyError), match=said):
        cf.personalise(silos, **asked)


def test_exponential_weights_are_the_formula_and_leave_out_what_diverged():
    scores = np.array([0.50, 0.51, np.nan, 0.9])
    expected = np.exp(-100 * (scores[:2] - 0.5))
    found = exponential_weights(scores, 100, "classification")
    np.testing.assert_allclose(found[:2], expected / expected.sum(), rtol=1e-6)
    assert found[2] == found[3] == 0


def test_prevalence_shifts_the_intercept_alone():
    X = np.column_stack([np.linspace(-2, 2, 9), np.ones(9)])
    before = np.array([1.0, 0.3])
    rows = Rows(X, np.zeros(9, int), np.ones(9))
    theta = with_prevalence(rows, before, cf.models.logistic(), 0.2)
    assert theta[0] == 1.0
    assert (1 / (1 + np.exp(-X @ theta))).mean() == pytest.approx(0.2, abs=1e-6)
    nobody = with_prevalence(rows._replace(weight=np.zeros(9)), before, cf.models.logistic(), 0.2)
    assert 1 / (1 + np.exp(-nobody[-1])) == pytest.approx(0.2, abs=1e-6)


def test_amounts_of_a_table_are_amounts_even_if_they_are_few_whole_numbers():
    import polars as pl

    from confrere.answers.personalise import fitting_model

    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.normal(size=60), "pain": rng.integers(0, 11, 60), "h": ["a", "b"] * 30})
    silos = cf.Silos.from_table(table, label="pain", silo="h", task="regression")
    assert fitting_model(silos).task == "regression"


def noise(rows: int, seed: int):
    """Features and classes that have nothing to do with each other."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)


def test_a_model_that_a_guess_matches_says_so_and_warns():
    silos = cf.Silos.from_arrays([noise(60, 0), noise(60, 1), noise(60, 2)], names=["a", "b", "c"])
    with pytest.warns(AnswerWarning, match="no better than always telling the shares") as caught:
        answer = cf.personalise(silos, "a")
    _, y = silos["a"].rows("train")
    shares = (np.bincount(y.astype(int)) + 1) / (len(y) + 2)
    guess = -np.log(shares[y.astype(int)]).mean()
    score = sum(answer.candidates[name] * answer.scores[name] for name in answer.candidates)
    assert score >= guess
    assert f"against {guess:.3f}" in answer.notes[0]
    assert answer.notes[0] in answer.reason
    assert caught[0].filename == __file__


def test_a_model_that_is_worse_than_training_alone_advises_it():
    y = np.array([0, 1] * 50)
    assert doubts_about_classes("a", y, 0.45, 0.441) == ((), ())
    [said] = doubts_about_classes("a", y, 0.452, 0.441).alone
    assert "log-loss 0.452 against 0.441" in said
    assert "consider training alone (--algorithm ridge_local)" in said
    amounts = np.arange(10.0)
    assert doubts_about_amounts("a", amounts, 2.0, 1.99) == ((), ())
    assert "RMSE 2.000 against 1.900" in doubts_about_amounts("a", amounts, 2.0, 1.9).alone[0]


def test_words():
    said = words.whom_it_listened_to("a", {"a": 0.5, "b": 0.3, "c": 0.01, "d": 0.004}, 0.186)
    assert said == (
        "50 % of what the model knows comes from a's own rows, 30 % from b and 1 % from c and d together; "
        "19 % is a cautious assumption made before any row was seen."
    )
    assert "1 % from b." in words.whom_it_listened_to("a", {"a": 0.99, "b": 0.01}, 0.0)
    assert words.who_was_left_out({"b": 0.1, "c": 0.9}, ["x"], ["y"], {"a": 0.9, "b": 0.05, "c": 0.05}) == [
        "By the user's own rows, b (0.10) looks unrelated and had little say.",
        "What x sent could not be true, and was not used.",
        "y has too few rows to be heard: its messages were empty.",
    ]
    said = words.who_was_left_out({"b": 0.1, "c": 0.2}, [], [], {"a": 0.43, "b": 0.3, "c": 0.27})
    assert said == [
        "By the user's own rows, b (0.10) and c (0.20) look unrelated, yet 57 % of the information is theirs."
    ]
    assert "as good as" in words.was_it_worth_it(0.4, 0.4004, "log-loss")
    assert "better than training alone (0.450)" in words.was_it_worth_it(0.4, 0.45, "log-loss")


@pytest.mark.slow
def test_the_comparison_has_the_named_algorithms_and_test_rows(silos):
    found = cf.personalise(silos.split(test=0.5, seed=0), "a", grid={"lr": [0.3]}, rounds=4)
    table = found.comparison
    assert table["algorithm"].to_list() == [
        "this answer", "evidence", "ridge_local", "local", "fedavg", "fine_tuned", "weight_erosion"
    ]  # fmt: skip
    assert table["log_loss"].is_finite().all()
    assert table["test_log_loss"][0] == pytest.approx(table["test_log_loss"][1], abs=1e-3)


def test_the_comparison_tells_the_loss_of_a_named_answer(silos, monkeypatch):
    monkeypatch.setattr(cf.answers.comparison, "LINEAR", ("ridge_local",))
    found = cf.personalise(silos.split(test=0.5, seed=0), "a", "ridge_local").comparison
    assert found["algorithm"].to_list() == ["this answer", "ridge_local"]
    assert found["log_loss"][0] == found["log_loss"][1]


@pytest.mark.slow
def test_the_comparison_shares_no_more_than_the_answer_did(silos, monkeypatch):
    monkeypatch.setattr(cf.answers.comparison, "LINEAR", ("evidence",))
    halves = silos.split(test=0.5, seed=0)
    summed = cf.personalise(halves, "a", share="sum", prevalence=0.3).comparison
    assert summed["log_loss"][0] is None  # its intercept was moved
    assert summed["log_loss"][1] != cf.personalise(halves, "a").comparison["log_loss"][1]


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        ({"algorithm": "evidence", "share": "parameters", "min_cell": 9}, "share and min_cell"),
        ({"algorithm": "ridge_local", "prevalence": 0.1}, "prevalence"),
        ({"model": cf.models.mlp([2]), "share": "sum"}, "share"),
    ],
)
def test_what_an_algorithm_does_not_heed_is_refused(silos, how, asked):
    with pytest.raises(ValueError, match=f"^{asked}: only algorithm='auto'"):
        cf.personalise(silos, "a", **how)


@pytest.fixture(scope="module")
def signs(silos):
    """The same silos, their labels written as -1 and 1."""
    return cf.Silos.from_arrays([(s.X, 2.0 * s.y - 1) for s in silos.silos], names=silos.names)


def test_labels_that_are_signs_are_refused_with_what_to_write(signs):
    advice = r"write them as 0 and 1 \(y > 0\) and say label_names=\['-1', '1'\]"
    with pytest.raises(ValueError, match=rf"the labels are -1 and 1\. If they are classes, {advice}; if amounts"):
        cf.personalise(signs, "a")
    with pytest.raises(ValueError, match=rf"silo 'a' has the label -1\.0, which is no class number.*{advice}"):
        cf.personalise(signs, "a", model=cf.models.logistic())
    with pytest.raises(ValueError, match=advice):
        cf.Study(signs, cf.models.logistic(), [cf.local(lr=0.1)], seeds=1).run()


def test_what_is_advised_for_signs_gives_predictions_that_are_signs(signs, answer):
    written = [(s.X, s.y > 0) for s in signs.silos]
    advised = cf.personalise(cf.Silos.from_arrays(written, names=signs.names, label_names=["-1", "1"]), "a")
    X = np.random.default_rng(1).normal(size=(7, 3))
    np.testing.assert_array_equal(advised.model.predict(X).astype(float), 2.0 * answer.model.predict(X) - 1)


def test_other_negative_numbers_are_amounts():
    from confrere.answers.personalise import fitting_model

    for labels in ([-1, 0, 1], [-1, -1, -1], [-2, 2, 2]):
        assert fitting_model(cf.Silos.from_arrays([(np.eye(3), labels)])).task == "regression"


# Programs


def test_a_second_user_compiles_nothing_and_its_messages_are_measured_without_a_trace(silos, answer):
    traced = _traffic_of_shapes.cache_info().misses
    with programs() as compiled:
        cf.personalise(silos, "b")
    assert compiled == []
    assert _traffic_of_shapes.cache_info().misses == traced


def test_predictions_for_a_few_rows_more_need_no_other_program(answer):
    X = np.random.default_rng(1).normal(size=(16, 3))
    every = answer.model.predict_proba(X)
    with programs() as compiled:
        few = answer.model.predict_proba(X[:5])
    assert compiled == []
    np.testing.assert_allclose(few, every[:5], rtol=1e-6)
    assert answer.model.predict_proba(X[:0]).shape == (0, 2)
