"""The study behind `auto`: how cells are dealt, what policies do with scores, and that the whole of it runs."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confrere.reproduce import auto, auto_confirmation, auto_tables
from confrere.reproduce.auto_cells import Cell, Dealt, Deck, equally, flipped, hand_out, reserved, standardised
from confrere.reproduce.auto_policies import POLICIES, Policy, Row, by_family, priors, takes_part, weights
from confrere.reproduce.auto_runs import ALL, Seen, block_of, loss_on, run_cell, shape_for

ROWS = np.random.default_rng(0).normal(size=(60, 3))
TABLE = auto_tables.Table(ROWS, np.arange(60), np.repeat([0, 1, 2], 20))
BY_NAME = {cell.name: cell for cell in [*reserved(), *auto_confirmation.confirmation(), *auto_confirmation.amounts()]}


def dealt(seed: int = 0) -> Dealt:
    return hand_out(TABLE, np.random.default_rng(seed), [equally([0]), equally([1]), equally([2])], [8, 20, 15], 10)


def seen_with(scores, rows=50, second=20, relevance=0.9) -> Seen:
    scores = np.atleast_2d(scores)
    E = len(scores)
    silos = np.full((E, 3), relevance)
    return Seen(scores, np.zeros((E, 6, 2)), silos, silos, np.full(E, rows), np.full(E, second))


@given(st.integers(0, 1000))
def test_no_row_is_dealt_twice_and_the_test_rows_are_of_the_users_kind(seed):
    one = dealt(seed)
    labels = np.concatenate([one.user[1], one.test[1], *(y for _, y in one.others)])  # a label is a row's number here
    assert len(set(labels)) == len(labels) == 8 + 10 + 20 + 15
    assert (TABLE.group[one.user[1]] == 0).all()
    assert (TABLE.group[one.test[1]] == 0).all()
    assert (TABLE.group[one.others[1][1]] == 2).all()


def test_an_empty_deck_says_so():
    deck = Deck(np.random.default_rng(0), np.zeros(3, int))
    with pytest.raises(ValueError, match="only 3 of 4 rows are left"):
        deck.take({0: 1.0}, 4)


def test_test_rows_enter_nothing_when_features_are_standardised():
    one = dealt()
    wild = one._replace(test=(one.test[0] * 1e6, one.test[1]))
    found, other = standardised(one), standardised(wild)
    np.testing.assert_array_equal(found.user[0], other.user[0])
    train = np.concatenate([found.user[0], *(X for X, _ in found.others)])
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(axis=0), 1, atol=1e-12)


def test_only_the_named_silos_are_flipped():
    one = Dealt((ROWS, np.ones(60)), [(ROWS, np.zeros(60)), (ROWS, np.zeros(60))], (ROWS, np.ones(60)))
    found = flipped(one, [1])
    assert found.others[0][1].sum() == 0
    assert found.others[1][1].sum() == 60
    assert found.user[1].sum() == 60


@pytest.mark.parametrize("name", ["wine/het/40", "breast/skew/60", "simulated/one-class/20", "titanic/strict-0"])
def test_the_same_seed_deals_the_same_rows_and_another_deals_others(name):
    first, again, other = (BY_NAME[name].deal(seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.user[0], again.user[0])
    np.testing.assert_array_equal(first.test[1], again.test[1])
    assert not np.array_equal(first.user[0], other.user[0])


def test_cells_have_the_size_they_say_and_names_of_their_own():
    assert len(BY_NAME) > 140
    for name in ("wine/flip/20", "simulated/small-20-silos/60", "diabetes/shift/20"):
        assert len(BY_NAME[name].deal(0).user[1]) == BY_NAME[name].rows
    assert len(BY_NAME["simulated/small-20-silos/60"].deal(0).others) == 20


def test_components_are_uncorrelated_with_unit_variance():
    mixed = ROWS @ np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]])
    mean, directions = auto_tables.components(mixed, 2)
    np.testing.assert_allclose(np.cov(((mixed - mean) @ directions).T, bias=True), np.eye(2), atol=1e-10)


def test_the_weather_label_is_whether_it_gets_warmer():
    hours = np.arange("2024-01-01T00", "2024-01-01T20", dtype="datetime64[h]")
    rising, falling = (auto_tables.station_rows(s * np.arange(20.0), hours) for s in (1, -1))
    assert rising[1].all()
    assert not falling[1].any()
    np.testing.assert_allclose(rising[0][0, :5], [6, 1, 2, 3, 6])


def test_without_a_local_candidate_weights_are_those_of_the_four():
    scores = np.array([0.30, 0.32, 0.31, 0.35, 0.10, 0.10])
    raw = np.exp(-50 * scores[:4])
    np.testing.assert_allclose(weights(POLICIES[0], seen_with(scores))[0], [*raw / raw.sum(), 0, 0], atol=1e-12)


def test_priors_multiply_and_a_single_minority_row_leaves_pair_alone():
    scores = np.full(6, 0.3)
    found = weights(Policy("p", 0.1), seen_with(scores))[0]
    np.testing.assert_allclose(found, [0.225, 0.225, 0.225, 0.225, 0.05, 0.05], atol=1e-12)
    np.testing.assert_array_equal(weights(Policy("p", 0.1), seen_with(scores, second=1))[0], [1, 0, 0, 0, 0, 0])


def test_local_candidates_take_part_only_where_the_policy_says():
    better = np.array([0.5, 0.5, 0.5, 0.5, 0.4, 0.5])
    part = lambda policy, **how: bool(takes_part(policy, seen_with(better, **how))[0])  # noqa: E731
    assert part(Policy("p", 0.3, least_rows=40), rows=40)
    assert not part(Policy("p", 0.3, least_rows=40), rows=39)
    assert part(Policy("p", 0.3, below_relevance=0.5), relevance=0.4)
    assert not part(Policy("p", 0.3, below_relevance=0.5), relevance=0.6)
    assert part(Policy("p", 0.3, margin=4.0), rows=50)
    assert not part(Policy("p", 0.3, margin=6.0), rows=50)


@given(st.sampled_from(POLICIES), st.booleans())
def test_priors_are_a_distribution(policy, part):
    np.testing.assert_allclose(priors(policy, np.array([part])).sum(axis=1), 1)


def test_the_criterion_refuses_harm_and_prefers_the_simpler_of_equals():
    def row(present, bold, careful):
        losses = np.array([[present, 0.5], [bold, 0.5], [careful, 0.5]])
        return Row("cell", "source", losses, np.array([[0.2, 0.5]] * 6), np.zeros(3))

    policies = [Policy("present"), Policy("bold"), Policy("careful")]
    assert auto.chosen_by_criterion([row(0.30, 0.20, 0.28), row(0.30, 0.32, 0.30)], policies).name == "careful"
    assert auto.chosen_by_criterion([row(0.3000, 0.2999, 0.2998)], policies).name == "present"


def test_every_data_set_counts_the_same():
    rows = [Row("", family, np.zeros((1, 2)), np.zeros((6, 2)), np.zeros(1)) for family in "aab"]
    assert by_family(rows, np.array([1.0, 3.0, 10.0])) == 6.0


def test_losses_are_those_of_the_definition():
    X, y, theta = ROWS, (ROWS[:, 0] > 0).astype(int), np.array([1.0, -0.5, 0.2, 0.3])
    p = 1 / (1 + np.exp(-(X @ theta[:3] + 0.3)))
    log_loss, accuracy = loss_on(theta, (X, y), "classification")
    assert log_loss == pytest.approx(-np.log(np.where(y == 1, p, 1 - p)).mean())
    assert accuracy == pytest.approx(((p > 0.5) == y).mean())
    assert loss_on(theta, (X, y), "regression")[0] == pytest.approx(np.square(X @ theta[:3] + 0.3 - y).mean())


def test_blocks_hold_every_row_once_and_are_padded_with_nothing():
    one = dealt()
    assert shape_for([one]) == (9, 100, 10)
    block = block_of([one], "classification", (9, 100, 10))
    assert np.asarray(block.size)[0].tolist() == [8, 20, 15, 0, 0, 0, 0, 0, 0]
    np.testing.assert_allclose(np.asarray(block.X)[0, 1, :20, :3], one.others[0][0], rtol=1e-6)
    assert np.abs(np.asarray(block.X)[0, :, :, 3:]).sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulated/small-3-silos/20", "linear/iid/20"])
def test_padding_silos_rows_and_features_changes_no_answer(monkeypatch, name):
    from confrere.reproduce import auto_runs

    cell = BY_NAME[name]
    padded = run_cell(cell, range(2)).seen
    monkeypatch.setattr(auto_runs, "SHAPES", ())
    bare = run_cell(cell, range(2)).seen
    np.testing.assert_allclose(padded.scores, bare.scores, atol=2e-4)
    np.testing.assert_allclose(padded.theta, bare.theta, atol=2e-3)
    np.testing.assert_allclose(padded.relevance, bare.relevance, atol=2e-3)


@pytest.mark.slow
def test_a_cells_local_candidate_is_the_ridge_optimum_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    cell = next(c for c in auto_confirmation.confirmation() if c.name == "simulated/big/60")
    X, y = cell.deal(0).user
    with_one = np.column_stack([X, np.full(len(X), np.sqrt(10.0))])  # the intercept held a tenth as firmly
    fitted = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(with_one, y).coef_[0]
    expected = [*fitted[:-1], fitted[-1] * np.sqrt(10.0)]
    found = run_cell(cell, range(2)).seen.theta[0, ALL.index("local")]
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.fixture(scope="module")
def quick(shared_data):
    calls = []
    report = auto.study(2, quick=True, progress=lambda done, total: calls.append((done, total)))
    return report, calls


@pytest.mark.slow
def test_the_quick_study_has_every_table(quick):
    report, calls = quick
    assert json.loads(json.dumps(report)) == report
    assert calls[-1] == (7, 7)
    assert [row["policy"] for row in report["policies"]] == [policy.name for policy in POLICIES]
    assert {row["cell"] for row in report["cells"]["confirmation"]} == set(auto.QUICK["confirmation"])
    for row in report["cells"]["confirmation"]:
        assert row["regret"] <= row["log_loss"]


@pytest.mark.slow
def test_flipped_silos_are_not_listened_to(quick):
    report, _ = quick
    assert abs(report["all_flipped"][0]["above_local"]) < 0.005
    assert report["one_flipped"][0]["relevance"] < 0.3


def test_the_chosen_policy_is_one_of_the_table():
    assert auto.CHOSEN in [policy.name for policy in POLICIES]
    assert all(isinstance(cell, Cell) for cell in BY_NAME.values())
