"""The report: every number on the page comes from the data, and sentences say what the numbers say."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import jax
import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats
from sklearn import metrics as sk

import confrere as cf
from confrere.answers import Predictor
from confrere.program import Setup, expected_traffic
from confrere.report import figures, report_on, write_report
from confrere.report import grouping as groups
from confrere.report.contents import Effect, Estimate, Gain, Group
from confrere.report.costs import cost_of
from confrere.report.helping import (
    answer_in_words,
    helped,
    main_algorithm,
    rivals_of,
    verdict_on,
    was_it_worth_it,
)
from confrere.report.intervals import mean, share
from confrere.report.learning import difference_in_words, importance, learned
from confrere.report.listening import rounds_of, when_in_words
from confrere.report.metrics import between, gained, signed, within, won_or_lost
from confrere.report.page import page
from confrere.report.predictions import Predicted, label_of
from confrere.report.style import STYLE
from confrere.report.sureness import bins_of, tuning_in_words, what_is_measured
from confrere.report.svg import ticks, told_apart
from confrere.simulation.inputs import initial_params
from tests.report_helpers import (
    NAMES,
    hospital_answers,
    hospital_contents,
    hospital_silos,
    hospital_study,
    hospital_table,
    with_rounds,
)
from tests.study_helpers import cell, result


@pytest.fixture(scope="module")
def contents():
    return hospital_contents()


@pytest.fixture(scope="module")
def first(contents):
    return contents.hospitals[0]


@pytest.mark.parametrize(("hits", "rows"), [(0, 7), (7, 7), (3, 10), (50, 90), (1, 1)])
def test_shares_have_wilsons_interval(hits, rows):
    wanted = stats.binomtest(hits, rows).proportion_ci(method="wilson")
    assert share(hits, rows) == pytest.approx((hits / rows, wanted.low, wanted.high), abs=1e-12)


def test_means_have_students_interval():
    values = np.array([1.0, 4.0, 2.0, 7.0])
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert mean(values) == pytest.approx((3.5, low, high))
    assert mean(values[:1]) == (1.0, None, None)


def test_gains_are_the_studys_paired_differences_with_better_to_the_right(first):
    for gain in first.help.gains:
        [row] = [
            r for r in hospital_study().paired("auto", gain.rival, gain.metric).to_dicts() if r["user"] == first.name
        ]
        sign = 1 if gain.metric == "accuracy" else -1
        assert gain.gain.value == pytest.approx(sign * row["difference"])
        assert sorted(gain.gain[1:]) == pytest.approx(sorted(sign * row[k] for k in ("low", "high")))
        assert gain.gain.low <= gain.gain.value <= gain.gain.high
        assert (gain.wins, gain.ties, gain.losses) == (row["wins"], row["ties"], row["losses"])


def test_calibration_is_held_against_training_alone_and_the_model_for_all(contents, first):
    gains = {g.rival: g for g in first.help.gains if g.metric == "brier"}
    assert set(gains) == {"ridge_local", "fedavg"}
    told = [said for said in first.help.words if said.startswith("Calibration and sharpness (Brier score) is ")]
    assert len(told) == 2
    assert all("95 % interval" in said for said in told)
    assert "Calibration and sharpness (Brier score): gain of Genève" in page(contents)


def test_the_mean_over_users_is_the_studys(contents):
    study = hospital_study()
    for score in contents.overall.scores:
        assert score.mean == pytest.approx(study.values(score.algorithm, "all", score.metric, "last").mean())


def test_the_verdict_follows_the_intervals():
    assert verdict_on(Estimate(-0.1, -0.2, -0.01), 5) == "worse"
    assert verdict_on(Estimate(0.1, 0.0, 0.2), 5) == "unclear"
    assert was_it_worth_it(["worse", "unclear"]) == "no"
    assert was_it_worth_it(["unknown", "unknown"]) == was_it_worth_it([]) == "unknown"


def test_an_uncertain_answer_says_which_way_it_leans():
    lean = lambda *values: answer_in_words(  # noqa: E731
        "a", "unclear", [Gain("ridge_local", m, Estimate(v, -1, 1), 1, 0, 0, "unclear")
                         for m, v in zip(("accuracy", "log_loss"), values, strict=True)])  # fmt: skip
    assert "in favour of it" in lean(0.1, 0.2)
    assert "against it" in lean(-0.1, -0.2)
    assert "both ways" in lean(0.1, -0.2)


def of_splits(*differences, metric="accuracy", rival="ridge_local"):
    """A study in which auto is better by so much in every split."""
    cells = [cell(a, "a", s, curves={metric: np.array([[0.5, v]])}, curve=(0, 0))
             for s, gain in enumerate(differences) for a, v in (("auto", 0.5 + gain), (rival, 0.5))]  # fmt: skip
    return helped(result(cells, (metric,), criterion=metric, task="classification"), "a", "auto", "last")


def test_two_splits_have_no_interval_and_fewer_than_five_no_verdict():
    two, four, five = (of_splits(*(np.linspace(0.1, 0.12, n))) for n in (2, 4, 5))
    assert two.gains[0].gain == Estimate(pytest.approx(0.11), None, None)
    assert (two.worth, four.worth, five.worth) == ("unknown", "unknown", "yes")
    assert four.gains[0].gain.low > 0
    assert four.words[0] == "Not known: for a it was measured on 4 splits only, where a verdict needs 5 or more."


def test_a_difference_that_is_the_same_in_every_split_is_no_proof():
    found = of_splits(*[-1 / 15] * 6)
    assert found.worth == "unclear"
    assert "chance explains" not in found.words[0]
    assert "a loss of 6.7 points (the same in every split), better in 0 of 6" in found.words[1]


def test_accuracies_cannot_differ_by_more_than_all():
    found = of_splits(-0.5, 0.5, -0.4)
    assert found.gains[0].gain[1:] == (-1.0, 1.0)
    assert "95 % interval of the gain −100.0 to +100.0" in found.words[1]


def test_an_uncertain_answer_speaks_of_training_alone_and_tells_what_is_clear_against_the_model_for_all():
    values = {"auto": [0.7, 0.71, 0.72, 0.69, 0.7], "ridge_local": [0.71, 0.7, 0.73, 0.68, 0.7], "fedavg": [0.5] * 5}
    cells = [cell(a, "a", s, (0.5, v)) for a, every in values.items() for s, v in enumerate(every)]
    found = helped(result(cells, criterion="accuracy", task="classification"), "a", "auto", "last")
    assert found.worth == "unclear"
    assert "every interval" not in found.words[0]
    assert found.words[0].startswith("Not certain: for a the")
    assert found.words[0].endswith("Than one model for all (FedAvg) it is clearly better by accuracy.")


def test_without_auto_the_report_is_about_the_first_that_is_no_baseline():
    study = result([cell("ridge_local"), cell("weight_erosion"), cell("fedavg")])
    assert main_algorithm(study) == "weight_erosion"
    assert rivals_of(study, "weight_erosion") == ("ridge_local", "fedavg")


@pytest.mark.parametrize(("studied", "main", "rivals", "words"), [
    (("ridge_local", "fedavg"), "fedavg", ("ridge_local",), "Yes: learning together helped a"),
    (("weight_erosion", "fedavg"), "weight_erosion", ("fedavg",), "Not known: training alone was not studied"),
    (("fedsgd", "local"), "fedsgd", ("local",), "Yes: learning together helped a"),
    (("local", "ridge_local"), "local", ("ridge_local",), "Not known: only training alone was studied"),
    (("ridge_local",), "ridge_local", (), "Not known: only training alone was studied"),
    (("ridge_local", "auto"), "auto", ("ridge_local",), "Yes: learning together helped a"),
])  # fmt: skip
def test_the_verdict_rests_on_training_alone_or_there_is_none(studied, main, rivals, words):
    better = {"auto": 0.9, "weight_erosion": 0.9, "fedavg": 0.8, "fedsgd": 0.8}
    cells = [cell(a, "a", s, (0.5, better.get(a, 0.6) + s / 1000 * (a == main))) for a in studied for s in range(5)]
    study = result(cells, criterion="accuracy", task="classification")
    assert (main_algorithm(study), rivals_of(study, main)) == (main, rivals)
    found = helped(study, "a", main, "last")
    assert found.words[0].startswith(words)
    assert found.worth == ("yes" if words.startswith("Yes") else "unknown")
    silent = "Nothing is said of one model for all (FedAvg)" in found.words[-1]
    assert silent == ("fedavg" not in studied and main not in ("local", "ridge_local"))


def test_alone_is_the_ridge_optimum_of_the_users_training_rows(first):
    X, y = hospital_silos()[0].rows("train")
    X1 = np.column_stack([X, np.ones(len(y))])
    ridge = np.append(np.ones(X.shape[1]), 0.1)
    loss = lambda w: np.logaddexp(0, np.where(y == 1, -1, 1) * (X1 @ w)).sum() + 0.5 * ridge @ w**2  # noqa: E731
    best = optimize.minimize(loss, np.zeros(X1.shape[1]), tol=1e-10).x
    np.testing.assert_allclose([e.alone for e in first.learned.effects], best, atol=2e-3)
    assert [e.name for e in first.learned.effects] == [*hospital_silos().feature_names, "intercept"]


def test_coefficients_say_for_what_step_they_are(contents, first):
    per = {e.name: e.per for e in first.learned.effects}
    known = hospital_silos().source.pooled()["age"].drop_nulls()
    assert per["age"].startswith("per standard deviation (")
    assert float(per["age"][24:-1]) == pytest.approx(known.std(), rel=0.1)
    assert per["sex=woman"] == "woman against man"
    assert per["age=missing"] == "missing against known"
    assert "per unit of the feature" not in page(contents)


def test_the_coefficient_of_a_column_of_zeros_and_ones_is_that_of_one_against_zero():
    table = hospital_table().with_columns(smokes=(pl.col("age").fill_null(0) % 2).cast(pl.Int64))
    silos = cf.Silos.from_table(table, label="ill", silo="hospital").split(test=0.5, seed=0)
    place = silos.feature_names.index("smokes")
    w = np.zeros((len(silos.feature_names), 2), np.float32)
    w[place] = [-0.25, 0.25]
    predictor = Predictor.of(cf.models.logistic(), [(1.0, {"w": w, "b": np.zeros(2, np.float32)})], silos, 0)
    [effect] = [e for e in learned(predictor, None, silos, 0).effects if e.name == "smokes"]
    rows = table.head(1).with_columns(smokes=pl.Series([1])), table.head(1).with_columns(smokes=pl.Series([0]))
    odds = [p[1] / p[0] for [p] in map(predictor.predict_proba, rows)]
    assert effect.per == "yes against no"
    meanings = {"smokes": {0: "others", 1: "smokers"}}
    [named] = [e for e in learned(predictor, None, silos, 0, meanings).effects if e.name == "smokes"]
    assert (named.per, named.together) == ("smokers against others", effect.together)
    assert effect.together == pytest.approx(np.log(odds[0] / odds[1]), rel=1e-4)


def test_the_outcome_is_named(contents):
    assert "What is predicted is ill." in page(contents)
    rng = np.random.default_rng(0)
    table = hospital_table().with_columns(days=pl.Series(rng.normal(9, 3, 270)), grade=pl.Series(["a", "b", "c"] * 90))
    for label, model in (("days", cf.models.linear()), ("grade", cf.models.logistic())):
        silos = cf.Silos.from_table(table, label=label, silo="hospital").split(test=0.5, seed=0)
        params = model.init(jax.random.key(0), len(silos.feature_names), 1 if label == "days" else 3)
        predictor = Predictor.of(model, [(1.0, jax.tree.map(np.asarray, params))], silos, 0)
        assert label in what_is_measured(predictor, silos, label_of(silos))
        assert label in learned(predictor, None, silos, 0).unit or label == "grade"


def test_together_is_the_answers_model(first):
    params = hospital_answers()[first.name].model.params
    wanted = np.append(params["w"][:, 1] - params["w"][:, 0], params["b"][1] - params["b"][0])
    np.testing.assert_allclose([e.together for e in first.learned.effects], wanted, rtol=1e-6)


def test_scores_on_test_rows_are_scikit_learns(first):
    X, y = hospital_silos()[0].rows("test")
    proba = hospital_answers()[first.name].model.predict_proba(X)[:, 1]
    scores = {name: values["together"] for name, values in first.sureness.scores.items()}
    assert scores["brier"] == pytest.approx(sk.brier_score_loss(y, proba), abs=1e-6)
    assert scores["log_loss"] == pytest.approx(sk.log_loss(y, proba), abs=1e-6)
    assert scores["accuracy"] == sk.accuracy_score(y, proba > 0.5)
    assert set(first.sureness.scores["brier"]) == {"together", "alone", "always the share among training rows"}


def test_bins_hold_every_test_row_once_and_have_enough_of_them(first):
    bins = first.sureness.bins
    assert sum(b.rows for b in bins) == first.sureness.test_rows == 45
    assert min(b.rows for b in bins) >= 20
    assert [b.predicted for b in bins] == sorted(b.predicted for b in bins)
    X, y = hospital_silos()[0].rows("test")
    proba = hospital_answers()[first.name].model.predict_proba(X)[:, 1]
    lowest = np.argsort(proba, kind="stable")[: bins[0].rows]
    assert bins[0].observed == share(int(y[lowest].sum()), len(lowest))
    assert bins[0].predicted == pytest.approx(proba[lowest].mean(), abs=1e-6)


def test_few_test_rows_are_one_bin_and_are_said_to_be_few(first):
    few = np.linspace(0, 1, 12)
    assert [b.rows for b in bins_of(Predicted(few, few > 0.5, few > 0.5, True), 20)] == [12]
    assert any("are few: read intervals" in said for said in first.sureness.words)


def test_groups_are_the_test_rows_of_the_user_by_the_recorded_column(first):
    frame = pl.DataFrame(hospital_silos().source.pooled())
    part = np.concatenate([s.part for s in hospital_silos().silos])
    user = np.arange(len(part)) < 90
    [by_sex] = [g for g in first.groupings if g.column == "sex"]
    for group in by_sex.groups:
        rows = user & (part == 2) & (frame["sex"].to_numpy() == group.name)
        y = hospital_silos()[0].y[rows[:90]]
        assert group.rows == rows.sum()
        assert group.observed == share(int(y.sum()), len(y))
    assert {g.name for g in by_sex.groups} == {"man", "woman"}


def test_ages_are_banded_and_no_group_is_below_the_minimum(contents):
    for hospital in contents.hospitals:
        for grouping in hospital.groupings:
            assert all(g.rows >= contents.min_group for g in grouping.groups)
            assert sum(g.rows for g in grouping.groups) == hospital.sureness.test_rows


def test_a_small_group_cannot_be_had_by_subtraction():
    labels = np.array(["a"] * 30 + ["b"] * 3)
    assert [name for name, _ in groups.large_enough(labels, ["a", "b"], 5)] == ["a or b"]
    found = groups.grouping("ward", labels, Predicted(*np.ones((3, 33)), True), 5, "patients")
    assert found.groups == ()
    assert "below 5" in found.words[0]


def test_small_age_bands_are_joined_in_their_order():
    ages = np.array([10.0, 20, 21, 30, 50, 51, 52, 70, 71, 72, 73, 74, 75, 76])
    found = groups.large_enough(*groups.labels_of("age", ages), 5)
    assert [(name, int(rows.sum())) for name, rows in found] == [("under 65", 7), ("65 and over", 7)]


def test_a_prediction_that_is_too_low_does_not_look_like_the_end_of_the_interval():
    group = groups.Group("men", 16, Estimate(0.7), 0.436, Estimate(0.69, 0.4404, 0.86))
    assert groups.told_of(group, True) == ("43.6 %", "69.0 % (44.0 to 86.0)")
    assert groups.told_of(replace(group, predicted=0.5), True) == ("50 %", "69 % (44 to 86)")


def test_a_run_of_one_round_has_whole_rounds_on_its_axis():
    for values, rounds in (([0.7, 0.5, 0.4], ["0", "1", "2"]), ([0.7, 0.5], ["0", "1"])):
        shown = figures.curves("Log-loss", {"a": values}, [("a", 0, "one")], "", "log-loss")
        assert re.findall(r'middle" class="tick">([^<]*)<', shown) == rounds


def test_a_column_that_is_not_there_is_refused_with_those_that_are(contents):
    silos = hospital_silos()
    with pytest.raises(ValueError, match=r"no column 'gender'; there are age, pressure, sex"):
        report_on(silos, [0], hospital_study(), hospital_answers(), groups=["gender"])


def test_by_default_groups_are_sex_and_age_whatever_their_case():
    assert groups.chosen_columns(["Age", "weight", "SEX"], None) == ["SEX", "Age"]
    assert groups.chosen_columns(["x"], None) == []


def test_codes_are_called_what_they_mean():
    found = report_on(
        hospital_silos(), [0], hospital_study(), hospital_answers(), groups=["sex"], meanings={"sex": {"man": "men"}}
    )
    assert {g.name for g in found.hospitals[0].groupings[0].groups} == {"men", "woman"}


def test_ticks_of_long_numbers_do_not_touch():
    for low, high in [(-0.046, 0.058), (-0.0004, 0.0009), (0, 1)]:
        scale = figures.Scale(low, high, 170, 346)
        at = figures.apart(scale, 1)
        widest = max(len(f"{v:.{figures.digits_of(at)}f}") for v in at)
        assert len(at) >= 2
        assert all(scale(b) - scale(a) > 6.5 * widest for a, b in pairwise(at))


def test_groups_whose_predictions_are_off_are_named():
    off = Group("men", 50, Estimate(0.8, 0.7, 0.9), 0.9, Estimate(0.5, 0.4, 0.6))
    fine = Group("women", 50, Estimate(0.5, 0.4, 0.6), 0.5, Estimate(0.5, 0.4, 0.6))
    best, said = groups.groups_in_words("sex", [off, fine], True)
    assert "80 % (70 to 90) for men, 50 % (40 to 60) for women; the intervals do not overlap" in best
    assert said == "For men predictions are too high: 90 % predicted, 50 % (40 to 60) observed."


def test_a_turned_direction_is_told():
    said = difference_in_words((Effect("age", 0.5, -0.5), Effect("sex", 2.0, 2.0)))
    assert "changed age most: −0.50 alone, +0.50 together" in said[1]
    assert said[2] == "The direction is another one than alone for age."
    assert "the same as a model trained alone" in difference_in_words((Effect("age", 0.5, 0.501),))[1]


def test_listening_is_the_answers(contents):
    for hospital in contents.hospitals:
        answer = hospital_answers()[hospital.name]
        assert dict(hospital.listening.shares) == dict(answer.weights)
        assert dict(hospital.listening.relevance) == dict(answer.relevance)
        assert hospital.listening.rounds == {}
        assert sum(hospital.listening.shares.values()) + hospital.listening.prior == pytest.approx(1, abs=1e-5)


def test_what_was_shared_adds_up_to_what_the_answer_lists(contents):
    for hospital in contents.hospitals:
        listed = sum(entry.count for entry in hospital_answers()[hospital.name].shared)
        assert sum(sum(s.numbers.values()) for s in hospital.cost.sent) == listed


def test_training_alone_sends_nothing_and_fedavg_what_its_rounds_take(first):
    traffic = {t.algorithm: t for t in first.cost.traffic}
    assert traffic["ridge_local"].bytes_total == 0
    assert (traffic["fedavg"].bytes_each, traffic["fedavg"].bytes_total) == (5 * 84, 5 * 252)
    assert traffic["auto"].rounds == 6


def test_of_auto_it_is_said_why_more_is_received_than_sent(first):
    answer = hospital_answers()[first.name]
    said = f"in every round {answer.user} is given a table with room for every silo's first message"
    for main, there in (("auto", True), ("fedavg", False)):
        assert (said in " ".join(cost_of(answer, hospital_study(), main).words)) is there


def test_auto_hands_its_user_more_bytes_than_the_others_send():
    silos, model = cf.Silos.from_arrays([(np.eye(20, 3), np.arange(20) % 2)] * 4), cf.models.logistic()
    params = initial_params(model, silos, jax.random.key(0))
    setup = Setup(cf.evidence(user=0).bound, model)
    sent = expected_traffic(setup, {"user": 0}, params, silos.block("train", 20))
    assert sent.down > 3 * sent.up > 0


def test_numbers_are_written_for_people():
    assert signed(-0.5, 1) == "−0.5"
    assert gained("accuracy", 0.012) == "+1.2 points"
    assert between("log_loss", Estimate(0.1)) == "too few splits for an interval"
    assert between("accuracy", Estimate(-0.067, -0.067, -0.067)) == "the same in every split"
    assert won_or_lost("accuracy", -0.017) == "a loss of 1.7 points"
    assert within(Estimate(0.5, 0.25, 0.75), True) == "50 % (25 to 75)"


def test_labels_that_are_cut_can_still_be_told_apart():
    long = [f"blood pressure in the {when}" for when in ("morning", "evening", "night")]
    same = ["x" * 40 + "a" * 40, "x" * 40 + "b" + "a" * 39, "x" * 80]
    for labels in (long, same, [*long, "age"], ["age", "sex"]):
        found = told_apart(labels, 19)
        assert len(set(found)) == len(labels)
        assert all(len(label) <= 19 for label in found)
    assert told_apart(["age", "sex"], 19) == ["age", "sex"]


def test_weights_that_are_rows_are_told_as_shares():
    names = ("a", "b", "c")
    history = SimpleNamespace(names=names, weights=np.array([[[90.0, 60, 150]] * 3] * 2), per_silo=True)
    answer = SimpleNamespace(user="a", history=history)
    rounds = rounds_of(answer)
    assert rounds["c"] == (0.5, 0.5)
    [said] = when_in_words(answer, False, rounds)
    assert said == "The others together had 70 % of the weight in the first of 2 rounds, 70 % in the last."


def test_what_is_fixed_is_not_said_to_need_no_tuning():
    config = {"algorithms": {"auto": {"candidates": [{}]}, "ridge_local": {"candidates": [{"ridge": 1.0}]}}}
    assert tuning_in_words(config) == [
        "Not tuned, but fixed: training alone (ridge 1).", "Nothing to tune: learning together (auto).",
    ]  # fmt: skip


def test_the_page_names_its_split_and_its_keys(contents):
    one = report_on(hospital_silos(), [0], hospital_study(), hospital_answers(), seed=2)
    assert "one of the 3 splits, that of seed 2" in page(one)
    assert one.engineer.key == {str(s): tuple(np.asarray(jax.random.key_data(jax.random.key(s)))) for s in range(3)}
    assert "seed 1: 0 1; seed 2: 0 2" in page(contents)


def test_without_intervals_no_caption_speaks_of_them():
    cells = [cell(a, u, curve=(0.5, v)) for u in NAMES for a, v in (("auto", 0.8), ("ridge_local", 0.7))]
    study = result(cells, criterion="accuracy", task="classification")
    text = page(report_on(hospital_silos(), NAMES, study, hospital_answers()))
    assert "Lines are 95 % intervals" not in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "There are too few splits for intervals." in text


def test_ticks_are_round_and_inside():
    for low, high in [(0, 1), (-0.031, 0.012), (-3, 17), (0.4, 0.41), (-1e-3, 2e-3)]:
        found = ticks(low, high)
        assert 2 <= len(found) <= 8
        assert low - 1e-9 <= min(found)
        assert max(found) <= high + 1e-9


def test_a_single_split_has_no_interval_and_says_so():
    cells = [cell(a, u, curve=(0.5, v)) for u in ("a", "b") for a, v in (("auto", 0.8), ("ridge_local", 0.7))]
    study = result(cells, criterion="accuracy", task="classification")
    found = helped(study, "a", "auto", "last")
    assert found.worth == "unknown"
    assert found.gains[0].gain == Estimate(pytest.approx(0.1), None, None)
    assert "single split" in found.words[0]


def test_contents_are_json_and_hold_what_the_page_says(contents):
    plain = json.loads(json.dumps(contents.to_dict(), allow_nan=False))
    assert [h["name"] for h in plain["hospitals"]] == list(hospital_silos().names)
    assert plain["hospitals"][0]["help"]["words"][0] == contents.hospitals[0].help.words[0]


class Outline(HTMLParser):
    """Which elements are open, the ids, the links, and whatever would load something."""

    VOID = ("meta", "link", "br", "line", "rect", "circle", "path", "polygon")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.loads, self.counts = [], [], [], [], {}

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.loads += [v for k, v in attrs if k in ("src", "srcset", "xlink:href") or (tag == "link" and k == "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    assert found.open == []
    return found


def test_the_page_is_well_formed_links_to_itself_and_loads_nothing(contents):
    found = outline(page(contents))
    assert len(set(found.ids)) == len(found.ids)
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert found.loads == ["data:,"]
    assert found.counts.get("script", 0) == 0
    assert "url(" not in page(contents)


def test_names_are_escaped(contents):
    text = page(contents)
    assert "<b>Zürich" not in text
    assert "&lt;b&gt;Zürich&lt;/b&gt; &amp; co" in text


def test_the_questions_come_in_order_for_every_hospital(contents):
    heads = re.findall(r"<h3[^>]*>(\d)\. ", page(contents))
    assert heads == list("123456789") * 3


def test_every_figure_has_words(contents):
    text = page(with_rounds(contents))
    found = outline(text)
    for said in re.findall(r'aria-describedby="([^"]+)"', text):
        assert re.search(rf'<figcaption id="{said}">[^<]{{20,}}', text)
    assert found.counts["svg"] == found.counts["figcaption"] == found.counts["figure"]
    assert "Weights that &lt;b&gt;Zürich" in text


def test_one_hospital_has_no_overview_and_nothing_to_unfold(contents):
    text = page(replace(contents, hospitals=contents.hospitals[:1], overall=None))
    assert "at a glance" not in text
    assert 'class="hospital"' not in text
    assert re.findall(r"<h2[^>]*>(\d)\. ", text) == list("123456789")


def test_the_page_says_what_the_user_chose(contents):
    text = page(replace(contents, overridden=("silos: Genève and basel",)))
    assert "Chosen by the user: silos: Genève and basel." in text


def test_the_report_is_written_where_it_is_asked_for_and_is_the_same_every_time(contents, tmp_path):
    first = write_report(contents, tmp_path / "deep" / "report.html")
    second = write_report(contents, str(tmp_path / "other.html"))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": []}, "name one at least"),
        ({"answers": {}}, "no answer for Genève"),
        ({"main": "ditto"}, "the study has no 'ditto'"),
        ({"min_group": 0}, "min_group"),
    ],
)
def test_what_is_missing_is_named(change, words):
    given = {"users": ["Genève"], "answers": hospital_answers(), **change}
    with pytest.raises(ValueError, match=words):
        report_on(hospital_silos(), given.pop("users"), hospital_study(), given.pop("answers"), **given)


def test_without_test_rows_groups_and_calibration_say_so():
    silos = cf.Silos.from_table(hospital_silos().source.pooled().with_columns(
        ill=np.where(np.concatenate([s.y for s in hospital_silos().silos]) == 1, "yes", "no"),
        hospital=np.repeat(hospital_silos().names, 90)), label="ill", silo="hospital")  # fmt: skip
    found = report_on(silos, ["basel"], hospital_study(), {"basel": hospital_answers()["basel"]}).hospitals[0]
    assert found.groupings == ()
    assert "set aside for test" in found.without_groups
    assert "cannot be told" in found.sureness.words[0]
    assert NAMES[2] == found.name


@pytest.mark.slow
def test_answers_beside_a_study_measure_what_the_study_measures():
    from confrere.answers.joining import with_answers

    silos = hospital_silos()
    study = cf.Study(silos, cf.models.logistic(), {"auto": cf.evidence, "ridge_local": cf.ridge_local}, seeds=1).run()
    answers = {name: cf.personalise(silos, name) for name in NAMES}
    cells, algorithms = study.of("ridge_local", "all"), {"ridge_local": study.config["algorithms"]["ridge_local"]}
    rest = cf.StudyResult({**study.config, "algorithms": algorithms}, tuple(cells))
    joined = with_answers(rest, {0: (silos, answers)})
    assert joined.algorithms == ("auto", "ridge_local")
    for mine, theirs in zip(joined.of("auto", "all"), study.of("auto", "all"), strict=True):
        for metric in study.config["metrics"]:
            assert mine.value(metric) == pytest.approx(theirs.value(metric), abs=2e-3)
        for field in ("user", "train_rows", "test_rows", "round", "bytes_each", "bytes_total"):
            assert getattr(mine, field) == getattr(theirs, field)
        np.testing.assert_array_equal(mine.partners, theirs.partners)


def test_answers_for_other_seeds_or_users_than_the_studys_are_refused():
    from confrere.answers.joining import with_answers

    study, silos, answers = hospital_study(), hospital_silos(), hospital_answers()
    one = cf.StudyResult({**study.config, "seeds": [0]}, tuple(c for c in study.cells_ if c.seed == 0))
    for answered, name, words in (
        ({0: (silos, answers)}, "auto", "already"),
        ({1: (silos, answers)}, "new", r"seeds \[1\]"),
        ({0: (silos, {NAMES[0]: answers[NAMES[0]]})}, "new", "no answer for Genève, basel"),
    ):
        with pytest.raises(ValueError, match=words):
            with_answers(one, answered, name)


def made_regression() -> tuple[cf.Silos, cf.Answer]:
    """Two silos of amounts, and an answer whose model is the law."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 80, 2))
    silos = cf.Silos.from_arrays([(x, x @ [2.0, -1.0] + rng.normal(size=80)) for x in X], names=["a", "b"])
    silos = silos.split(test=0.5, seed=0)
    params = {"w": np.array([[2.0], [-1.0]], np.float32), "b": np.zeros(1, np.float32)}
    predictor = Predictor.of(cf.models.linear(), [(1.0, params)], silos, 0)
    return silos, replace(hospital_answers()["basel"], user="a", model=predictor, weights={"a": 0.5, "b": 0.5})


