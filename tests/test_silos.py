"""Silos: what goes in comes out, in parts and padded blocks; what is wrong is named."""

import contextlib

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confrere as cf
from confrere.data.silo import PARTS, Silo

NAN, INF = float("nan"), float("inf")


def pair(rows=4, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)), rng.integers(0, 2, rows)


def spoilt(value, row=2, column=1):
    X, y = pair()
    X[row, column] = value
    return X, y


def all_rows(silo):
    """The rows of the three parts, as sorted tuples."""
    parts = [silo.rows(part) for part in PARTS]
    return sorted((*x, label) for X, y in parts for x, label in zip(X.tolist(), y.tolist(), strict=True))


# from_arrays


def test_numbers_are_taken_as_they_are():
    given = [pair(4, seed=1), pair(6, seed=2)]
    silos = cf.Silos.from_arrays(given)
    for i, (X, y) in enumerate(given):
        np.testing.assert_array_equal(silos[i].X, X)
        np.testing.assert_array_equal(silos[i].y, y)
        assert silos[i].X.dtype == X.dtype


def test_names_are_numbers_and_columns_x0_x1_unless_given():
    silos = cf.Silos.from_arrays([pair(), pair()])
    assert silos.names == ("0", "1")
    assert silos.feature_names == ("x0", "x1", "x2")
    assert silos.label_names is None


def test_given_names_are_kept():
    silos = cf.Silos.from_arrays([pair(), pair()], names=["a", "b"], feature_names="uvw", label_names=["no", "yes"])
    assert (silos.names, silos.feature_names, silos.label_names) == (("a", "b"), ("u", "v", "w"), ("no", "yes"))
    assert len(silos) == 2
    assert silos["b"].name == "b"


def test_lists_integers_and_booleans_are_numbers_too():
    silos = cf.Silos.from_arrays([([[1, 2], [3, 4]], [True, False]), (np.ones((1, 2), bool), [1])])
    assert silos[0].X.dtype == silos[1].X.dtype == np.float64
    assert silos.classes() == 2
    assert silos.block().y.tolist() == [[1, 0], [1, 0]]


def test_all_rows_are_for_training_at_first():
    silos = cf.Silos.from_arrays([pair(4), pair(7)])
    assert silos.sizes() == silos.sizes("train") == (4, 7)
    assert silos.sizes("validation") == silos.sizes("test") == (0, 0)


def test_what_the_caller_does_to_the_arrays_later_changes_nothing():
    X, y = pair()
    silos = cf.Silos.from_arrays([(X, y)])
    first = silos[0].X.copy(), silos[0].y.copy()
    X[:], y[:] = 99, 77
    np.testing.assert_array_equal(silos[0].X, first[0])
    np.testing.assert_array_equal(silos[0].y, first[1])


