"""What is said to be odd about silos is so, and gives nobody away."""

import itertools

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import confrere as cf
from confrere.data.overview import overview, told
from confrere.data.quirks import quirks


def quirks_of(label, x=None, **options):
    """The quirks of one silo with these labels; a second one has nothing odd."""
    rows = len(label)
    first = {"x": [float(i * i % 97) for i in range(rows)] if x is None else x, "y": label, "s": ["a"] * rows}
    other = {"x": [float(i**3 % 101) for i in range(60)], "y": [*"uvw"] * 20, "s": ["b"] * 60}
    table = pl.DataFrame({name: [*first[name], *other[name]] for name in first})
    return overview(cf.Silos.from_table(table, label="y", silo="s"), **options)["quirks"]


def test_of_two_classes_the_more_frequent_one_is_nearly_always_right():
    (said,) = quirks_of(["u"] * 95 + ["v"] * 5)
    assert said.startswith(
        "a: skewed labels, v in 5 of 100 rows (5%): always saying the other is right nearly as often"
    )


def test_of_three_classes_a_rare_one_hardly_counts_in_accuracy():
    (said,) = quirks_of(["u"] * 50 + ["v"] * 45 + ["w"] * 5)
    assert said.startswith("a: skewed labels, w in 5 of 100 rows (5%): they hardly count in accuracy, so look at")
    assert "the other" not in said


def test_one_row_is_in_the_singular():
    silo = {"rows": 1, "label": {"no": 1, "yes": 0}, "columns": {}}
    assert quirks({"silos": {"a": silo}, "least": 5})[0].startswith("a: the only row is of one class (no)")


def test_how_many_classes_are_small_is_not_told():
    for label in (["u"] * 50 + ["v"] * 2, ["u"] * 50 + ["v"] * 4 + ["w"] * 3):
        (said,) = quirks_of(label)
        assert said.startswith("a: one or more of its classes have fewer than 5 rows")


@pytest.mark.parametrize(("known", "rows"), [(3, 3), (4, 4), (4, 5), (1, 5), (2, 8), (4, 8)])
def test_of_few_rows_nothing_is_said_about_gaps(known, rows):
    values = [float(i * i) for i in range(known)] + [None] * (rows - known)
    assert not [said for said in quirks_of([*"uvw", *"uvwuv"][:rows], values) if "missing" in said]


def test_of_more_rows_mostly_missing_means_that_most_are():
    values = [1.0, 2.0, 4.0, *[None] * 17]
    told = "a: mostly missing: x (all but fewer than 5)"
    assert told in quirks_of(["u", "v"] * 10, values)
    assert "a: mostly missing: x (85%)" in quirks_of(["u", "v"] * 10, values, own="a")
    assert not [said for said in quirks_of(["u", "v"] * 10, [None, None, *map(float, range(18))]) if "missing" in said]


def test_values_taken_as_missing_in_a_small_silo_are_some():
    table = pl.DataFrame({"x": [0.0] * 4 + [0.0, *range(1, 9)], "y": [0, 1] * 6 + [1], "s": ["a"] * 4 + ["b"] * 9})
    notes = cf.Silos.from_table(table, label="y", silo="s", missing={"x": [0]}).notes
    assert "silo 'a': x = 0 is taken as missing (in some rows)" in notes


@pytest.mark.parametrize("labels", [["u"], ["v"] * 4, ["u", "v", "w"]])
@pytest.mark.parametrize("x", [3.5, None])
def test_of_a_tiny_silo_the_overview_is_the_same_whatever_its_rows_hold(labels, x):
    def seen(labels, x, level):
        rows, many = len(labels), {"x": [float(i**3 % 101) for i in range(60)], "k": [*"pq"] * 30, "y": [*"uvw"] * 20}
        tiny = {"x": [x] * rows, "k": [level, *["p"] * (rows - 1)], "y": labels, "s": ["a"] * rows}
        table = pl.DataFrame({name: [*tiny[name], *(many | {"s": ["b"] * 60})[name]] for name in tiny})
        return overview(cf.Silos.from_table(table, label="y", silo="s", min_level=5))

    found = seen(labels, x, None)
    assert found["silos"]["a"] == seen(["w", "w"], 1.0, "z")["silos"]["a"]
    assert found["silos"]["a"]["label"] == {"u": None, "v": None, "w": None}
    assert found["silos"]["a"]["columns"]["k"] == {"kind": "categorical", "known": None, "missing": None, "few": "rows"}


@example([1, 1, 1, 0])
@example([3, 3, 1])
@example([3, 2, 2])
@given(st.lists(st.integers(0, 7), min_size=2, max_size=4).filter(lambda counts: sum(counts) >= 3))
@settings(max_examples=30, deadline=None)
def test_no_small_count_follows_from_what_is_told_and_the_number_of_rows(counts):
    least, rows = 3, sum(counts)
    shown = told(dict(enumerate(counts)), least)
    others = [c for c in itertools.product(range(rows + 1), repeat=len(counts)) if sum(c) == rows]
    alike = [c for c in others if told(dict(enumerate(c)), least) == shown]
    for i, count in enumerate(counts):
        if 0 < count < least:
            assert len({c[i] for c in alike}) > 1


def test_gaps_that_are_hidden_do_not_follow_from_the_counts_of_levels():
    table = pl.DataFrame({"k": [*"pq"] * 20 + [None] * 3, "y": [0] * 20 + [1] * 23, "s": ["a"] * 43})
    seen = overview(cf.Silos.from_table(table, label="y", silo="s"))["silos"]["a"]["columns"]["k"]
    assert seen == {
        "kind": "categorical", "known": None, "missing": None, "few": "missing", "levels": {"p": None, "q": None},
    }  # fmt: skip
