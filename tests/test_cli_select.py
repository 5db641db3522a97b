"""`confrere select`: the shape of its JSON, its tables, and its errors."""

import json

import numpy as np
import polars as pl
import pytest

from tests.test_cli import confrere

NAMED = ("--label", "ill", "--silo", "clinic")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Patients of four clinics; one, with a bracket in its name, writes healthy for ill."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("select")
    clinic = np.repeat(["north", "south", "[far]", "west"], 40)
    age, sex = rng.normal(60, 10, 160), rng.integers(2, size=160)
    ill = (age - 60) / 10 + sex + rng.logistic(size=160) * 0.5 > 0.5
    told = np.where(ill ^ (clinic == "[far]"), "yes", "no")
    pl.DataFrame({"age": age, "sex": sex, "ill": told, "clinic": clinic}).write_csv(folder / "patients.csv")
    return folder


def test_json_has_scores_by_name_and_a_ranking_for_every_method(place):
    done = confrere("select", "patients.csv", *NAMED, "--user", "north", "--method", "all", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["ndoye", "influence", "gradients"]
    for told in found.values():
        assert set(told["scores"]) == set(told["ranking"]) == {"south", "west", "[far]"}
        assert told["ranking"][-1] == "[far]"
        order = sorted(told["scores"], key=lambda name: told["scores"][name], reverse=not told["lower_is_better"])
        assert order == told["ranking"]
        assert "[far]" not in told["kept"]


@pytest.mark.parametrize(("keep", "count"), [("best=1", 1), ("below=-100", 0), ("below=100", 3), ("drop", 2)])
def test_whom_to_keep_can_be_said_by_number_threshold_or_gap(place, keep, count):
    words = ("--user", "north", "--keep", keep, "--json")
    done = confrere("select", "patients.csv", *NAMED, *words, cwd=place)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["ndoye"]
    assert set(told["kept"]) - {"north"} == set(told["ranking"][:count])


def test_the_table_shows_names_reasons_and_that_nothing_is_trained(place):
    done = confrere("select", "patients.csv", *NAMED, "--user", "north", "--silent", "west", cwd=place)
    assert done.returncode == 0, done.stderr
    for words in ("by ndoye", "[far]: its model loses", "west: it did not answer", "Nothing is trained yet"):
        assert words in done.stdout
    large = confrere("select", "patients.csv", *NAMED, "--user", "north", "--min-count", "41", cwd=place)
    assert "west: it has 40 training rows, fewer than the minimum of 41" in large.stdout
    quiet = confrere("select", "patients.csv", *NAMED, "--user", "north", "--quiet", cwd=place)
    assert "its model loses" not in quiet.stdout
    assert quiet.stderr == ""


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (("gone.csv", *NAMED, "--user", "north"), 3, "gone.csv"),
    (("patients.csv", *NAMED, "--user", "nrth"), 1, "there is no silo 'nrth'"),
    (("patients.csv", *NAMED, "--user", "north", "--silent", "nobody"), 1, "there is no silo 'nobody'"),
    (("patients.csv", *NAMED, "--user", "north", "--method", "guess"), 2, "guess"),
    (("patients.csv", *NAMED, "--user", "north", "--silos", "north"), 1, "nobody to choose from"),
    (("patients.csv", *NAMED, "--user", "north", "--keep", "best=two"), 2, "best=two is not understood"),
    (("patients.csv", *NAMED, "--user", "north", "--keep", "drop=1"), 2, "drop=1 is not understood"),
    (("patients.csv", *NAMED, "--user", "north", "--keep", "best=1", "--method", "sure"), 2, "sure"),
    (("patients.csv", *NAMED, "--user", "north", "--keep", "below=1", "--method", "all"), 2, "no common limit"),
    (("patients.csv", *NAMED, "--user", "north", "--keep", "best=0"), 1, "k must be"),
    (("patients.csv", *NAMED, "--user", "north", "--keep", "above=1"), 2, "better scores of ndoye are"),
])  # fmt: skip
def test_mistakes_are_told_with_the_exit_code_that_the_help_promises(place, arguments, code, words):
    done = confrere("select", *arguments, cwd=place)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