GOOD = pair()
REFUSED = {
    "no silo": ([], {}, ValueError, ["no silo"]),
    "NaN": ([GOOD, spoilt(NAN)], {}, ValueError, ["'1'", "row 2", "column 1", "fill or drop"]),
    "infinity": ([spoilt(-INF), GOOD], {}, ValueError, ["'0'", "row 2", "column 1"]),
    "NaN label": ([GOOD, (GOOD[0], [0.0, 1.0, NAN, 1.0])], {}, ValueError, ["'1'", "label"]),
    "too few labels": ([GOOD, (GOOD[0], [0, 1])], {}, ValueError, ["'1'", "y", "(4)", "(2,)"]),
    "labels in a column": ([(GOOD[0], [[0], [1], [0], [1]])], {}, ValueError, ["'0'", "y", "(4, 1)"]),
    "another width": ([GOOD, pair(4, 2)], {}, ValueError, ["'1'", "2 features", "'0'", "3"]),
    "no rows": ([GOOD, (np.zeros((0, 3)), [])], {}, ValueError, ["'1'", "no rows"]),
    "one-dimensional X": ([GOOD, ([1.0, 2.0], [0, 1])], {}, ValueError, ["'1'", "X", "(2,)"]),
    "text in X": ([([["a", "b"]], [0])], {}, TypeError, ["'0'", "X", "numbers"]),
    "text in y": ([GOOD, (GOOD[0], ["no", "no", "no", "yes"])], {}, TypeError, ["'1'", "y", "numbers"]),
    "objects in X": ([(np.array([[None, 1]]), [0])], {}, TypeError, ["'0'", "X", "numbers"]),
    "complex X": ([(np.ones((1, 2), complex), [0])], {}, TypeError, ["'0'", "X", "numbers"]),
    "ragged X": ([GOOD, ([[1.0, 2.0, 3.0], [4.0]], [0, 1])], {}, ValueError, ["'1'", "X"]),
    "same name twice": ([GOOD, GOOD], {"names": ["a", "a"]}, ValueError, ["differ", "a"]),
    "too few names": ([GOOD, GOOD], {"names": ["a"]}, ValueError, ["1 names for 2 silos"]),
    "too few feature names": ([GOOD], {"feature_names": ["u"]}, ValueError, ["1 feature names for 3 columns"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_arrays_are_refused_and_the_place_is_named(what):
    arrays, how, error, words = REFUSED[what]
    with pytest.raises(error) as problem:
        cf.Silos.from_arrays(arrays, **how)
    for word in words:
        assert word in str(problem.value)


def test_the_silo_is_called_by_its_name_in_an_error():
    with pytest.raises(ValueError, match="silo 'Geneva'"):
        cf.Silos.from_arrays([GOOD, spoilt(NAN)], names=["Lausanne", "Geneva"])


def test_a_number_too_large_for_the_block_is_refused_and_named():
    with pytest.raises(ValueError, match="'b'"):  # finite in double precision only
        cf.Silos.from_arrays([GOOD, spoilt(1e300)], names=["a", "b"]).block()


# index


def test_a_silo_is_found_by_name_or_by_place():
    silos = cf.Silos.from_arrays([GOOD, GOOD, GOOD], names=["a", "b", "c"])
    assert [silos.index(which) for which in ("a", "c", 1, np.int64(2))] == [0, 2, 1, 2]
    assert silos[1] is silos["b"]


@pytest.mark.parametrize(
    ("which", "error", "words"),
    [("d", KeyError, "no silo 'd'.*a, b"), (2, IndexError, "no silo 2.*there are 2"), (-1, IndexError, "no silo -1")],
)
def test_a_silo_that_is_not_there_is_a_clear_error(which, error, words):
    silos = cf.Silos.from_arrays([GOOD, GOOD], names=["a", "b"])
    with pytest.raises(error, match=words):
        silos.index(which)


@pytest.mark.parametrize("which", [0.5, None, [0]], ids=str)
def test_what_is_neither_name_nor_place_is_refused(which):
    silos = cf.Silos.from_arrays([GOOD, GOOD])
    with pytest.raises((TypeError, ValueError, LookupError), match="silo"):
        silos.index(which)


# split


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    test=st.integers(0, 10),
    validation=st.integers(0, 10),
    seed=st.integers(0, 5),
)
def test_a_split_cuts_every_silo_into_parts_of_the_shares_asked_for(sizes, test, validation, seed):
    test, validation = test / 20.5, validation / 20.5
    silos = cf.Silos.from_arrays([pair(rows, seed=rows) for rows in sizes])
    cut = silos.split(test, validation, seed)
    for before, after, rows in zip(silos.silos, cut.silos, sizes, strict=True):
        assert abs(after.count("test") - test * rows) <= 0.5
        assert abs(after.count("validation") - validation * rows) <= 1
        assert sum(after.count(part) for part in PARTS) == rows
        assert all_rows(after) == all_rows(before)


def test_a_split_depends_on_its_seed_alone():
    silos = cf.Silos.from_arrays([pair(30), pair(30, seed=1)])
    parts = [[s.part.tolist() for s in silos.split(seed=seed).silos] for seed in (3, 3, 4)]
    assert parts[0] == parts[1] != parts[2]
    assert parts[0][0] != parts[0][1]


def test_rows_of_a_part_keep_their_order():
    silo = cf.Silos.from_arrays([(np.arange(20.0)[:, None], np.arange(20))]).split(0.5)[0]
    for part in ("train", "test"):
        X, y = silo.rows(part)
        assert X[:, 0].tolist() == sorted(X[:, 0].tolist()) == y.tolist()


@pytest.mark.parametrize("shares", [(-0.1, 0), (0, -0.1), (1, 0), (0.5, 0.5), (2, 0)])
def test_shares_that_leave_nothing_to_train_on_are_refused(shares):
    with pytest.raises(ValueError, match="shares"):
        cf.Silos.from_arrays([GOOD]).split(*shares)


@pytest.mark.parametrize("ask", ["block", "sizes", "rows", "count"])
def test_a_part_that_does_not_exist_is_a_clear_error(ask):
    silos = cf.Silos.from_arrays([GOOD])
    with pytest.raises(ValueError, match=r"train.*validation.*test"):
        getattr(silos[0] if ask in ("rows", "count") else silos, ask)("tset")


# for_user


def three_silos():
    return cf.Silos.from_arrays([pair(10, seed=i) for i in range(3)], names="abc").split(0.4, 0.2, seed=1)


def test_for_user_keeps_the_users_parts_and_gives_all_rows_of_the_others():
    silos = three_silos()
    seen = silos.for_user("b")
    assert seen.sizes("train") == (10, 4, 10)
    assert seen.sizes("test") == (0, 4, 0)
    assert seen.sizes("validation") == (0, 2, 0)
    assert seen["b"] is silos["b"]
    np.testing.assert_array_equal(seen["a"].rows("train")[0], silos["a"].X)
    assert seen.names == silos.names


def test_for_user_with_others_train_never_shows_the_others_test_rows():
    silos = three_silos()
    seen = silos.for_user(1, others="train")
    assert seen.sizes("train") == (4, 4, 4)
    assert seen.sizes("test") == (0, 4, 0)
    for name in "ac":
        np.testing.assert_array_equal(seen[name].X, silos[name].rows("train")[0])
        np.testing.assert_array_equal(seen[name].y, silos[name].rows("train")[1])


def test_for_user_leaves_the_silos_as_they_were():
    silos = three_silos()
    silos.for_user(0)
    assert silos.sizes("train") == silos.sizes("test") == (4, 4, 4)


def test_for_user_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="others"):
        three_silos().for_user(0, others="test")
    with pytest.raises(KeyError, match="no silo 'z'"):
        three_silos().for_user("z")


# block


def test_a_block_packs_rows_in_front_and_pads_behind():
    silos = cf.Silos.from_arrays([pair(2, seed=1), pair(5, seed=2)])
    block = silos.block()
    assert block.X.shape == (2, 5, 3)
    assert block.y.shape == (2, 5)
    assert block.size.tolist() == [2, 5]
    assert block.id.tolist() == [0, 1]
    assert (block.size.dtype, block.id.dtype, block.y.dtype) == (np.int32, np.int32, np.int32)
    for i, silo in enumerate(silos.silos):
        rows = len(silo.y)
        np.testing.assert_array_equal(block.X[i, :rows], silo.X.astype(block.X.dtype))
        np.testing.assert_array_equal(block.y[i, :rows], silo.y)
        assert not block.X[i, rows:].any()
        assert not block.y[i, rows:].any()


def test_a_block_may_be_longer_but_not_shorter_than_the_longest_silo():
    silos = cf.Silos.from_arrays([pair(2), pair(5)])
    assert silos.block(rows=9).X.shape == (2, 9, 3)
    with pytest.raises(ValueError, match=r"4 rows is too small.*5"):
        silos.block(rows=4)


def test_a_block_of_an_empty_part_has_one_padded_row():
    block = cf.Silos.from_arrays([pair(2), pair(5)]).block("test")
    assert block.X.shape == (2, 1, 3)
    assert block.size.tolist() == [0, 0]


def test_a_block_has_the_precision_of_the_computation():
    silos = cf.Silos.from_arrays([(GOOD[0], GOOD[1] * 0.5)])
    assert (silos.block().X.dtype, silos.block().y.dtype) == (np.float32, np.float32)
    with jax.enable_x64(True):
        assert (silos.block().X.dtype, silos.block().y.dtype) == (np.float64, np.float64)


def test_writing_into_a_block_does_not_spoil_the_next_one():
    silos = cf.Silos.from_arrays([GOOD])
    expected = np.array(silos.block().X)
    with contextlib.suppress(ValueError):  # it may refuse to be written to
        silos.block().X[:] = 99
    np.testing.assert_array_equal(silos.block().X, expected)


def test_large_whole_numbers_to_predict_keep_their_value():
    y = np.array([3_000_000_000, 5])
    block = cf.Silos.from_arrays([(np.ones((2, 1)), y)]).block()
    np.testing.assert_allclose(block.y[0].astype(float), y, rtol=1e-6)


# classes


def test_classes_are_counted_over_all_silos_and_are_at_least_two():
    X = np.ones((3, 1))
    assert cf.Silos.from_arrays([(X, [0, 0, 0])]).classes() == 2
    assert cf.Silos.from_arrays([(X, [0, 0, 0]), (X, [1.0, 2.0, 0.0])]).classes() == 3
    assert cf.Silos.from_arrays([(X, [0, 1, 0])], label_names="abc").classes() == 3


@pytest.mark.parametrize(("label", "words"), [(-1, "'1'.*-1"), (0.5, "'1'.*0.5"), (3, "label 3.*2 label names")])
def test_labels_that_are_no_class_numbers_are_named(label, words):
    X = np.ones((2, 1))
    silos = cf.Silos.from_arrays([(X, [0, 1]), (X, [1, label])], label_names=["no", "yes"])
    with pytest.raises(ValueError, match=words):
        silos.classes()


def test_a_silo_cannot_be_changed_by_assignment():
    silo = cf.Silos.from_arrays([GOOD])[0]
    assert isinstance(silo, Silo)
    with pytest.raises(AttributeError):
        silo.name = "other"


@pytest.mark.parametrize(
    "given",
    [None, 3, {"a": (np.eye(2), [0, 1])}, (np.eye(2), [0, 1]), [(np.eye(2), [0, 1], [1, 1])], [np.eye(2)]],
    ids=["nothing", "a number", "a mapping", "one pair", "three arrays", "no labels"],
)
def test_what_is_no_list_of_pairs_is_refused(given):
    with pytest.raises(TypeError, match=r"\(X, y\)"):
        cf.Silos.from_arrays(given)


def test_values_that_are_masked_are_not_finite_and_no_columns_are_refused():
    masked = np.ma.masked_array(np.eye(2), mask=[[True, False], [False, False]])
    with pytest.raises(ValueError, match=r"1 value\(s\) of X are not finite"):
        cf.Silos.from_arrays([(masked, [0, 1])])
    with pytest.raises(ValueError, match="X has no columns"):
        cf.Silos.from_arrays([(np.zeros((2, 0)), [0, 1])])
