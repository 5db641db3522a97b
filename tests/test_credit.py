"""Credit: Shapley values, ledgers and payments, against plain numpy over all orders of joining."""

import json
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import confrere as cf
from confrere.insight.credit.coalitions import drawn_orders, every_coalition, exact_weights, marginals
from confrere.insight.credit.schemes import SCHEMES, rank_points, shared_out
from confrere.insight.credit.shapley import by_all_coalitions, by_orders
from confrere.insight.credit.tables import credit_in_words
from tests.selection_problems import amounts, classes, half_squares, log_losses, logistic_fit, reordered, ridge_fit

VALUES = st.integers(1, 5).flatmap(lambda k: arrays(float, 2**k, elements=st.floats(-10, 10, width=32)))


def by_definition(players: int, value) -> np.ndarray:
    """The mean over all orders of what a player adds to those before it; value: frozenset -> number."""
    phi = np.zeros(players)
    orders = list(permutations(range(players)))
    for order in orders:
        before: frozenset[int] = frozenset()
        for i in order:
            phi[i] += value(before | {i}) - value(before)
            before = before | {i}
    return phi / len(orders)


def remembered(value):
    """The same, each coalition tried once."""
    found = {}

    def of(coalition):
        key = frozenset(coalition)
        if key not in found:
            found[key] = value(key)
        return found[key]

    return of


def value_in(table: np.ndarray):
    return lambda coalition: table[sum(1 << i for i in coalition)]


