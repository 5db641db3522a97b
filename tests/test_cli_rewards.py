"""`confrere rewards` on the folder of a run, and the same numbers in the report: who deserves credit?"""

import json

import pytest

from tests.test_cli import confrere
from tests.test_saved import table


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A comparison of clinics without auto, and its report."""
    folder = tmp_path_factory.mktemp("rewards")
    table(120).write_csv(folder / "patients.csv")
    data = ("patients.csv", "--label", "ill", "--silo", "clinic", "--features", "age,sex")
    chosen = ("--algorithms", "ridge_local,fedsgd", "--seeds", "1", "--user", "a", "--out", "run", "--json")
    done = confrere("compare", *data, *chosen, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def told(place):
    done = confrere("rewards", "run", "--user", "a", "--budget", "100", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["a"]


def test_json_has_a_line_per_silo_and_what_every_scheme_pays_and_the_report_the_same_values(place, told):
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert "Who deserves credit?" in page
    assert told["budget"] == 100
    assert "a" not in told["accounts"]
    assert told["run"]["algorithm"] == "fedsgd"
    for scheme in told["schemes"]:
        paid = [account["paid"][scheme]["amount"] for account in told["accounts"].values()]
        assert sum(paid) <= 100
        assert min(paid) >= 0
    for account in told["accounts"].values():
        assert account["rounds"] == told["run"]["rounds"]
        assert account["shapley"]["low"] <= account["shapley"]["value"] <= account["shapley"]["high"]
        assert f"{account['shapley']['value']:+.4f}" in page


@pytest.mark.slow
def test_one_scheme_can_be_asked_for_and_is_told_in_words(place):
    done = confrere("rewards", "run", "--user", "a", "--budget", "100", "--scheme", "rows", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "Who deserves credit for the model of a?" in done.stdout
    assert "By rows, of a budget of 100" in done.stdout
    assert "shapley:" not in done.stdout


@pytest.mark.slow
def test_what_is_not_there_is_said(place):
    done = confrere("rewards", "run", "--user", "nowhere", cwd=place)
    assert done.returncode == 1
    assert "no user 'nowhere'" in done.stderr
    done = confrere("rewards", "run", "--algorithm", "waffle", cwd=place)
    assert "has no 'waffle'; it has" in done.stderr
    assert confrere("rewards", "nothing", cwd=place).returncode == 3
