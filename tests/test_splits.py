"""Splits: every row is dealt out once, the seed decides, and the skew is what the definition says."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confrere as cf
from confrere.data import splits
from confrere.data.source import Pool

ROWS = 240


def table(rows=ROWS, seed=0, classes=2):
    """Columns of every kind, and labels that go with the dose."""
    rng = np.random.default_rng(seed)
    dose = rng.normal(size=rows)
    age = rng.integers(0, 80, rows).astype(float)
    age[rng.permutation(rows)[: rows // 6]] = np.nan
    columns = {
        "dose": dose,
        "age": age,
        "ward": np.array(["north", "south", "", "east"])[np.arange(rows) % 4],
        "bed": np.array([1, 2, None, 1], object)[np.arange(rows) % 4],
        "row": np.arange(float(rows)),
    }
    return Pool(columns, (dose + rng.normal(size=rows) > 0).astype(int) + (np.arange(rows) % 3 == 0) * (classes - 2))


def dealt(how, pool=None, seed=0):
    return how(table() if pool is None else pool, np.random.default_rng(seed))


EVERY = {
    "iid": splits.iid(5),
    "by": splits.by("ward"),
    "age_strict": splits.age_strict(),
    "age_some": splits.age_some((20, 40, 60)),
    "age_strict_share_na": splits.age_strict_share_na(),
    "label_skew": splits.label_skew(5, 0.7),
    "feature_skew": splits.feature_skew(5, "dose", 0.7),
    "concept_shift": splits.concept_shift(5, 2),
    "unequal_sizes": splits.unequal_sizes(5, 20),
    "unequal_missingness": splits.unequal_missingness(5, 0.9),
    "dirichlet": splits.dirichlet(5, 0.2),
    "shards": splits.shards(5, 3),
}


def test_every_split_is_tried():
    assert set(EVERY) == set(splits.__all__)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("seed", [0, 1, 278])
def test_every_row_is_dealt_out_exactly_once_and_no_silo_is_empty(name, seed):
    hands = dealt(EVERY[name], seed=seed)
    assert sorted(np.concatenate([h.rows for h in hands]).tolist()) == list(range(ROWS))
    assert all(len(h.rows) for h in hands)
    assert len({h.name for h in hands}) == len(hands)


@pytest.mark.parametrize("name", EVERY)
def test_a_split_depends_on_its_seed_alone(name):
    one, two, other = dealt(EVERY[name], seed=3), dealt(EVERY[name], seed=3), dealt(EVERY[name], seed=4)
    for a, b in zip(one, two, strict=True):
        assert a.name == b.name
        for x, y in zip(a[1:], b[1:], strict=True):
            np.testing.assert_array_equal(x, y)
    assert any(not np.array_equal(a.rows, b.rows) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", EVERY)
def test_rows_come_in_random_order_so_that_halves_are_alike(name):
    for hand in dealt(EVERY[name]):
        if len(hand.rows) > 5:
            assert (np.diff(hand.rows) < 0).any()


@pytest.mark.parametrize("name", EVERY)
def test_the_name_of_a_split_is_that_of_its_function(name):
    assert EVERY[name].__name__ == name


KS = [
    splits.iid, splits.label_skew, splits.unequal_sizes, splits.dirichlet, splits.concept_shift,
    lambda k: splits.feature_skew(k, "dose"), splits.unequal_missingness,
]  # fmt: skip


@pytest.mark.parametrize("maker", KS)
@given(k=st.integers(2, 30), seed=st.integers(0, 10_000))
def test_any_number_of_silos(maker, k, seed):
    hands = dealt(maker(k), seed=seed)
    assert len(hands) == k
    assert sorted(np.concatenate([h.rows for h in hands]).tolist()) == list(range(ROWS))
    assert min(len(h.rows) for h in hands) >= 1


@pytest.mark.parametrize("maker", KS)
def test_more_silos_than_rows_are_refused(maker):
    with pytest.raises(ValueError, match="240 rows cannot be dealt out to 241 silos"):
        dealt(maker(241))


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_a_number_of_silos_that_is_none_is_refused(k):
    with pytest.raises(ValueError, match="number of silos"):
        dealt(splits.iid(k))


@pytest.mark.parametrize(
    "how", [splits.by("weight"), splits.age_strict(column="weight"), splits.feature_skew(2, "weight"),
            splits.concept_shift(2, column="weight"), splits.unequal_missingness(2, columns=["weight"])],
)  # fmt: skip
def test_an_unknown_column_is_refused_and_the_columns_are_named(how):
    with pytest.raises(ValueError, match=r"no column 'weight'.*dose, age, ward, bed, row"):
        dealt(how)


@pytest.mark.parametrize(
    ("name", "how", "words"),
    [
        ("label_skew", {"share": 1.5}, "share must be between 0 and 1"),
        ("feature_skew", {"strength": -0.1}, "strength must be between 0 and 1"),
        ("concept_shift", {"share": 2}, "share must be between 0 and 1"),
        ("concept_shift", {"k": 3, "changed": 4}, "not there: there are 3"),
        ("concept_shift", {"k": 3, "changed": [3]}, "not there: there are 3"),
        ("unequal_missingness", {"most": 1.1}, "most must be between 0 and 1"),
        ("unequal_missingness", {"k": 1}, "2 silos or more"),
        ("unequal_sizes", {"ratio": 0.5}, "ratio must be 1 or more"),
        ("dirichlet", {"alpha": 0}, "alpha must be a positive number"),
        ("dirichlet", {"alpha": float("nan")}, "alpha must be a positive number"),
        ("age_strict", {"limits": ()}, "limits must be"),
        ("age_some", {"limits": (35, 20)}, "limits must be"),
    ],
    ids=str,
)
def test_numbers_that_mean_nothing_are_refused_at_once(name, how, words):
    with pytest.raises(ValueError, match=words):
        getattr(splits, name)(**how)


# By a column


def test_by_has_a_silo_per_value_and_one_for_the_missing():
    hands = dealt(splits.by("ward"))
    assert [h.name for h in hands] == ["east", "north", "south", "unknown"]
    ward = table().columns["ward"]
    assert [set(ward[h.rows]) for h in hands] == [{"east"}, {"north"}, {"south"}, {""}]
    assert [h.name for h in dealt(splits.by("bed"))] == ["1", "2", "unknown"]


def test_a_value_called_unknown_is_not_confused_with_a_missing_one():
    pool = Pool({"port": np.array(["unknown", "", "C", "C"] * 5)}, np.zeros(20, int))
    assert [h.name for h in dealt(splits.by("port"), pool)] == ["C", "unknown", "missing"]


def test_a_column_with_a_value_per_row_is_no_column_to_split_by():
    with pytest.raises(ValueError, match=r"'row' has 240 values.*age_strict"):
        dealt(splits.by("row"))


# By age


def test_age_strict_keeps_age_groups_apart():
    hands, age = dealt(splits.age_strict((20, 35))), table().columns["age"]
    assert [h.name for h in hands] == ["0-20", "21-35", "36+", "unknown"]
    low, middle, high, unknown = (age[h.rows] for h in hands)
    assert low.max() <= 20 < middle.min() <= middle.max() <= 35 < high.min()
    assert np.isnan(unknown).all()


def test_a_limit_belongs_to_the_younger_group():
    pool = Pool({"age": np.array([20.0, 20.5, 35.0, 35.5])}, np.zeros(4, int))
    assert next(h.rows.tolist() for h in (dealt(splits.age_strict(), pool))) == [0]
    assert sorted(dealt(splits.age_strict(), pool)[1].rows.tolist()) == [1, 2]


def test_age_some_makes_twins_of_the_young():
    hands, age = dealt(splits.age_some((20, 40))), table(seed=0).columns["age"]
    assert [h.name for h in hands] == ["0-40 a", "0-40 b", "41+", "unknown"]
    one, two = age[hands[0].rows], age[hands[1].rows]
    assert abs(len(one) - len(two)) <= 1
    for twin in (one, two):
        assert twin.min() < 20 < twin.max() <= 40
    assert age[hands[2].rows].min() > 40


def test_unknown_ages_are_shared_in_proportion_to_the_groups():
    hands, age = dealt(splits.age_strict_share_na((20, 35))), table().columns["age"]
    strict = [len(h.rows) for h in dealt(splits.age_strict((20, 35)))]
    unknown = [int(np.isnan(age[h.rows]).sum()) for h in hands]
    assert sum(unknown) == strict[3] == 40
    np.testing.assert_allclose(unknown, 40 * np.array(strict[:3]) / sum(strict[:3]), atol=1)
    for hand, plain in zip(hands, dealt(splits.age_strict((20, 35)))[:3], strict=True):
        assert sorted(hand.rows[~np.isnan(age[hand.rows])]) == sorted(plain.rows)


def test_without_unknown_ages_there_is_no_silo_for_them():
    pool = Pool({"age": np.arange(60.0)}, np.zeros(60, int))
    for maker in (splits.age_strict, splits.age_some, splits.age_strict_share_na):
        assert len(dealt(maker((20, 40)), pool)) == 3


def test_a_group_that_nobody_belongs_to_is_refused_by_name():
    with pytest.raises(ValueError, match=r"silo '101-200' without rows"):
        dealt(splits.age_strict((100, 200)))


def test_words_are_no_ages():
    with pytest.raises(ValueError, match="'ward' must hold numbers"):
        dealt(splits.age_strict(column="ward"))


# Skews


def rates(pool, hands):
    return np.array([pool.y[h.rows].mean() for h in hands])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_label_skew_sends_a_share_of_each_label_home(share):
    pool = table()
    hands = dealt(splits.label_skew(4, share), pool)
    for label in (0, 1):
        homes = [h for i, h in enumerate(hands) if i % 2 == label]
        found = sum((pool.y[h.rows] == label).sum() for h in homes) / (pool.y == label).sum()
        assert found == pytest.approx(share + (1 - share) / 2, abs=0.02)


def test_label_skew_of_one_leaves_each_silo_one_label_and_of_none_is_even():
    pool = table()
    assert rates(pool, dealt(splits.label_skew(4, 1.0), pool)).tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(rates(pool, dealt(splits.label_skew(4, 0.0), pool)), pool.y.mean(), atol=0.02)


def test_label_skew_with_more_labels_than_silos_gives_each_silo_its_own():
    pool = Pool({"x": np.arange(60.0)}, np.arange(60) % 3)
    hands = dealt(splits.label_skew(2, 1.0), pool)
    assert [sorted(set(pool.y[h.rows])) for h in hands] == [[0, 2], [1]]


def test_label_skew_of_an_amount_gives_silos_ranges_of_it():
    pool = Pool({"x": np.arange(100.0)}, np.random.default_rng(0).normal(size=100))
    hands = dealt(splits.label_skew(4, 1.0), pool)
    ranges = [(pool.y[h.rows].min(), pool.y[h.rows].max()) for h in hands]
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))


def test_feature_skew_moves_x_given_y_and_keeps_the_share_of_labels():
    pool = table()
    dose = pool.columns["dose"]
    hands = dealt(splits.feature_skew(4, "dose", 1.0), pool)
    np.testing.assert_allclose(rates(pool, hands), pool.y.mean(), atol=1 / 60 + 1e-9)
    assert max(len(h.rows) for h in hands) - min(len(h.rows) for h in hands) <= 1
    for label in (0, 1):
        within = [dose[h.rows][pool.y[h.rows] == label] for h in hands]
        assert all(a.max() <= b.min() for a, b in itertools.pairwise(within))


def test_feature_skew_grows_with_its_strength():
    pool = table(2000)
    dose = pool.columns["dose"]
    spread = []
    for strength in (0.0, 0.5, 1.0):
        hands = dealt(splits.feature_skew(4, "dose", strength), pool)
        means = [dose[h.rows][pool.y[h.rows] == 1].mean() for h in hands]
        np.testing.assert_allclose(rates(pool, hands), pool.y.mean(), atol=0.003)
        spread.append(means[-1] - means[0])
    assert abs(spread[0]) < 0.3 < spread[1] < spread[2]
    assert spread[1] == pytest.approx(spread[2] / 2, rel=0.25)


@pytest.mark.parametrize("column", ["age", "ward", "bed"])
def test_feature_skew_takes_words_and_missing_values(column):
    hands = dealt(splits.feature_skew(3, column))
    values = table().columns[column]
    gone = [np.mean([v is None or v != v or v == "" for v in values[h.rows].tolist()]) for h in hands]
    assert gone[0] < gone[-1]  # missing values come last in the order


def test_concept_shift_keeps_x_and_turns_the_labels_of_the_last_silos():
    pool = table(2000)
    hands = dealt(splits.concept_shift(4, changed=1, share=1.0), pool)
    assert [h.y is None for h in hands] == [True, True, True, False]
    np.testing.assert_array_equal(hands[3].y, 1 - pool.y[hands[3].rows])
    means = [pool.columns["dose"][h.rows].mean() for h in hands]
    np.testing.assert_allclose(means, pool.columns["dose"].mean(), atol=4 / np.sqrt(500))


def test_concept_shift_turns_the_share_asked_for_in_the_silos_named():
    pool = table()
    hands = dealt(splits.concept_shift(4, changed=[0, 2], share=0.25), pool)
    turned = [0 if h.y is None else int((h.y != pool.y[h.rows]).sum()) for h in hands]
    assert turned == [15, 0, 15, 0]


@pytest.mark.parametrize(("column", "high"), [("dose", lambda v: v > np.median(v)), ("ward", lambda v: v == "south")])
def test_concept_shift_by_a_column_turns_labels_in_its_upper_half_only(column, high):
    pool = table()
    if column == "ward":  # two words, the commoner stays
        pool.columns["ward"][:] = np.where(np.arange(ROWS) % 3 == 0, "south", "north")
    hand = dealt(splits.concept_shift(3, column=column), pool)[-1]
    turned = hand.y != pool.y[hand.rows]
    np.testing.assert_array_equal(turned, high(pool.columns[column])[hand.rows])


def test_concept_shift_of_several_classes_is_the_next_class_and_of_amounts_a_mirror():
    classes = Pool({"x": np.arange(30.0)}, np.arange(30) % 3)
    hand = dealt(splits.concept_shift(2), classes)[-1]
    np.testing.assert_array_equal(hand.y, (classes.y[hand.rows] + 1) % 3)
    amounts = Pool({"x": np.arange(50.0)}, np.random.default_rng(0).normal(2.0, 1.0, 50))
    hand = dealt(splits.concept_shift(2), amounts)[-1]
    np.testing.assert_allclose(hand.y + amounts.y[hand.rows], 2 * amounts.y.mean())


@pytest.mark.parametrize(("k", "ratio"), [(2, 5), (4, 10), (6, 30), (3, 1)])
def test_sizes_grow_to_the_ratio(k, ratio):
    sizes = [len(h.rows) for h in dealt(splits.unequal_sizes(k, ratio), table(5000))]
    assert sizes == sorted(sizes)
    assert sizes[-1] / sizes[0] == pytest.approx(ratio, rel=0.05)
    steps = np.diff(np.log(sizes))
    np.testing.assert_allclose(steps, steps.mean(), atol=0.03)


def test_a_ratio_that_leaves_a_silo_without_rows_is_refused():
    with pytest.raises(ValueError, match="lower the ratio"):
        dealt(splits.unequal_sizes(4, 1e6))


def test_missing_values_grow_from_silo_to_silo_in_the_columns_named():
    pool = table()
    hands = dealt(splits.unequal_missingness(4, 0.6, ["dose", "age"]), pool)
    for i, hand in enumerate(hands):
        dose, age, *rest = hand.gone.T
        assert dose.mean() == pytest.approx(0.2 * i, abs=0.01)
        known = ~np.isnan(pool.columns["age"][hand.rows])
        assert not (age & ~known).any()
        assert age.sum() == round(0.2 * i * known.sum())
        assert not np.any(rest)


def test_a_large_alpha_is_even_and_a_small_one_is_not():
    pool = table()
    even = rates(pool, dealt(splits.dirichlet(4, 1e5), pool))
    np.testing.assert_allclose(even, pool.y.mean(), atol=0.03)
    shares = []
    for seed in range(20):
        hands = dealt(splits.dirichlet(4, 0.05), pool, seed)
        shares.append(max((pool.y[h.rows] == 1).sum() for h in hands) / pool.y.sum())
    assert np.mean(shares) > 0.8  # nearly all rows of a label are in one silo


def test_the_mean_share_of_a_silo_has_the_variance_of_the_dirichlet_distribution():
    pool = Pool({"x": np.arange(1000.0)}, np.zeros(1000, int))
    first = [len(dealt(splits.dirichlet(4, 2.0), pool, seed)[0].rows) / 1000 for seed in range(400)]
    assert np.mean(first) == pytest.approx(0.25, abs=0.03)
    assert np.var(first) == pytest.approx(0.25 * 0.75 / 9, rel=0.2)  # p (1 - p) / (k alpha + 1)


def test_a_vanishing_alpha_still_leaves_no_silo_empty():
    hands = dealt(splits.dirichlet(10, 1e-300))
    assert sorted(len(h.rows) for h in hands)[:8] == [1] * 8


@pytest.mark.parametrize("name", EVERY)
def test_every_split_runs_end_to_end(name, shared_data):
    how = splits.feature_skew(5, "age", 0.7) if name == "feature_skew" else EVERY[name]
    how = splits.by("pclass") if name == "by" else how
    silos = cf.data.titanic(split=how, seed=1)
    assert silos.origin == f"Titanic (1309 passengers), dealt out by {name}"
    recipe = cf.weight_erosion(user=0, lr=0.5, p_d=0.01)
    history = cf.simulate(recipe, cf.models.logistic(), silos.for_user(0), 5, user=0, metrics=("accuracy",))
    accuracy = np.asarray(history.metrics["accuracy"])
    assert np.isfinite(accuracy).all()
    assert accuracy[-1] > 0.4


def test_shards_have_equal_sizes_and_few_labels_each():
    y = np.repeat(np.arange(10), 40)
    hands = dealt(splits.shards(5, 2), Pool({}, y))
    assert [len(hand.rows) for hand in hands] == [80] * 5
    assert [len(np.unique(y[hand.rows])) for hand in hands] == [2] * 5
    with pytest.raises(ValueError, match="each"):
        splits.shards(5, 0)
