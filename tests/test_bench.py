"""`confrere bench`, the tasks that it shares with bench/, and the page of results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from confrere.cli.bench import measured, show
from confrere.speed.measure import Speed, measure
from confrere.speed.ours import our_run
from confrere.speed.plain_loop import Averaging
from confrere.speed.plain_network import FLOP_PER_ROW, LARGE, NetworkAveraging, network_loss, start
from confrere.speed.timed_tasks import TASKS, make_data, mean_loss

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path(sys.executable).with_name("confrere")


# One step on all rows of a silo: the order of the rows does not matter.
SMALL_NETWORK = TASKS["C"]._replace(silos=2, rows=8, batch=8, steps=1)


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


@pytest.fixture(scope="module")
def looped() -> NetworkAveraging:
    averaging = NetworkAveraging(SMALL_NETWORK, *make_data(SMALL_NETWORK))
    averaging.round()
    return averaging


def leaves(params) -> dict[str, np.ndarray]:
    return {f"{name}.{part}": np.asarray(a) for name, layer in params.items() for part, a in layer.items()}


def assert_same_network(found, wanted):
    found, wanted = leaves(found), leaves(wanted)
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


def test_one_round_of_the_networks_loop_is_ours(looped):
    assert_same_network(our_run(SMALL_NETWORK, 1)(), looped.params)
    x, y = make_data(SMALL_NETWORK)
    assert network_loss(looped.params, x, y) < network_loss(start(), x, y)


def test_one_round_of_the_sketchs_network_is_that_of_the_loop(looped, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from sketch_network import network

    assert_same_network(network(SMALL_NETWORK, 1)(), looped.params)


def test_a_network_is_measured_like_the_other_tasks(monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "C", SMALL_NETWORK._replace(rows=18, steps=2))
    (speed,) = measured(["C"], 1, 2, None)
    assert speed.loss["confrere"] == pytest.approx(speed.loss["numpy loop"], abs=0.01)
    show({"cores": "2"}, [speed])
    said = capsys.readouterr().out
    assert f"{speed.ratio:.1f}x" in said
    assert "18 images of 28 x 28 pixels each; 2 batches of 8 per silo and round, LeNet-5" in said


def test_the_products_of_the_profile_and_the_large_one_have_a_rounds_operations(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from sections.network import PRODUCTS, operations

    assert sum(operations(layers) for layers in PRODUCTS) == 32 * FLOP_PER_ROW
    assert 2 * LARGE[0] * LARGE[1] == FLOP_PER_ROW


def test_a_task_alone_replaces_its_table_and_its_raw_numbers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import report
    from contestants import CONTESTANTS
    from results import Comparison, Measurement, Result

    def comparison(ms):
        runs = {"confrere": [Measurement("confrere", "C", "1", 5, [ms], 1.0, 2.0)]}
        return Comparison([Result(c, "C", runs.get(c.name, [])) for c in CONTESTANTS if "C" in c.tasks], False)

    raw = "## Raw numbers\n\n```csv\ntask,contestant\nL,confrere,1\n```\n"
    page = "# Results\n\nwords\n\n## Task L\n\nstays\n\n## Two\n\nstays\n\n" + raw
    once = report.renewed(page, comparison(300.0), "0.3")
    titles = [line for line in once.splitlines() if line.startswith("## ")]
    assert titles == ["## Task L", "## Task C", "## Two", "## Raw numbers"]
    assert once.endswith("L,confrere,1\nC,confrere,1,5,300,300,300,1.0,2.0\n```\n")
    assert report.renewed(once, comparison(300.0), "0.3") == once
    twice = report.renewed(once, comparison(200.0), "0.3")
    assert "C,confrere,1,5,200,200,200,1.0,2.0" in twice
    assert "300" not in twice


def test_a_section_alone_replaces_its_own_place_in_the_page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import report

    page = "# Results\n\nwords\n\n## One\n\nold\n\n## Two\n\nstays\n\n## Raw numbers\n\n1\n"
    assert report.spliced(page, []) == page
    found = report.spliced(page, ["## One\n\nnew\n", "## Three\n\nadded"])
    assert found == (
        "# Results\n\nwords\n\n## One\n\nnew\n\n## Two\n\nstays\n\n## Three\n\nadded\n\n## Raw numbers\n\n1\n"
    )


@pytest.mark.parametrize(("name", "task"), [("numpy_loop", "L"), ("matrix_product", "C")])
def test_the_peers_scripts_run_with_numpy_alone(name, task):
    done = subprocess.run(
        [sys.executable, "-I", str(ROOT / "bench" / "peers" / f"{name}.py"), task, "--rounds", "2"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["contestant"] == name
