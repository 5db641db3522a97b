"""`confrere similarity`: its JSON, its tables, its map and its errors."""

import json

import pytest

from tests.test_cli import confrere
from tests.test_cli_select import NAMED, place  # noqa: F401

QUICK = ("--resamples", "25")


def test_json_has_matrices_a_map_and_who_is_like_whom(place):  # noqa: F811
    done = confrere("similarity", "patients.csv", *NAMED, *QUICK, "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["names"]) == {"north", "south", "[far]", "west"}
    assert set(found["measures"]) == {
        "models", "gradients", "transfer", "influence", "outcomes", "features", "predictions",
    }  # fmt: skip
    assert found["like"]["north"][-1]["silo"] == "[far]"
    assert set(found["map"]["places"]) == set(found["names"])
    assert done.stderr == ""


def test_the_tables_the_words_and_the_pictures(place):  # noqa: F811
    some = ("--measure", "models,transfer", "--user", "north")
    done = confrere("similarity", "patients.csv", *NAMED, *QUICK, *some, "--out", "maps/map.html", cwd=place)
    assert done.returncode == 0, done.stderr
    for words in ("[far]: Number 3 in likeness", "Groups: ", "Map: a ", "Rows ask", "Sent", "Written: maps/map.html"):
        assert words in done.stdout
    page = (place / "maps" / "map.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Who is like [far]?" in page
    drawn = confrere("similarity", "patients.csv", *NAMED, *QUICK, *some, "--quiet", "--out", "map.svg", cwd=place)
    assert drawn.stderr == ""
    assert (place / "map.svg").read_text(encoding="utf-8").startswith("<svg xmlns")


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (("gone.csv", *NAMED), 3, "gone.csv"),
    (("patients.csv", *NAMED, "--user", "nrth"), 1, "there is no silo 'nrth'"),
    (("patients.csv", *NAMED, "--measure", "moods"), 1, "there is no 'moods'"),
    (("patients.csv", *NAMED, "--out", "map.png"), 2, ".svg or .html"),
    (("patients.csv", *NAMED, "--silos", "north"), 1, "nobody to compare it with"),
])  # fmt: skip
def test_mistakes_are_told_with_the_exit_code_that_the_help_promises(place, arguments, code, words):  # noqa: F811
    done = confrere("similarity", *arguments, cwd=place)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
