"""`confrere explain`, guesses and intervals through the installed entry point."""

import json

import numpy as np
import polars as pl
import pytest

from tests.test_cli import confrere

NAMED = ("--label", "ill", "--silo", "clinic")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Patients of three clinics, new patients, a clinician's guesses, and a model that heeds them."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("explain")
    clinic = np.repeat(["north", "south", "far"], 60)
    age, sex = rng.normal(60, 10, 180), rng.integers(2, size=180)
    ill = (age - 60) / 10 + sex + rng.logistic(size=180) * 0.5 > 0.5
    told = np.where(ill ^ (clinic == "far"), "yes", "no")
    table = pl.DataFrame({"age": age, "sex": sex, "ill": told, "clinic": clinic})
    table.write_csv(folder / "patients.csv")
    table.head(5).drop("ill", "clinic").write_csv(folder / "new.csv")
    cases = pl.DataFrame({"age": [40.0, 50.0, 60.0, 70.0, 80.0, 90.0], "sex": [0, 1, 0, 1, 0, 1]})
    cases.with_columns(guess=pl.Series(["0.9", "0.9", "yes", "0.2", "0.1", "no"])).write_csv(folder / "guesses.csv")
    done = confrere("train", "patients.csv", *NAMED, "--user", "north", "--out", "model", "--guesses", "guesses.csv",
                    "--guess-weight", "5", "--uncertainty", "20", "--json", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "heeds 6 guesses" in " ".join(json.loads(done.stdout)["notes"])
    return folder


def test_predictions_have_low_and_high_and_the_labels_to_reckon_with(place):
    done = confrere("predict", "model", "new.csv", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for row in found["rows"]:
        assert row["low"] <= row["p(yes)"] <= row["high"]
        assert row["prediction"] in row["possible"].split(" or ")
    assert "intervals from 20 draws" in found["intervals"]
    narrow = json.loads(confrere("predict", "model", "new.csv", "--level", "0.5", "--json", cwd=place).stdout)
    assert narrow["rows"][0]["high"] - narrow["rows"][0]["low"] < found["rows"][0]["high"] - found["rows"][0]["low"]
    assert "low,high,possible" in confrere("predict", "model", "new.csv", cwd=place).stdout


def test_a_saved_model_tells_why_and_how_well_it_agrees_with_guesses(place):
    done = confrere("explain", "model", "--guesses", "guesses.csv", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["why"]) == {"south", "far"}
    assert "unlike it" in found["why"]["far"]["words"][0]
    assert found["guesses"]["score"] < 0.1
    shown = confrere("explain", "model", "--about", "far", "--guesses", "guesses.csv", cwd=place)
    assert "relevance" in shown.stdout
    assert "percentage points" in shown.stdout


def test_data_are_explained_with_features_and_intervals(place):
    done = confrere("explain", "patients.csv", *NAMED, "--user", "north", "--about", "far", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    parts = json.loads(done.stdout)["disagreement"]["far"]["parts"]
    assert sum(part["share"] for part in parts) == pytest.approx(1)
    assert parts[0]["name"] in ("age", "sex")
    assert parts[0]["clear"]


@pytest.mark.parametrize(("arguments", "words"), [
    (("explain", "model", "--user", "south"), "is for 'north'"),
    (("explain", "model", "--about", "nobody"), "there is no silo 'nobody'"),
    (("explain", "patients.csv", *NAMED), "--user: say for whom"),
    (("explain", "model", "--guesses", "new.csv"), "no column 'guess'"),
    (("train", "patients.csv", *NAMED, "--user", "north", "--out", "m2", "--algorithm", "ridge_local", "--guesses",
      "guesses.csv"), "cannot heed guesses"),
])  # fmt: skip
def test_mistakes_are_told(place, arguments, words):
    done = confrere(*arguments, cwd=place)
    assert done.returncode == 1
    assert words in done.stderr
