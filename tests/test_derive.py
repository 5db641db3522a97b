"""Derived columns: arithmetic on numbers and dates, and nothing else."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confrere.data.derive import derived

TABLE = pl.DataFrame({
    "onset": ["2020-02-28", "2020-12-31", None], "admission": ["1.3.2020", "02.01.2021", "05.01.2021"],
    "weight": [80.0, 60.0, 70.0], "height": ["160", "200", "?"], "name": ["a", "b", "c"],
})  # fmt: skip


def test_the_difference_of_dates_is_days_whatever_they_are_written_like():
    made = derived(TABLE, {"days_ill": "admission - onset"}, "north")
    assert made["days_ill"].to_list() == [2.0, 2.0, None]  # 2020 is a leap year
    assert "onset" not in made.columns
    assert "name" in made.columns


def test_arithmetic_is_that_of_numpy():
    made = derived(TABLE, {"bmi": "weight / (height / 100) ** 2", "less": "-weight + 2 * 3"}, "north")
    np.testing.assert_allclose(made["bmi"].to_list()[:2], [80 / 1.6**2, 60 / 2.0**2])
    assert made["bmi"][2] is None
    assert made["less"].to_list() == [-74.0, -54.0, -64.0]
    assert "height" in made.columns  # numbers stay


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.sampled_from("+-*"))
def test_formulas_of_two_columns(a, b, sign):
    frame = pl.DataFrame({"a": [a], "b": [b]})
    expected = {"+": a + b, "-": a - b, "*": a * b}[sign]
    assert derived(frame, {"c": f"a {sign} b"}, "s")["c"].item() == pytest.approx(expected)


@pytest.mark.parametrize(("formula", "words"), [
    ("__import__('os')", "no column '__import__'"),
    ("weight('os')", "are understood"),
    ("weight.name", "are understood"),
    ("weight if weight else 1", "are understood"),
    ("weight > 3", "are understood"),
    ("'x' * 3", "are understood"),
    ("True + weight", "are understood"),
    ("weight +", "no formula"),
    ("1 + 2", "names no column"),
    ("wieght * 2", "did you mean 'weight'"),
    ("name * 2", "neither numbers nor dates"),
    ("weight / (weight - weight)", "divide by zero"),
    ("9**9**9**9 + weight", "too large"),
    ("1 / 0 + weight", "divided by zero"),
    ("(-8) ** 0.5 + weight", "no real number"),
    ("1" + "0" * 400 + " + weight", "too large"),
    ("weight" + " + 1" * 20_000, "too long"),
    ("weight ** 999", "not finite"),
])  # fmt: skip
def test_what_is_no_arithmetic_is_refused(formula, words):
    with pytest.raises(ValueError, match=words) as problem:
        derived(TABLE, {"x": formula}, "north")
    assert "north" in str(problem.value)


@pytest.mark.parametrize(("formulas", "words"), [
    ({"ill": "age"}, "'ill' is the label, which a formula may not replace"),
    ({"clinic": "age"}, "'clinic' is the column of silos, which a formula may not replace"),
    ({"x": "ill * 2"}, "would give the answer away"),
])  # fmt: skip
def test_the_label_and_the_silos_are_neither_replaced_nor_used(tmp_path, formulas, words):
    from confrere.data.choose import Choice, chosen_silos

    lines = "".join(f"{20 + i % 50},{i % 2},{'ab'[i % 3 > 0]}\n" for i in range(60))
    (tmp_path / "p.csv").write_text("age,ill,clinic\n" + lines)
    for derive in ({"": formulas}, {"a": formulas}):
        with pytest.raises(ValueError, match=words):
            chosen_silos(Choice((str(tmp_path / "p.csv"),), label="ill", silo="clinic", derive=derive))


def test_a_label_that_a_table_lacks_can_be_made():
    made = derived(TABLE, {"stay": "admission - onset"}, "north", label="stay", silos="clinic")
    assert made["stay"].to_list() == [2.0, 2.0, None]
