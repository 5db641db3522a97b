"""Dealing out: rows go to other silos with their values and labels, what is removed is filled; halves and folds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confrere as cf
from confrere.data import splits
from confrere.data.dealing import of_silos
from confrere.data.silo import PARTS
from confrere.data.source import Hand, Pool

ROWS = 240


def silos_of(rows=ROWS, features=3, seed=0, parts=2):
    """Array silos whose first feature is the number of the row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    X[:, 0] = np.arange(rows)
    y = rng.integers(0, 2, rows)
    return cf.Silos.from_arrays(list(zip(np.array_split(X, parts), np.array_split(y, parts), strict=True)))


# Dealing out silos


def test_rows_of_several_silos_are_pooled_and_keep_their_labels_and_values():
    silos = silos_of()
    made = silos.divide(splits.iid(5), seed=1)
    before = {(*x, y) for s in silos.silos for x, y in zip(s.X.tolist(), s.y.tolist(), strict=True)}
    after = [(*x, y) for s in made.silos for x, y in zip(s.X.tolist(), s.y.tolist(), strict=True)]
    assert len(after) == ROWS
    assert set(after) == before
    assert made.sizes() == (48,) * 5
    assert made.sizes("test") == (0,) * 5
    assert made.shared == ()


def test_divided_silos_are_artificial_and_say_how_they_came_about():
    made = silos_of().divide(splits.label_skew(3))
    assert (made.kind, made.origin) == ("artificial", "arrays, dealt out by label_skew")
    invented = replace(silos_of(), kind="synthetic", origin="synthetic rows")
    assert invented.divide(splits.iid(2)).kind == "synthetic"


def test_a_column_is_known_by_the_name_of_its_feature():
    silos = cf.Silos.from_arrays([(np.eye(6), np.arange(6) % 2)], feature_names="abcdef")
    assert [len(s.y) for s in silos.divide(splits.by("c")).silos] == [5, 1]


def test_turned_labels_arrive_in_the_silo():
    silos = silos_of()
    made = silos.divide(splits.concept_shift(3), seed=2)
    y = np.concatenate([s.y for s in silos.silos])
    for silo, turned in zip(made.silos, (False, False, True), strict=True):
        np.testing.assert_array_equal(silo.y, y[silo.X[:, 0].astype(int)] ^ turned)


def test_removed_values_are_filled_with_the_known_mean_of_the_training_rows_and_told():
    silos = silos_of()
    made = silos.divide(splits.unequal_missingness(3, 0.5, ["x2"]), seed=1)
    assert made.feature_names == ("x0", "x1", "x2", "x2=missing")
    true = np.concatenate([s.X for s in silos.silos])
    for name, halves in (("all", made), ("half", made.halve())):
        place = [s.X[:, 0].astype(int) for s in halves.silos]
        train = [s.part == PARTS.index("train") for s in halves.silos]
        known = [
            true[p[t & (s.X[:, 3] == 0)], 2] for p, t, s in zip(place, train, halves.silos, strict=True)
        ]  # what the training rows know, recomputed from the silos before
        mean = np.concatenate(known).mean()
        for silo, rows in zip(halves.silos, place, strict=True):
            gone = silo.X[:, 3] == 1
            np.testing.assert_allclose(silo.X[gone, 2], mean, err_msg=name)
            np.testing.assert_array_equal(silo.X[~gone, :3], true[rows][~gone])
    assert {(s.silo, s.what, s.count) for s in made.shared} == {(n, "count and sum of x2", 2) for n in "abc"}


def test_what_was_removed_stays_removed_when_rows_are_dealt_out_again():
    once = silos_of().divide(splits.unequal_missingness(3, 0.5, ["x2"]), seed=1)
    twice = once.divide(splits.iid(2), seed=5)
    assert twice.feature_names == once.feature_names
    counts = [sum(s.X[:, 3].sum() for s in silos.silos) for silos in (once, twice)]
    assert counts[0] == counts[1] == 20 + 40
    assert np.isnan(twice.source.pool().columns["x2"]).sum() == 60


def test_a_feature_that_nobody_knows_is_zero():
    made = silos_of().divide(lambda pool, rng: [Hand("a", np.arange(ROWS), gone=np.ones((ROWS, 3), bool))])
    assert not made[0].X[:, :3].any()
    assert made[0].X[:, 3:].all()