def test_a_regression_is_told_in_errors():
    silos, answer = made_regression()
    cells = [cell(a, "a", s, curves={"rmse": np.array([[2.0, v + s / 10]])}, curve=(0, 0))
             for a, v in (("auto", 1.0), ("ridge_local", 1.2)) for s in (0, 1)]  # fmt: skip
    study = result(cells, ("rmse",), criterion="rmse", task="regression", tune=None)
    contents = report_on(silos, ["a"], study, [answer], groups=["x0"], label="length of stay")
    [found] = contents.hospitals
    assert "What is predicted is length of stay." in page(contents)
    assert found.sureness.measured == "length of stay"
    assert found.learned.unit.startswith("change of the predicted length of stay ")
    X, y = silos["a"].rows("test")
    error = y - X @ [2.0, -1.0]
    assert found.sureness.scores["rmse"]["together"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-5)
    assert found.help.gains[0].gain.value == pytest.approx(0.2)
    assert sum(g.rows * g.right.value for g in found.groupings[0].groups) == pytest.approx(
        np.abs(error).sum(), rel=1e-5
    )
    text = page(contents)
    assert "mean absolute error" in text.casefold()
    assert "log-odds" not in text
    outline(text)


def test_a_model_that_is_not_linear_is_told_by_permutation_importance():
    silos = hospital_silos()
    model = cf.models.mlp((4,))
    params = model.init(jax.random.key(0), len(silos.feature_names), 2)
    params = jax.tree.map(lambda a: np.asarray(a), params)
    predictor = Predictor.of(model, [(0.5, params), (0.5, params)], silos, 0)
    answers = {NAMES[0]: replace(hospital_answers()[NAMES[0]], model=predictor, algorithm="auto (evidence")}
    [found] = report_on(silos, [0], hospital_study(), answers).hospitals
    assert found.learned.kind == "importance"
    assert [e.name for e in found.learned.effects] == ["age", "pressure", "sex"]  # columns, not features
    assert all(e.alone is None for e in found.learned.effects)
    assert max(e.together for e in found.learned.effects) > 0
    outline(page(report_on(silos, [0], hospital_study(), answers)))
    alone = Predictor.of(model, [(1.0, jax.tree.map(np.zeros_like, params))], silos, 0)
    [beside] = report_on(silos, [0], hospital_study(), answers, alone={NAMES[0]: alone}).hospitals
    assert [e.alone for e in beside.learned.effects] == [0.0, 0.0, 0.0]
    assert beside.sureness.scores["log_loss"]["alone"] == pytest.approx(np.log(2), rel=1e-5)


def test_a_column_that_the_model_does_not_use_has_no_importance():
    silos = hospital_silos()
    w = np.zeros((len(silos.feature_names), 2), np.float32)
    w[silos.feature_names.index("pressure"), 1] = 1.0
    predictor = Predictor.of(cf.models.logistic(), [(1.0, {"w": w, "b": np.zeros(2, np.float32)})], silos, 0)
    effects = {e.name: e.together for e in importance(predictor, None, silos, 0).effects}
    assert effects["age"] == effects["sex"] == 0
    assert effects["pressure"] > 0


def test_wide_tables_have_shadows_where_they_go_on_in_light_and_dark_and_none_on_paper():
    light, dark, paper = STYLE.split("@media ")
    assert "--shadow: #" in light
    assert "--shadow: #" in dark
    [rule] = re.findall(r"\n\.scroll \{(.*?)\}", STYLE, re.DOTALL)
    assert rule.count("var(--shadow)") == rule.count("var(--paper)") == rule.count("no-repeat local") == 2
    assert ".scroll { overflow: visible; background: none; }" in paper
