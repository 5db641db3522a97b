"""`confrere feedback`: its tables, its JSON, limits from a file, and its errors."""

import json

import polars as pl
import pytest

from tests.feedback_problems import table
from tests.test_cli import confrere

NAMED = ("--label", "ill", "--silo", "hospital")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Three hospitals; the first writes 0 for a cholesterol that was not taken."""
    folder = tmp_path_factory.mktemp("feedback")
    columns = table(0)
    columns["chol"][[1, 5, 7, 11, 13]] = 0
    frame = pl.DataFrame({
        **{name: columns[name] for name in ("age", "chol", "crp")}, "ill": [k % 3 == 0 for k in range(240)],
        "hospital": [f"[h{k // 80}]" for k in range(240)],
    })  # fmt: skip
    frame.write_csv(folder / "patients.csv")
    (folder / "ranges.toml").write_text('[ranges]\ncrp = [0, 10, "mg/L"]\n', encoding="utf-8")
    return folder


def test_the_feedback_says_what_was_found_what_to_do_and_for_whom_it_is(place):
    done = confrere("feedback", "patients.csv", *NAMED, "--user", "[h0]", cwd=place)
    assert done.returncode == 0, done.stderr
    for words in ("What to do:", "--missing chol=0", "To [h1]: rank", "is for silo '[h0]' only", "Your own rows:"):
        assert words in done.stdout
    quiet = confrere("feedback", "patients.csv", *NAMED, "--user", "[h0]", "--quiet", cwd=place)
    assert "code for a gap" in " ".join(quiet.stdout.split())
    assert "What to do" not in quiet.stdout
    assert quiet.stderr == ""


def test_json_has_all_parts_and_limits_come_from_a_file(place):
    options = ("--ranges", "ranges.toml", "--min-count", "8", "--noise", "0.5", "--json")
    done = confrere("feedback", "patients.csv", *NAMED, "--user", "[h0]", *options, cwd=place)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["min_count"], told["noise"], told["user"]) == (8, 0.5, "[h0]")
    found = {(f["kind"], f["column"]) for f in told["findings"]}
    assert {("code", "chol"), ("impossible", "crp")} <= found
    assert {t["silo"] for t in told["to_others"]} == {"[h1]", "[h2]"}


def test_a_table_of_one_site_needs_no_column_of_silos_and_no_user(place):
    pl.read_csv(place / "patients.csv").drop("hospital").write_csv(place / "site.csv")
    done = confrere("feedback", "site.csv", "--label", "ill", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["user"] == "site"
    assert told["to_others"] == []
    assert ("code", "chol") in {(f["kind"], f["column"]) for f in told["findings"]}


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (("patients.csv", *NAMED), 1, "say for whom; there are [h0], [h1], [h2]"),
    (("patients.csv", "--label", "ill", "--user", "[h0]"), 1, "which column tells the silos apart"),
    (("gone.csv", *NAMED, "--user", "[h0]"), 3, "gone.csv"),
    (("patients.csv", *NAMED, "--user", "h9"), 1, "there is no silo 'h9'"),
    (("patients.csv", *NAMED, "--user", "[h0]", "--ranges", "none.toml"), 3, "none.toml"),
    (("patients.csv", *NAMED, "--user", "[h0]", "--min-count", "1"), 2, "min-count"),
    (("patients.csv", *NAMED, "--user", "[h0]", "--noise", "-1"), 2, "noise"),
])  # fmt: skip
def test_mistakes_are_told_with_the_exit_code_that_the_help_promises(place, arguments, code, words):
    done = confrere("feedback", *arguments, cwd=place)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