def test_tables_are_dealt_out_by_their_source():
    class Tables:
        """A source that notes what it is asked."""

        def __init__(self, asked):
            self.asked = asked

        def pool(self):
            return Pool({"ward": np.array(["north", "south", "", "east"])[np.arange(ROWS) % 4]}, np.zeros(ROWS))

        def deal(self, hands):
            self.asked["hands"] = [h.name for h in hands]
            return self

        def encode(self, parts):
            self.asked["parts"] = parts
            return silos_of()

    asked = {}
    made = replace(silos_of(), source=Tables(asked), origin="a table").divide(splits.by("ward"))
    assert asked["hands"] == ["east", "north", "south", "unknown"]
    assert [len(p) for p in asked["parts"]] == [60] * 4
    assert not np.concatenate(asked["parts"]).any()  # all for training
    assert made.origin == "a table, dealt out by by"


@pytest.mark.parametrize(
    ("hands", "words"),
    [
        ([], "made no silo"),
        ([Hand("a", np.arange(ROWS - 1))], "exactly once"),
        ([Hand("a", np.arange(ROWS)), Hand("b", np.array([0]))], "exactly once"),
        ([Hand("a", np.arange(ROWS)), Hand("b", np.array([], int))], "silo 'b' without rows"),
        ([Hand("a", np.arange(120)), Hand("a", np.arange(120, ROWS))], "names must differ"),
        ([Hand("a", np.arange(ROWS), y=np.zeros(3))], "labels for 240 rows"),
        ([Hand("a", np.arange(ROWS), gone=np.zeros((ROWS, 2), bool))], r"\(240, 3\)"),
    ],
)
def test_a_split_of_ones_own_that_goes_wrong_is_refused(hands, words):
    def my_split(pool, rng):
        return hands

    with pytest.raises(ValueError, match=words):
        silos_of().divide(my_split)


def test_the_pool_of_array_silos_is_their_features():
    silos = silos_of()
    pool = of_silos(silos).pool()
    assert list(pool.columns) == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(pool.columns["x0"], np.arange(ROWS))
    np.testing.assert_array_equal(pool.y, np.concatenate([s.y for s in silos.silos]))


# Halves and folds


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4), k=st.integers(2, 6), seed=st.integers(0, 100))
def test_folds_test_every_row_exactly_once_and_share_out_the_classes(sizes, k, seed):
    rng = np.random.default_rng(seed)
    silos = cf.Silos.from_arrays([(rng.normal(size=(n, 2)), rng.integers(0, 3, n)) for n in sizes])
    folds = list(silos.folds(k, seed))
    assert len(folds) == k
    for i, silo in enumerate(silos.silos):
        tested = np.array([f[i].part == PARTS.index("test") for f in folds])
        np.testing.assert_array_equal(tested.sum(axis=0), 1)
        for label in range(3):
            counts = tested[:, silo.y == label].sum(axis=1)
            assert counts.max() - counts.min() <= 1
        assert np.ptp(tested.sum(axis=1)) <= 1
        np.testing.assert_array_equal(folds[0][i].X, silo.X)


def test_folds_depend_on_their_seed_and_one_fold_is_refused():
    silos = silos_of()
    parts = [np.concatenate([s.part for s in next(silos.folds(3, seed)).silos]) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(parts[0], parts[1])
    assert not np.array_equal(parts[0], parts[2])
    with pytest.raises(ValueError, match="2 folds or more"):
        next(silos.folds(1))


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 9])
def test_halves_are_the_first_rows_and_one_more_and_the_rest(rows):
    halves = cf.Silos.from_arrays([(np.ones((rows, 1)), np.zeros(rows))]).halve()
    assert halves[0].part.tolist() == [PARTS.index("test")] * (1 + rows // 2) + [0] * (rows - 1 - rows // 2)


def test_parts_can_be_given_and_must_be_as_many_as_silos():
    silos = silos_of(6)
    parts = [np.array([0, 1, 2], np.int8), np.array([2, 2, 0], np.int8)]
    assert silos.with_parts(parts).sizes("test") == (1, 2)
    with pytest.raises(ValueError, match="argument"):
        silos.with_parts(parts[:1])