@settings(deadline=None, max_examples=40)
@given(VALUES)
def test_the_matrix_gives_the_mean_over_all_orders(table):
    k = int(np.log2(len(table)))
    np.testing.assert_allclose(exact_weights(k) @ table, by_definition(k, value_in(table)), atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(VALUES, st.integers(0, 4), st.integers(0, 4))
def test_values_are_efficient_additive_symmetric_and_nothing_for_a_dummy(table, one, two):
    k = int(np.log2(len(table)))
    W, member = exact_weights(k), every_coalition(k)
    assert np.isclose((W @ table).sum(), table[-1] - table[0], atol=1e-9)
    np.testing.assert_allclose(W @ (table + 2 * table[::-1]), W @ table + 2 * (W @ table[::-1]), atol=1e-9)
    one, two = one % k, two % k
    without = np.arange(2**k) & ~(1 << one)
    assert abs((W @ table[without])[one]) < 1e-9  # it changes nothing, wherever it joins
    swapped = member.copy()
    swapped[:, [one, two]] = member[:, [two, one]]
    places = swapped @ (1 << np.arange(k))
    phi = W @ (table + table[places])
    assert abs(phi[one] - phi[two]) < 1e-9


def test_drawn_orders_are_pairs_of_opposites_and_their_marginals_add_up():
    orders = drawn_orders(5, 6, np.random.default_rng(0))
    assert (orders[1::2] == orders[::2, ::-1]).all()
    table = np.random.default_rng(1).normal(size=32)
    grown = np.array([[table[sum(1 << i for i in o[:j])] for j in range(6)] for o in orders])
    added = marginals(orders, grown)
    np.testing.assert_allclose(added.sum(axis=1), table[-1] - table[0])
    assert added[0, orders[0, 0]] == pytest.approx(table[1 << orders[0, 0]] - table[0])


def test_intervals_of_drawn_orders_cover_the_exact_values():
    rng = np.random.default_rng(0)
    k, covered = 6, []
    for seed in range(60):
        table = rng.normal(size=(2**k, 1)) + every_coalition(k).sum(axis=1)[:, None]

        def losses(coalitions, table=table):
            return -table[coalitions @ (1 << np.arange(k))]

        exact, *_ = by_all_coalitions(losses, k, 0, 0)
        drawn, error, *_ = by_orders(losses, k, 60, seed)
        covered += list(np.abs(drawn - exact)[:, 0] <= error)
    assert 0.92 <= np.mean(covered) <= 0.98


def pooled_values(silos, fit, losses, l2, judge):
    """v(S) of every coalition of the others by numpy, the user being the first; from rows of the user that judge."""

    def loss(coalition):
        rows = [silos[0].rows("train"), *(silos[i + 1].rows("train") for i in coalition)]
        return losses(*judge, fit(np.concatenate([X for X, _ in rows]), np.concatenate([y for _, y in rows]), l2))

    alone = loss(()).mean()
    return remembered(lambda coalition: alone - loss(sorted(coalition)).mean())


@pytest.mark.parametrize("others", [4, 5])
def test_exact_values_of_a_logistic_model_are_those_of_numpy_over_all_orders(others):
    silos = classes((40, 30, 25, 35, 20, 28)[: others + 1], flipped=(3,)).split(test=0.4, seed=0)
    value = pooled_values(silos, logistic_fit, log_losses, 0.1, silos[0].rows("test"))
    found = cf.insight.shapley(silos, 0, l2=0.1, resamples=10)
    assert found.exact
    assert found.coalitions == 2**others
    np.testing.assert_allclose(found.values[1:], by_definition(others, value), atol=1e-6)
    assert np.nansum(found.values) == pytest.approx(found.total, abs=1e-12)
    drawn = np.nansum(found.value.draws, axis=0)  # what all are worth together, draw by draw
    np.testing.assert_allclose(found.total_interval, np.percentile(drawn, [2.5, 97.5]), atol=1e-12)
    everybody = set(range(others))
    expected = [value(everybody) - value(everybody - {i}) for i in range(others)]
    np.testing.assert_allclose(found.influence.values[1:], expected, atol=1e-6)


def test_exact_values_of_amounts_are_those_of_numpy():
    silos = amounts((30, 25, 20, 15)).split(test=0.4, seed=1)
    value = pooled_values(silos, ridge_fit, half_squares, 0.05, silos[0].rows("test"))
    found = cf.insight.shapley(silos, 0, l2=0.05, resamples=10)
    np.testing.assert_allclose(found.values[1:], by_definition(3, value), rtol=1e-6, atol=1e-8)


def test_without_test_rows_the_judges_are_those_of_influence_and_so_is_the_influence():
    silos = classes()
    found = cf.insight.shapley(silos, 1, resamples=50, others="all")
    known = cf.selection.influence(silos, 1, exact=True, resamples=50)
    np.testing.assert_allclose(found.influence.values, known.scores, atol=1e-9)
    np.testing.assert_allclose(found.influence.low, known.low, atol=1e-9)
    assert "set apart" in found.judged


def test_a_coalition_that_runs_a_recipe_is_a_run_without_the_others():
    silos, model = classes((30, 25, 20)).split(test=0.4, seed=0), cf.models.logistic("zero")
    recipe = cf.weight_erosion(user=0, lr=0.5, p_d=0.05)
    found = cf.insight.shapley(silos, 0, model, recipe, rounds=6, resamples=10)

    def loss(names):
        active = np.tile([True, *(i in names for i in range(2))], (6, 1))
        seen = silos.for_user(0, "train")
        run = cf.simulate(recipe, model, seen, 6, active=active, metrics=["log_loss"])
        return run.metrics["log_loss"][-1]

    value = remembered(lambda coalition: found.alone - loss(coalition))
    np.testing.assert_allclose(found.values[1:], by_definition(2, value), atol=1e-6)
    assert found.alone == pytest.approx(loss(()), abs=1e-6)


def test_drawn_orders_of_silos_agree_with_all_coalitions_up_to_their_error():
    silos = classes((30, 25, 20, 22, 18, 26, 24)).split(test=0.4, seed=0)
    exact = cf.insight.shapley(silos, 0, resamples=20)
    drawn = cf.insight.shapley(silos, 0, resamples=20, most_exact=3, orders=100)
    assert not drawn.exact
    assert (np.abs(drawn.values - exact.values)[1:] <= 2 * drawn.error[1:]).all()
    assert np.nansum(drawn.values) == pytest.approx(exact.total, abs=1e-9)
    assert "orders" in drawn.resampled


def test_equal_silos_earn_equally_and_order_does_not_matter():
    silos = classes((40, 30, 25, 35)).split(test=0.4, seed=0)
    one = silos.silos[1]
    twin = cf.Silos.from_arrays([(s.X, s.y) for s in (*silos.silos, one)], names=[*silos.names, "twin"])
    twin = twin.with_parts([*(s.part for s in silos.silos), one.part])
    run = cf.fedsgd(lr=0.5)
    found = cf.insight.rewards(twin, 0, run, budget=100.0, resamples=20, rounds=4)
    for scheme in SCHEMES:
        assert found.paid("twin", scheme) == pytest.approx(found.paid("silo 1", scheme), abs=1e-4), scheme
    order = [3, 0, 4, 2, 1]
    moved = cf.insight.rewards(reordered(twin, order), "silo 0", run, budget=100.0, resamples=20, rounds=4)
    for scheme in SCHEMES:
        for name in found.others:
            assert moved.paid(name, scheme) == pytest.approx(found.paid(name, scheme), abs=1e-4), (scheme, name)


@settings(deadline=None, max_examples=300)
@given(
    arrays(float, st.integers(1, 8), elements=st.floats(allow_nan=True, allow_infinity=True)),
    st.floats(0, 1e300, allow_nan=False),
    st.none() | st.floats(0, 1e300),
)
def test_payments_are_never_negative_and_never_exceed_the_budget(points, budget, error):
    paid = shared_out(points, budget, None if error is None else np.full(len(points), error))
    assert (paid >= 0).all()
    assert sum(map(Fraction, paid.tolist())) <= Fraction(budget)
    assert (paid[~(np.nan_to_num(points, nan=-1.0) > 0)] == 0).all()


@settings(deadline=None, max_examples=60)
@given(arrays(float, 5, elements=st.floats(0, 1e6)), st.permutations(range(5)))
def test_payments_follow_the_silos_when_they_are_reordered(points, order):
    np.testing.assert_allclose(shared_out(points[order], 100.0), shared_out(points, 100.0)[order], atol=1e-9)


def test_ranks_pay_the_best_most_and_equal_scores_equally():
    points = rank_points(np.array([np.nan, 0.3, 0.1, 0.3, 0.5]), lower_is_better=True)
    assert points.tolist() == [0.0, 2.5, 4.0, 2.5, 1.0]
    assert rank_points(np.array([np.nan]), lower_is_better=True).tolist() == [0.0]


@pytest.fixture(scope="module")
def ledger():
    silos = classes((600, 500, 400, 450), flipped=(3,)).split(test=0.94, seed=0)  # few rows to train on, many to judge
    return cf.insight.rewards(silos, 0, cf.weight_erosion(user=0, lr=0.5, p_d=0.05), budget=1000, rounds=10)


def test_a_ledger_has_what_was_counted_and_what_it_was_worth(ledger):
    assert ledger.run.joined.tolist() == [10, 10, 10, 10]
    assert ledger.run.weight.sum() == pytest.approx(10, abs=1e-4)  # shares of every round
    assert ledger.run.bytes_up.tolist() == [10 * 4 * 8] * 4  # three features and an intercept, for two classes
    assert ledger.rows.tolist() == [36, 30, 24, 27]
    account = ledger.account("silo 3")
    assert sorted(ledger.ranks[1:].tolist()) == [1, 2, 3]
    assert account["shapley"]["value"] < 0
    assert account["paid"]["shapley"]["amount"] == 0
    assert account["paid"]["equal"]["low"] is None  # counts have no interval
    assert account["paid"]["shapley"]["high"] is not None
    assert account["paid"]["sure"]["high"] is None  # intervals have chosen whom it pays


def test_schemes_that_pay_for_counts_and_ranks_pay_the_whole_budget_and_the_user_nothing(ledger):
    for scheme, payout in ledger.payouts.items():
        assert scheme in ("influence", "shapley", "sure") or payout.amounts.sum() == pytest.approx(1000), scheme
        assert payout.amounts[0] == 0
        assert (payout.amounts >= 0).all()
        assert payout.amounts.sum() <= 1000


@pytest.mark.parametrize("scheme", ["shapley", "influence"])
def test_worth_is_paid_less_what_chance_may_explain(ledger, scheme):
    worth = ledger.shapley.value if scheme == "shapley" else ledger.shapley.influence
    helping = {i: worth.values[i] for i in (1, 2, 3) if worth.values[i] > 0}
    assert helping
    for i in (1, 2, 3):
        error = np.sqrt(np.mean((worth.draws[i] - worth.draws[i].mean()) ** 2))
        v = helping.get(i, 0.0)
        beyond = v - error**2 / v if v > error else 0.0
        assert ledger.paid(i, scheme) == pytest.approx(1000 * beyond / sum(helping.values()), abs=1e-9), i
    assert 0 < ledger.left(scheme) < 1000


def test_where_rows_leave_nothing_to_chance_the_whole_budget_is_paid_and_where_all_is_chance_nothing():
    values = np.array([3.0, 1.0, 0.5, -2.0])
    assert shared_out(values, 90.0, np.zeros(4)).tolist() == shared_out(values, 90.0).tolist() == [60, 20, 10, 0]
    assert shared_out(values, 90.0, np.abs(values)).tolist() == [0, 0, 0, 0]
    errors = np.array([1.5, 0.9, 0.6, 1.0])
    assert shared_out(values, 90.0, errors) == pytest.approx([60 * 0.75, 20 * 0.19, 0, 0])


def test_a_ledger_is_plain_json_and_reads_as_tables(ledger):
    found = json.loads(ledger.to_json())
    assert list(found["accounts"]) == ["silo 1", "silo 2", "silo 3"]
    assert set(found["schemes"]) == set(SCHEMES)
    assert json.loads(ledger.shapley.to_json())["exact"] is True
    low, high = found["game"]["total_interval"]
    assert low < found["game"]["total"] < high
    assert f"{low:+.4f} to {high:+.4f}" in credit_in_words(ledger)[0]
    for table, wanted in ((ledger.table(), 3), (ledger.payments(), 4), (ledger.shapley.table(), 3)):
        assert table.row_count == wanted


def test_a_silo_that_never_joined_is_not_paid():
    silos = classes((40, 30, 25)).split(test=0.4, seed=0)
    recipe = cf.fedsgd(lr=0.5, prior={"silo 2": 0})
    found = cf.insight.rewards(silos, 0, recipe, budget=10, rounds=3, resamples=10)
    assert all(found.paid("silo 2", scheme) == 0 for scheme in SCHEMES)
    assert found.account("silo 2")["shapley"]["value"] is None


def test_where_nobody_helps_nothing_is_paid():
    silos = classes((40, 30, 25), flipped=(1, 2)).split(test=0.4, seed=0)
    found = cf.insight.rewards(silos, 0, cf.fedsgd(lr=0.5), budget=10, rounds=3, resamples=10)
    assert found.paid("silo 1") == found.paid("silo 2") == 0
    assert found.left("shapley") == 10


@pytest.mark.slow
def test_a_ledger_of_auto_counts_what_was_exchanged():
    silos = classes((60, 50, 40)).split(test=0.4, seed=0)
    answer = cf.personalise(silos, 0, others="train")
    found = cf.insight.rewards(silos, 0, answer, resamples=10)
    np.testing.assert_array_equal(found.run.bytes_up, answer.history.bytes_up.sum(axis=0))
    assert found.run.joined.tolist() == [0, 6, 6]
    assert found.run.weight[1] == answer.weights["silo 1"]


@pytest.mark.parametrize("rows", [3, 4])
def test_where_one_row_judges_values_have_no_interval_and_nothing_is_paid_for_them(rows):
    silos = classes((rows, 30, 25))
    found = cf.insight.shapley(silos, 0)
    assert np.isfinite(found.values[1:]).all()
    assert np.isnan(found.value.low).all()
    assert np.nansum(found.values) == pytest.approx(found.total)
    assert found.resampled == "none, as one row alone judges"
    assert found.judged == "1 row of silo 0, set apart, one in 3"
    ledger = cf.insight.rewards(silos, 0, cf.fedsgd(lr=0.5), budget=10, rounds=3)
    assert ledger.paid("silo 1", "equal") == 5
    for scheme in ("influence", "shapley", "sure"):
        assert ledger.left(scheme) == 10
    assert "no interval" in credit_in_words(ledger)[0]
    assert json.loads(ledger.to_json())["accounts"]["silo 1"]["shapley"]["low"] is None


def test_drawn_orders_and_one_judging_row_go_together():
    found = cf.insight.shapley(classes((3, 30, 25, 20)), 0, most_exact=2, orders=4)
    assert not found.exact
    assert np.isfinite(found.values[1:]).all()
    assert np.isnan(found.value.high).all()


def test_a_run_for_another_user_is_refused():
    silos = classes((40, 30, 25)).split(test=0.4, seed=0)
    recipe, model = cf.weight_erosion(user="silo 1", lr=0.5), cf.models.logistic("zero")
    answer = cf.personalise(silos, "silo 1", "fedavg")
    measured = cf.simulate(cf.fedsgd(lr=0.5), model, silos, 2, user="silo 1")
    for run in (recipe, cf.simulate(recipe, model, silos, 2), answer, measured):
        with pytest.raises(ValueError, match="was made for 'silo 1', but credit is asked for by 'silo 0': make one"):
            cf.insight.rewards(silos, 0, run)
    with pytest.raises(ValueError, match="the recipe was made for 'silo 1'"):
        cf.insight.shapley(silos, 0, recipe=recipe)
    everybody = cf.simulate(cf.fedsgd(lr=0.5), model, silos, 2)
    assert cf.insight.rewards(silos, 0, everybody, resamples=5).run.rounds == 2


def test_what_cannot_be_asked_is_refused():
    silos = classes((40, 30, 25))
    with pytest.raises(ValueError, match="game must be 'optimum' or 'run'"):
        cf.insight.rewards(silos, 0, cf.fedsgd(lr=0.5), game="best")
    with pytest.raises(ValueError, match="needs a recipe"):
        cf.insight.rewards(silos, 0, model=cf.models.mlp())
    with pytest.raises(ValueError, match="budget"):
        cf.insight.rewards(silos, 0, cf.fedsgd(lr=0.5), budget=-1.0)
    with pytest.raises(TypeError, match="run must be an answer"):
        cf.insight.rewards(silos, 0, "fedavg")
    other = cf.simulate(cf.fedsgd(lr=0.5), cf.models.logistic(), classes((40, 30)), 1)
    with pytest.raises(ValueError, match="other silos"):
        cf.insight.rewards(silos, 0, other)
