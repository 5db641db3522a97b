"""What a run costs: bytes before and after it, operations, energy, CO2, and budgets that are kept."""

import importlib.metadata
import importlib.util
import json
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import confrere as cf
from confrere.budget import bytes_of, in_words, rounds_within
from confrere.cli.app import app
from confrere.data.fetch import DataNotFound
from confrere.insight.footprint import carbon
from confrere.insight.footprint.compared import compared, per
from confrere.insight.footprint.energy import energy_of, processor
from confrere.insight.footprint.flops import operations
from confrere.insight.footprint.rapl import Meter, packages
from confrere.runs import footprint as footprints
from confrere.runs.config import Config
from confrere.runs.run import run
from confrere.runs.summary import summary
from confrere.study.statistics import Interval
from confrere.transforms import quantised, top_k
from tests.helpers import ALGORITHMS, two_class_silos

MODEL = cf.models.logistic()
SIZES = (20, 16, 12, 9)
SILOS = two_class_silos(SIZES)
installed = pytest.mark.skipif(importlib.util.find_spec("codecarbon") is None, reason="needs the extra footprint")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in ("fedavg", "local") else pytest.mark.slow) for n in ALGORITHMS],
)
def test_bytes_before_a_run_are_the_bytes_after_it(name):
    row = ALGORITHMS[name]
    model = row.problem().model if row.problem else MODEL
    active = np.arange(3)[:, None] != np.arange(4)
    ways = (None,) if "evidence" in name else (None, top_k(0.3), quantised(8))
    for way in ways:
        recipe = row.make([0, 1, 2, 3]).compressed(way)
        if "rounds" in recipe.static:
            active = np.ones((recipe.static["rounds"], 4), bool)
        before = cf.insight.footprint(recipe, model, SILOS, len(active), active=active, operations=False)
        after = cf.insight.footprint(
            cf.simulate(recipe, model, SILOS, len(active), active=active, metrics=(), record=())
        )
        np.testing.assert_array_equal(before.bytes_up, after.bytes_up)
        np.testing.assert_array_equal(before.bytes_down, after.bytes_down)
        assert before.bytes_total == after.bytes_total


def test_operations_of_a_product_in_two_loops_are_those_counted_by_hand():
    rows, d, k, inner, outer = 50, 12, 3, 7, 5

    def descent(W, X):
        step = lambda W, _: (W - 0.1 * (X.T @ (X @ W)), None)  # noqa: E731
        some = lambda W, _: (jax.lax.scan(step, W, length=inner)[0], None)  # noqa: E731
        return jax.lax.scan(some, W, length=outer)[0]

    found = operations(descent, jnp.ones((d, k)), jnp.ones((rows, d)))
    by_hand = outer * inner * (2 * (2 * rows * d * k) + 2 * d * k)  # two products, a scaling, a difference
    assert found.unknown == 0
    assert by_hand <= found.count <= by_hand + 3 * outer * (inner + 1)  # and the counters of the loops


def test_a_loop_that_does_not_say_how_often_it_runs_is_told():
    found = operations(lambda x: jax.lax.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, x), jnp.ones(8))
    assert found.unknown == 1


def test_operations_are_linear_in_rounds_and_bounded_by_the_matrix_products():
    counts = {r: cf.insight.footprint(cf.fedsgd(lr=0.1), MODEL, SILOS, r).operations.count for r in (4, 8, 16)}
    each = (counts[8] - counts[4]) / 4
    assert (counts[16] - counts[8]) / 8 == pytest.approx(each, rel=1e-3)
    products = 2 * 2 * len(SIZES) * max(SIZES) * 3  # scores and their gradient, one column, padded rows
    assert products < each < 30 * products


