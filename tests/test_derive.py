"""Derived columns: arithmetic on numbers and dates, and nothing else."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from confrere.cli.check import check
from confrere.cli.predict import rows_of
from confrere.cli.train import train
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


@pytest.fixture
def study(tmp_path):
    """A study.toml with a derived column, and its data."""
    rows = pl.DataFrame({"months": np.arange(400, 440), "ill": ["no", "yes"] * 20, "ward": ["a", "a", "b", "b"] * 10})
    rows.write_csv(tmp_path / "p.csv")
    data = '[data]\npath = "p.csv"\nlabel = "ill"\nsilo = "ward"\nfeatures = ["age"]\nmin_level = 4\n'
    (tmp_path / "study.toml").write_text(f'{data}[derive]\nage = "months / 12"\n')
    return tmp_path / "study.toml"


def test_check_takes_a_study_file_in_place_of_data(study, capsys):
    check(data=[str(study)], json=True)
    assert json.loads(capsys.readouterr().out)["features"] == ["age"]
    with pytest.raises(typer.Exit):
        check(data=[str(study)], label="ill")
    assert "study.toml says which data: write what --label would say into its [data]" in capsys.readouterr().err
    study.write_text(study.read_text().replace("months / 12", "month / 12"))
    with pytest.raises(typer.Exit):
        check(data=[str(study)])
    assert "line 8: derive.age: silo 'a': age = " in capsys.readouterr().err


def test_train_keeps_what_a_study_file_derives_so_that_predict_derives_it_too(study, monkeypatch, tmp_path):
    kept = {}
    answer = SimpleNamespace(to_dict=dict)
    monkeypatch.setattr("confrere.cli.train.start_jax", lambda: None)
    monkeypatch.setattr("confrere.cli.train.personal_answer", lambda *given: answer)
    monkeypatch.setattr("confrere.saved.save_model", lambda made, silos, out, config, replace: kept.update(config))
    train(data=[str(study)], user="a", out=tmp_path / "model", json=True)
    assert kept["overridden"] == {"features": "age", "derived": "age"}
    assert (kept["min_level"], kept["derive"]) == (4, {"age": "months / 12"})
    saved = SimpleNamespace(manifest={"config": kept}, model=SimpleNamespace(user="a"))
    assert rows_of(saved, study.with_name("p.csv"))["age"][8] == 34


def test_a_label_that_a_table_lacks_can_be_made():
    made = derived(TABLE, {"stay": "admission - onset"}, "north", label="stay", silos="clinic")
    assert made["stay"].to_list() == [2.0, 2.0, None]
