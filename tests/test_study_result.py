"""Tables, paired intervals, summaries and files of a study's result, from cells made by hand."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

import confrere as cf
from confrere.study.statistics import interval, spread, tally

from .study_helpers import cell, result


def final(values, algorithm, user="a", **other):
    """Cells of several seeds whose accuracy ends at the given values."""
    return [cell(algorithm, user, seed, (0.5, 0.6, v), **other) for seed, v in enumerate(values)]


ONE, TWO = np.array([0.8, 0.7, 0.9, 0.75]), np.array([0.7, 0.72, 0.9, 0.6])


def test_the_plain_interval_is_scipys_paired_t():
    row = result(final(ONE, "x") + final(TWO, "y")).paired("x", "y").row(0, named=True)
    wanted = stats.ttest_rel(ONE, TWO).confidence_interval(0.95)
    np.testing.assert_allclose([row["low"], row["high"]], wanted)
    np.testing.assert_allclose([row["difference"], row["se"]], [np.mean(ONE - TWO), stats.sem(ONE - TWO)])
    assert (row["wins"], row["ties"], row["losses"], row["n"]) == (2, 1, 1, 4)
    assert row["interval"] == "plain"


def test_the_interval_of_resplit_rows_has_nadeau_and_bengios_variance():
    row = result(final(ONE, "x") + final(TWO, "y"), intervals="resplit").paired("x", "y").row(0, named=True)
    difference = ONE - TWO
    se = np.sqrt(difference.var(ddof=1) * (1 / 4 + 5 / 10))  # 5 test rows, 10 training rows
    reach = stats.t(3).ppf(0.975) * se
    np.testing.assert_allclose([row["se"], row["low"]], [se, difference.mean() - reach])
    assert row["interval"] == "resplit"


def test_over_all_users_seeds_are_averaged_over_users_first():
    cells = final(ONE, "x") + final(ONE[::-1], "x", "b") + final(TWO, "y") + final(TWO, "y", "b")
    paired = result(cells).paired("x", "y")
    assert paired["user"].to_list() == ["a", "b", "all"]
    mean = (ONE + ONE[::-1]) / 2
    np.testing.assert_allclose(paired["difference"][2], np.mean(mean - TWO))
    np.testing.assert_allclose(paired["se"][2], stats.sem(mean - TWO))
    table = result(cells).table(by="all")
    np.testing.assert_allclose(table["std"][0], mean.std(ddof=1))
    assert table["n"].to_list() == [4, 4]


def test_lower_is_better_where_it_is():
    assert tally(np.array([1.0, 2.0, np.nan]), np.array([2.0, 2.0, 3.0]), larger=False) == (1, 1, 1)
    assert tally(np.array([1.0, np.nan, np.nan]), np.array([2.0, 2.0, np.nan]), larger=True) == (0, 1, 2)


def test_a_single_seed_has_no_deviation_and_no_interval():
    one = result(final([0.8], "x") + final([0.7], "y"))
    assert one.table()["std"].to_list() == [None, None]
    row = one.paired("x", "y").row(0, named=True)
    assert row["se"] is None
    assert row["low"] is None
    assert row["difference"] == pytest.approx(0.1)
    assert spread([1.0]) is None
    assert interval(np.array([0.1]), None).high is None


def test_two_seeds_have_a_deviation_but_no_interval():
    row = result(final([0.8, 0.9], "x") + final([0.7, 0.75], "y")).paired("x", "y").row(0, named=True)
    assert row["se"] > 0
    assert row["low"] is row["high"] is None
    assert interval(np.array([0.1, 0.2, 0.3]), None).low is not None


def test_the_table_says_which_numbers_were_chosen_and_how_often():
    cells = [*final([0.7, 0.8], "x", hyper=({"lr": 0.1},)), cell("x", "a", 2, hyper=({"lr": 1.0},))]
    assert result(cells).table()["chosen"].to_list() == ["lr 0.1 (2); lr 1 (1)"]


def test_a_cell_has_a_last_and_a_best_model():
    two = {
        "hyper": ({"lr": 0.1}, {"lr": 1.0}), "round": (2, 1), "score": (0.4, 0.3), "partners": np.zeros((2, 2), int),
        "curves": {"accuracy": np.array([[0.5, 0.6, 0.7], [0.5, 0.9, 0.8]])}, "borrowed": np.zeros((2, 2)),
    }  # fmt: skip
    found = result([cell("x", **two)])
    assert found.table()["mean"].to_list() == [0.7]
    assert found.table(at="best")["mean"].to_list() == [0.9]
    assert found.table(at="best")["chosen"].to_list() == ["lr 1; rounds 1 to 1"]
    assert found.cells().select("chosen", "value", "round", "lr").rows() == [
        ("last", 0.7, 2, 0.1),
        ("best", 0.9, 1, 1.0),
    ]


def test_budgets_name_the_last_round_that_respects_them():
    curve = (0.5, 0.6, 0.7, 0.8, 0.9)
    other = {
        "partners": np.array([[3, 2, 1, 0]]), "borrowed": np.array([[0.7, 0.6, 0.3, 0.0]]), "bytes_each": 10,
        "bytes_total": 40,
    }  # fmt: skip
    some = {"rounds": [1, 99], "traffic": [85, 10], "traffic_each": [30], "silos": [2, 0], "weight": [0.65]}
    found = result([cell("x", curve=curve, **other)]).summary(**some)
    taken = dict(zip(found["budget"], zip(found["mean"], found["round"], strict=True), strict=True))
    assert taken == {
        "last round": (0.9, 4.0), "best by cross-validation": (0.9, 4.0), "after 1 rounds": (0.6, 1.0),
        "after 99 rounds": (0.9, 4.0), "within 85 bytes in all": (0.7, 2.0), "within 10 bytes in all": (0.5, 0.0),
        "within 30 bytes per silo": (0.8, 3.0), "within 2 other silos": (0.9, 4.0),
        "within 0 other silos": (0.9, 4.0), "within 0.65 of the weight": (0.9, 4.0),
    }  # fmt: skip


def test_a_scope_that_no_round_respects_leaves_the_start():
    found = result([cell("x")]).summary(silos=[1], weight=[0.4])
    assert found.filter(pl.col("budget").str.contains("within"))["mean"].to_list() == [0.5, 0.5]


def test_before_there_is_a_model_there_is_no_number():
    found = result([cell("x", curve=(np.nan, np.nan, 0.7))]).summary(rounds=[1, 2])
    assert found.select("budget", "mean", "n").rows()[-2:] == [("after 1 rounds", None, 0), ("after 2 rounds", 0.7, 1)]


def test_curves_are_means_or_every_seed_with_its_traffic():
    found = result(final([0.7, 0.9], "x"))
    mean = found.curves()
    assert mean.select("round", "mean").rows() == [(0, 0.5), (1, 0.6), (2, 0.8)]
    np.testing.assert_allclose(mean["std"][2], np.std([0.7, 0.9], ddof=1))
    every = found.curves(mean=False)
    assert every.filter(pl.col("seed") == 1)["bytes"].to_list() == [0, 30, 60]
    assert every["partners"].to_list() == [0, 2, 2] * 2


def test_what_is_saved_is_loaded_again(tmp_path):
    diverged = {"curves": {"accuracy": np.array([[0.5, np.nan, np.inf]])}, "tried": np.array([[0.1, np.nan, -np.inf]])}
    first = result([*final([0.7, 0.9], "x"), cell("y", **diverged)], origin="by hand")
    first.save(tmp_path / "out")
    first.save(tmp_path / "one.json")
    first.save(tmp_path / "one.parquet")
    for path in (tmp_path / "out", tmp_path / "one.json", tmp_path / "out" / "study.json"):
        again = cf.StudyResult.load(path)
        assert [c.plain() for c in again.cells_] == [c.plain() for c in first.cells_]
        assert again.config == first.config
    assert pl.read_parquet(tmp_path / "one.parquet").equals(first.cells())
    assert pl.read_parquet(tmp_path / "out" / "cells.parquet").equals(first.cells())
    curves = pl.read_parquet(tmp_path / "out" / "curves.parquet")
    assert curves.filter((pl.col("chosen") == "last") & (pl.col("algorithm") == "x")).height == 6
    assert json.loads((tmp_path / "one.json").read_text())["config"]["origin"] == "by hand"


def test_files_that_are_no_results_are_refused(tmp_path):
    with pytest.raises(ValueError, match="folder"):
        result([cell()]).save(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError, match=r"study\.json"):
        cf.StudyResult.load(tmp_path)
    with pytest.raises(ValueError, match="loaded from"):
        cf.StudyResult.load(tmp_path / "x.parquet")
    (tmp_path / "x.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="not a study's result"):
        cf.StudyResult.load(tmp_path / "x.json")


@pytest.mark.parametrize("kind", ["table", "curves", "paired"])
def test_plots_are_drawn_and_written(tmp_path, kind):
    users = [final([0.7, 0.9], name, user) for name in ("x", "y") for user in "abcde"]
    found = result([c for some in users for c in some])
    figure = found.plot(kind, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    words = " ".join(t.get_text() for t in figure.legends[0].get_texts())
    assert "x" in words
    assert "y" in words


def test_what_is_unknown_is_refused_by_name():
    found = result(final([0.7], "x"))
    with pytest.raises(ValueError, match=r"rmse.*accuracy"):
        found.table("rmse")
    with pytest.raises(KeyError, match="no algorithm 'z'"):
        found.paired("x", "z")
    with pytest.raises(ValueError, match="by must be"):
        found.table(by="silo")
    with pytest.raises(ValueError, match="at must be"):
        found.table(at="first")
    with pytest.raises(ValueError, match="kind must be"):
        found.plot("pie")
    with pytest.raises(ValueError, match="single algorithm"):
        found.plot("paired")


@pytest.mark.parametrize(
    ("budget", "error", "words"),
    [
        ({"rounds": [1, -1]}, ValueError, "rounds must be a finite number, 0 or more, not -1"),
        ({"rounds": [1.5]}, ValueError, "rounds must be whole numbers, not 1.5"),
        ({"rounds": 3}, TypeError, "rounds must be a list of numbers, not 3"),
        ({"silos": [-1]}, ValueError, "silos must be"),
        ({"traffic": [float("nan")]}, ValueError, "traffic must be"),
        ({"traffic_each": ["much"]}, ValueError, "traffic_each must be"),
        ({"weight": [-0.5]}, ValueError, "weight must be"),
    ],
)
def test_what_is_no_budget_is_refused(budget, error, words):
    with pytest.raises(error, match=words):
        result(final(ONE, "x")).summary(**budget)


def test_a_budget_of_no_round_is_the_start():
    assert result(final(ONE, "x")).summary(rounds=[0])["mean"].to_list()[-1] == 0.5


@pytest.mark.parametrize("name", ["res-0.5", "v1.2.3", "results.json.d"])
def test_a_folder_may_have_dots_in_its_name(tmp_path, name):
    whole = result(final(ONE, "x"))
    whole.save(tmp_path / name)
    assert sorted(f.name for f in (tmp_path / name).iterdir()) == ["cells.parquet", "curves.parquet", "study.json"]
    again = cf.StudyResult.load(tmp_path / name)
    assert [c.plain() for c in again.cells_] == [c.plain() for c in whole.cells_]


def test_a_file_that_a_result_cannot_be_written_to_is_refused(tmp_path):
    for name in ("r.csv", "r.JSON.gz", "r.xlsx", "r.html"):
        with pytest.raises(ValueError, match="written to a folder"):
            result(final(ONE, "x")).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
