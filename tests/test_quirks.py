"""What is said to be odd about silos is so, and gives nobody away."""

import polars as pl
import pytest

import confrere as cf
from confrere.data.overview import overview


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