@given(st.integers(0, 4000), st.integers(0, 6), st.lists(st.booleans(), min_size=4, max_size=4))
@settings(max_examples=12, deadline=None)
def test_a_budget_is_never_exceeded_and_never_wasted(budget, rounds, present):
    active = np.tile(present, (rounds, 1))
    run = cf.simulate(cf.fedsgd(lr=0.1), MODEL, SILOS, rounds, active=active, budget=budget, metrics=(), record=())
    spent = int(run.bytes_up.sum() + run.bytes_down.sum())
    each = (32 + 36) * sum(present)
    assert spent <= budget
    assert run.rounds == (rounds if each == 0 else min(rounds, budget // each))
    assert run.stopped == (run.rounds < rounds) == bool(run.stopped_by)
    planned = cf.insight.footprint(
        cf.fedsgd(lr=0.1), MODEL, SILOS, rounds, active=active, budget=budget, operations=False
    )
    assert planned.rounds == run.rounds


def test_a_run_says_when_its_budget_stopped_it_and_goes_on_within_a_larger_one():
    recipe, few = cf.fedsgd(lr=0.1), {"metrics": (), "record": ()}
    stopped = cf.simulate(recipe, MODEL, SILOS, 10, budget="1 kB", **few)
    assert stopped.stopped_by == "stopped after round 3 of 10 by the budget of 1.0 kB"
    assert stopped.summary()["stopped"] == stopped.stopped_by
    more = cf.simulate(recipe, MODEL, SILOS, 10, budget="2 kB", resume=stopped, **few)
    assert more.rounds == 7
    whole = cf.simulate(recipe, MODEL, SILOS, 7, **few)
    assert not whole.stopped
    for a, b in zip(jax.tree.leaves(more.models), jax.tree.leaves(whole.models), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("words", ["bytes=2 apples", "joules=3", "2MBB", "", "bytes=", "-1", {"rounds": 3}])
def test_a_budget_that_means_nothing_is_refused(words):
    with pytest.raises(ValueError, match="budget"):
        bytes_of(words)


def test_budgets_are_understood_in_units():
    assert [bytes_of(w) for w in ("2MB", "bytes=2MB", "2e6", "2 mib", ".5kB", 7, 7.9)] == [
        2_000_000, 2_000_000, 2_000_000, 2 * 2**20, 500, 7, 7,
    ]  # fmt: skip
    assert rounds_within(0, [0, 0, 1]) == 2


def test_a_study_keeps_to_a_budget_and_says_so():
    how = {"users": [0], "seeds": 2, "rounds": 5, "grid": {"lr": [0.1]}, "tune": None, "baselines": False}
    result = cf.Study(SILOS, MODEL, [cf.fedsgd, cf.local], budget=700, **how).run()
    assert [c.partners.shape[1] * c.bytes_total for c in result.cells_] == [544, 544, 0, 0]
    assert result.config["algorithms"]["fedsgd"]["stopped"] == "stopped after round 2 of 5 by the budget of 700 bytes"
    assert "stopped" not in result.config["algorithms"]["local"]
    with pytest.raises(ValueError, match="one round of fedsgd would take 272 bytes, more than the budget of 100 bytes"):
        cf.Study(SILOS, MODEL, [cf.fedsgd], budget=100, **how).run()


def test_a_model_is_made_within_a_budget_that_counts_its_tuning():
    grid = {"lr": [0.1, 1.0]}
    answer = cf.personalise(SILOS, 0, "fedsgd", grid=grid, rounds=6, budget=11 * 272 * 2 + 5)
    assert answer.history.rounds == 2
    [note] = [n for n in answer.notes if "budget" in n]
    assert "stopped after round 2 of 6" in note
    with pytest.raises(ValueError, match="budget: one round of fedsgd, run 11 times"):
        cf.personalise(SILOS, 0, "fedsgd", grid=grid, budget=1000)


def counters(root, joules, top=1000.0, name="package-0"):
    for k, value in enumerate(joules):
        folder = root / f"intel-rapl:{k}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text(f"{int(value * 1e6)}\n")
        (folder / "max_energy_range_uj").write_text(f"{int(top * 1e6)}\n")
    return root


def test_measured_energy_is_the_rise_of_all_packages_and_counters_may_go_round(tmp_path):
    meter = Meter(counters(tmp_path, [990.0, 100.0]))
    counters(tmp_path, [995.0, 100.0])
    assert meter.joules == pytest.approx(5)
    counters(tmp_path, [3.0, 150.0])  # the first began anew at 1000
    assert meter.joules == pytest.approx(5 + 8 + 50)


def test_parts_of_a_package_and_other_domains_do_not_count(tmp_path):
    counters(tmp_path, [1.0])
    counters(tmp_path / "other", [1.0])
    (tmp_path / "intel-rapl:0:0").mkdir()
    (tmp_path / "intel-rapl:7").mkdir()
    (tmp_path / "intel-rapl:7" / "name").write_text("psys")
    (tmp_path / "intel-rapl:8").mkdir()  # cannot be read
    assert [p.name for p in packages(tmp_path)] == ["intel-rapl:0"]
    assert Meter(tmp_path / "nowhere").joules is None


def test_energy_is_power_times_time_and_co2_needs_a_country():
    found = energy_of(7200.0, watts=30.0)
    assert found.joules == pytest.approx(30 * 7200 / (os.cpu_count() or 1))
    assert found.grams is None
    assert not found.measured
    assert any("as given" in words for words in found.assumptions)
    assert any("without an interval" in words for words in found.assumptions)
    assert energy_of(10.0, joules=42.0).measured
    assert found.share(3600.0).joules == pytest.approx(found.joules / 2)


@pytest.fixture
def without_figures(monkeypatch):
    monkeypatch.setattr(carbon, "PACKAGE", "a_package_that_is_not_there")


def test_without_the_extra_the_error_says_what_to_install(without_figures):
    with pytest.raises(ValueError, match=r"pip install 'confrere\[footprint\]'"):
        energy_of(1.0, watts=1.0, country="FRA")
    found = energy_of(1.0)
    assert found.joules is None
    assert any("confrere[footprint]" in words and "--watts" in words for words in found.assumptions)


@pytest.fixture
def figures(tmp_path, monkeypatch):
    """A package with files of codecarbon's form, which must not be run."""
    package = tmp_path / "figures_for_tests"
    (package / "data" / "private_infra").mkdir(parents=True)
    (package / "data" / "hardware").mkdir()
    (package / "core").mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this package must not be imported')\n")
    row = {"country_name": "Nowhere", "iso_code": "NWH", "carbon_intensity": 250.0, "year": 2023}
    (package / "data" / "private_infra" / "global_energy_mix.json").write_text(json.dumps({"NWH": row}))
    (package / "data" / "hardware" / "cpu_power.csv").write_text("Name,TDP\nAcme Fast 9,65\n")
    (package / "core" / "cpu.py").write_text("DEFAULT_POWER_PER_CORE = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(carbon, "PACKAGE", "figures_for_tests")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0")


def test_figures_are_read_without_running_the_package(figures):
    found = energy_of(3600.0, watts=1000.0 * (os.cpu_count() or 1), country="nwh")
    assert found.grams == pytest.approx(250.0)  # one kilowatt-hour
    assert found.intensity.year == 2023
    assert any("250 g" in w and "Nowhere in 2023" in w and "CC BY 4.0" in w for w in found.assumptions)
    assert carbon.processor_power("Acme(R) Fast 9 CPU @ 3.00GHz") == 65
    assert carbon.processor_power("Acme Slow 1") is None
    assert carbon.power_per_thread() == 3
    with pytest.raises(ValueError, match="did you mean 'Nowhere'"):
        carbon.intensity_of("Nowere")


@installed
def test_the_installed_figures_name_their_source_and_year():
    found = carbon.intensity_of("FRA")
    assert (found.name, found.country) == ("France", "FRA")
    assert 0 < found.grams_per_kwh < 200
    assert found.year >= 2020
    assert "Our World in Data" in found.source
    assert "codecarbon" in found.source
    assert carbon.intensity_of("poland").grams_per_kwh > 3 * found.grams_per_kwh
    assert carbon.power_per_thread() > 0


def test_a_virtual_machine_is_told_from_a_processor_of_its_own(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("model name : Acme Fast 9\nflags : fpu hypervisor\n\nmodel name : Acme Fast 9\nflags : fpu\n")
    assert processor(file) == ("Acme Fast 9", True)
    assert processor(tmp_path / "none") == ("this processor", False)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    asked = {
        "data": {"path": "titanic"},
        "study": {
            "users": ["36+"], "algorithms": ["fedavg", "local", "ridge_local"], "seeds": 3, "rounds": 20,
            "grid": {"lr": [0.3]}, "budget": "bytes=4kB", "compress": "bits=8",
        },
    }  # fmt: skip
    return folder, summary(run(Config.model_validate(asked), folder))


def test_a_comparison_keeps_to_its_budget_and_its_folder_tells_what_it_cost(small_run):
    folder, said = small_run
    assert set(said["stopped"]) == {"fedavg"}
    done = CliRunner().invoke(app, ["footprint", str(folder), "--watts", "20", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    prices = {p["algorithm"]: p for p in found["algorithms"]}
    fedavg = prices["fedavg"]
    assert 0 < fedavg["bytes_total"] <= 4000 < fedavg["bytes_total"] / fedavg["rounds"] * (fedavg["rounds"] + 1)
    assert fedavg["per_megabyte"]["mean"] == pytest.approx(fedavg["value"]["mean"] / fedavg["bytes_total"] * 1e6)
    assert fedavg["per_megabyte"]["low"] < fedavg["per_megabyte"]["mean"] < fedavg["per_megabyte"]["high"]
    assert prices["local"]["per_megabyte"] is None
    alike = prices["ridge_local"]["value"]  # one split, and nothing is drawn: no interval, not one of no width
    assert (alike["se"], alike["low"], alike["high"]) == (0, None, None)
    assert any("all seeds have one split" in words for words in found["words"])
    assert fedavg["cpu_seconds"] > 0
    assert fedavg["operations"]["unknown"] == 0
    products = 2 * 2 * 4 * 100 * 8 * fedavg["rounds"]  # at least 100 of every silo's rows, 8 columns, there and back
    assert products < fedavg["operations"]["count"] < 1000 * products
    assert found["energy"]["joules"] == pytest.approx(20 * found["energy"]["cpu_seconds"] / (os.cpu_count() or 1))


def test_the_table_and_the_picture_of_a_run(small_run, tmp_path):
    done = CliRunner().invoke(app, ["footprint", str(small_run[0]), "--plot", str(tmp_path / "p.png")])
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.output
    assert "Bytes are exact" in done.output
    assert "all seeds have one split" in done.output
    assert "interval)" in done.output  # (no interval), on two lines
    assert "Operations are those of training once" in done.output
    assert (tmp_path / "p.png").stat().st_size > 5000


def test_without_the_data_of_a_run_all_but_the_operations_are_told(small_run, monkeypatch):
    def gone(folder):
        raise DataNotFound("there is no titanic")

    monkeypatch.setattr(footprints, "opened", gone)
    found = footprints.run_footprint(small_run[0])
    assert found.prices[0].operations is None
    assert found.words[-1].endswith("there is no titanic")


def test_accuracy_per_gram_needs_a_country(small_run, figures):
    result = cf.StudyResult.load(small_run[0])
    journal = [json.loads(line) for line in (small_run[0] / "journal.jsonl").read_text().splitlines()]
    found = compared(result, journal, country="NWH", watts=10.0)
    first = found.prices[0]
    assert first.per_gram.mean == pytest.approx(first.value.mean / first.grams)
    assert first.grams == pytest.approx(found.energy.grams * first.cpu_seconds / found.energy.cpu_seconds)
    assert compared(result, journal, watts=10.0).prices[0].per_gram is None
    old = [{k: v for k, v in e.items() if k != "cpu_seconds"} for e in journal if e["event"] != "computed"]
    assert compared(result, old).energy is None
    assert any("older version" in words for words in compared(result, old).words)


def test_nothing_can_be_divided_by_no_bytes():
    assert per(Interval(0.8, None, None, None), 0.0) is None
    assert per(Interval(0.8, 0.1, 0.6, 1.0), 2.0) == Interval(0.4, 0.05, 0.3, 0.5)


def test_a_folder_that_holds_no_run_is_refused(tmp_path):
    done = CliRunner().invoke(app, ["footprint", str(tmp_path)])
    assert done.exit_code == 3
    with pytest.raises(TypeError, match="model, silos and rounds are needed"):
        cf.insight.footprint(cf.fedavg(lr=0.1))
    with pytest.raises(TypeError, match="a recipe, a history or the folder"):
        cf.insight.footprint(3)
    with pytest.raises(ValueError, match="say cpu_seconds"):
        cf.insight.footprint(cf.fedsgd(lr=0.1), MODEL, SILOS, 1, country="FRA", operations=False)


def test_the_measured_numbers_on_the_page_are_those_that_were_stored():
    root = Path(__file__).resolve().parents[1]
    stored = json.loads((root / "bench" / "footprint.json").read_text())["data"]
    page = (root / "docs" / "footprint.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.count("|") == 6]
    rows = [row for row in rows if row[0] in stored["MNIST"]]
    assert len(rows) == 8
    for name, *cells in rows:
        for of, cell, until in zip(stored.values(), cells[::2], cells[1::2], strict=True):
            a, level = of[name]["accuracy"], of["FedAvg, 1 epoch"]["curve"][-1] - 0.01
            assert cell == f"{a['mean']:.3f} ({a['low']:.3f} to {a['high']:.3f})"
            first = int(np.flatnonzero(np.array(of[name]["curve"]) >= level)[0])
            assert until == in_words(first * (of[name]["up"] + of[name]["down"]))
