"""`confrere bench`, the tasks that it shares with bench/, and the page of results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from confrere.cli.bench import show
from confrere.speed.measure import Speed, measure
from confrere.speed.plain_loop import Averaging
from confrere.speed.timed_tasks import TASKS, make_data, mean_loss

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path(sys.executable).with_name("confrere")


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "bench", *options], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def printed() -> dict:
    done = bench("--task", "L", "--repeats", "2", "--rounds", "20", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_json_has_speeds_that_fit_together(printed):
    found = printed["tasks"]["L"]
    assert set(printed["tasks"]) == {"L"}
    assert (found["rounds"], found["laps"]) == (20, 2)
    for who in ("confrere", "numpy loop"):
        assert found["rounds_per_second"][who] == pytest.approx(1e3 / found["ms_per_round"][who])
    assert found["ratio"] > 0
    assert printed["machine"]["jax"]


def test_both_sides_train_and_train_alike(printed):
    loss = printed["tasks"]["L"]["loss"]
    assert loss["confrere"] < 0.6  # from log 2 = 0.693
    assert loss["confrere"] == pytest.approx(loss["numpy loop"], abs=0.01)


def test_the_table_says_the_same_and_names_the_other_comparison(printed, capsys):
    found = printed["tasks"]["L"]
    show(printed["machine"], [Speed(**found)])
    said = capsys.readouterr().out
    assert f"{found['rounds_per_second']['confrere']:,.0f}" in said
    assert f"{found['ratio']:.1f}x" in said
    assert "make bench" in said


@pytest.mark.parametrize("options", [("--task", "X"), ("--repeats", "0"), ("--rounds", "-1")])
def test_what_makes_no_sense_is_not_understood(options):
    assert bench(*options).returncode == 2


def test_progress_is_told_from_the_first_lap_to_the_last():
    heard = []
    measure("L", repeats=2, rounds=20, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(k, 6) for k in range(1, 7)]


def test_one_round_of_the_loop_is_the_mean_of_one_step_per_silo():
    task = TASKS["L"]._replace(silos=2, rows=6, features=2, batch=6)
    x, y = make_data(task)
    averaging = Averaging(task, x, y)
    averaging.round()
    residual = 0.5 - np.eye(2)[y]  # probabilities are one half at zero weights
    wanted = -task.lr * np.einsum("nmd,nmk->dk", x, residual) / (2 * 6)
    np.testing.assert_allclose(averaging.weights, wanted, atol=1e-6)
    assert mean_loss(task, averaging.weights, averaging.bias) < np.log(2)


def test_a_section_alone_replaces_its_own_place_in_the_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import report

    page = "# Results\n\nwords\n\n## One\n\nold\n\n## Two\n\nstays\n\n## Raw numbers\n\n1\n"
    assert report.spliced(page, []) == page
    found = report.spliced(page, ["## One\n\nnew\n", "## Three\n\nadded"])
    assert found == (
        "# Results\n\nwords\n\n## One\n\nnew\n\n## Two\n\nstays\n\n## Three\n\nadded\n\n## Raw numbers\n\n1\n"
    )


def test_the_peers_scripts_run_with_numpy_alone():
    done = subprocess.run(
        [sys.executable, "-I", str(ROOT / "bench" / "peers" / "numpy_loop.py"), "L", "--rounds", "2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["contestant"] == "numpy_loop"
