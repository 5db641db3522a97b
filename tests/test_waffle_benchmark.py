"""The benchmark of the WAFFLE paper: its cells, its store, its table, its command, and the numbers it must reach."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import confrere as cf
from confrere.reproduce.waffle import table
from confrere.reproduce.waffle.cells import Cell, Store, facts, run_cell
from confrere.reproduce.waffle.methods import METHODS, TABLE_1, chosen
from confrere.reproduce.waffle.published import published
from confrere.reproduce.waffle.setting import DISTRIBUTIONS, Setting, check, silos_of
from tests.test_cli import confrere

BENCH = Path(__file__).resolve().parents[1] / "bench"
TINY = Setting(agents=3, rows=20, rounds=2, lr=0.01)


def curve(*accuracy, validation=None, weights=None) -> Cell:
    values = np.array(accuracy)
    return Cell(values, np.array(validation) if validation else values, 1 - values, weights, 1.5)


def test_a_cell_comes_back_from_the_store_as_it_went_in(tmp_path):
    store = Store(tmp_path)
    about = facts(TINY, "waffle", METHODS["waffle"](TINY))
    cell = curve(0.1, 0.5, 0.4, weights=np.array([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]]))
    assert store.get(about) is None
    store.put(about, cell)
    found = store.get(about)
    for one, two in zip(cell, found, strict=True):
        np.testing.assert_array_equal(one, two)
    alone = facts(TINY, "local", METHODS["local"](TINY))
    store.put(alone, curve(0.1, 0.2, 0.3))
    assert store.get(alone).weights is None


def test_a_damaged_cell_is_computed_again(tmp_path):
    store = Store(tmp_path)
    about = facts(TINY, "local", METHODS["local"](TINY))
    store.put(about, curve(0.1, 0.2, 0.3))
    store.path(about).write_bytes(b"PAR1 but no more")
    with pytest.warns(UserWarning, match="is damaged"):
        assert store.get(about) is None


def test_a_flipped_bit_is_noticed(tmp_path):
    store = Store(tmp_path)
    about = facts(TINY, "waffle", METHODS["waffle"](TINY))
    cell = curve(0.1, 0.5, 0.4, weights=np.array([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2]]))
    store.put(about, cell)
    path, content = store.path(about), store.path(about).read_bytes()
    for place in range(4, len(content), 41):
        path.write_bytes(content[:place] + bytes([content[place] ^ 64]) + content[place + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = store.get(about)
        if found is not None:
            np.testing.assert_array_equal(found.accuracy, cell.accuracy)
            np.testing.assert_array_equal(found.weights, cell.weights)


def test_what_a_schedule_does_is_in_the_name_of_its_cells(tmp_path):
    store = Store(tmp_path)
    paths = set()
    for power in (1, 9):
        recipe = cf.waffle(user=0, rounds=2, lr=0.1, schedule=lambda t, power=power: (1 - t) ** power)
        paths.add(store.path(facts(TINY, "mine", recipe)))
    assert len(paths) == 2


def test_whatever_determines_a_cell_is_in_its_name(tmp_path):
    store = Store(tmp_path)
    others = [TINY._replace(seed=2), TINY._replace(lr=0.02), TINY._replace(distribution="B"), TINY._replace(rows=21)]
    paths = {store.path(facts(one, "waffle", METHODS["waffle"](one))) for one in [TINY, *others]}
    paths.add(store.path(facts(TINY, "waffle_raw", METHODS["waffle_raw"](TINY))))
    assert len(paths) == 6


def test_a_batch_is_the_papers_unless_another_is_said():
    """What is not said is not in a cell's name, so that cells from before it could be said are still found."""
    assert (TINY.batch, TINY._replace(data="cifar10").batch, TINY._replace(batch_rows=5).batch) == (32, 128, 5)
    assert "batch_rows" not in TINY.facts()
    assert TINY._replace(batch_rows=5).facts()["batch_rows"] == 5
    assert METHODS["waffle"](TINY._replace(batch_rows=5)).static["batch"] == 5


def test_best_last_chosen_and_the_first_round_that_is_nearly_there():
    cell = curve(0.1, 0.6, 0.9, 0.795, 0.8, validation=[0, 0.9, 0.5, 0.9, 0.1])
    assert (table.best(cell), table.last(cell), table.chosen(cell)) == (0.9, 0.8, 0.6)
    assert table.rounds_to_99(cell) == 2
    assert table.rounds_to_99(curve(0.9, 0.2, 0.4, 0.6, 0.6)) == 3  # the untrained model is no round


def test_the_table_has_what_was_published():
    entry = table.of_method("mnist", "A*", "waffle", [curve(0, 0.5, 0.7), curve(0, 0.6, 0.5)])
    assert entry["best"] == pytest.approx({"mean": 0.65, "std": 0.05})
    assert entry["published"] == 0.9799
    assert published("mnist", "B", "ditto") is None


def test_every_method_makes_a_recipe_in_every_setting():
    for name, method in METHODS.items():
        for setting in (TINY, TINY._replace(model="lenet5"), TINY._replace(data="cifar10", model="dla")):
            assert facts(setting, name, method(setting))["method"] == name


def test_networks_have_bounded_corrections_and_a_smaller_penalty():
    deep = TINY._replace(model="lenet5")
    made = {name: METHODS[name](deep) for name in METHODS if name.startswith(("waffle", "scaffold"))}
    bounded = {name: recipe.static["bounded"] for name, recipe in made.items()}
    assert bounded == {
        "scaffold": False, "waffle": True, "scaffold_bounded": True, "waffle_literal": False,
        "waffle_untempered": False, "waffle_unbounded": False, "waffle_raw": True,
    }  # fmt: skip
    assert not METHODS["waffle"](TINY).static["bounded"]
    penalties = [METHODS["weight_erosion"](one).hyper["p_d"] for one in (TINY, deep)]
    assert penalties == [2 / TINY.rounds, 0.8 / TINY.rounds]


def test_methods_are_chosen_by_name():
    assert chosen(()) == tuple(TABLE_1)
    assert chosen(("all",)) == tuple(METHODS)
    assert "fedbn" not in chosen(("all",), "softmax")
    assert chosen(("local", "local"), "softmax") == ("local",)
    with pytest.raises(ValueError, match="there is no method 'wafle' for lenet5"):
        chosen(("wafle",), "lenet5")


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match=r"distribution must be one of A, B, C, A\*, B\*, not 'D'"):
        check(TINY._replace(distribution="D"))


@pytest.mark.usefixtures("shared_data")
def test_the_page_refuses_two_cells_of_one_seed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_page import Run, refuse_doubles

    runs = [
        Run({"method": "fedavg", "setting": {"distribution": "B", "seed": seed}}, curve(0.1, 0.2)) for seed in (1, 2)
    ]
    refuse_doubles(runs)
    with pytest.raises(ValueError, match="two cells of fedavg, B, 1"):
        refuse_doubles([*runs, runs[0]])


def test_the_page_is_what_the_cells_say(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_page import PAGE, write

    write(BENCH / "waffle-cells", BENCH / "waffle-why", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == PAGE.read_text()


def test_what_the_documentation_says_of_the_second_seed_is_what_its_cells_say(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_page import read

    asked = {"model": "lenet5", "rows": 6000, "rounds": 100, "lr": 0.1, "seed": 2}
    readings = {
        (run.about["method"], run.about["setting"]["distribution"]): [
            f"{100 * of(run.cell):.2f}" for of in (table.best, table.last, table.chosen)
        ]
        for run in read(BENCH / "waffle-cells")
        if asked.items() <= run.about["setting"].items()
    }
    words = " ".join((BENCH.parent / "docs" / "waffle.md").read_text(encoding="utf-8").split()).replace("\\*", "*")
    for where in ("B", "B*"):
        best, last, then = readings["waffle", where]
        assert f"on {where} it has {best} at its best, {last} in the last round and {then} in the round chosen" in words
        assert (
            "Training alone, to which both are the same, has {}, {} and {}".format(*readings["local", where]) in words
        )


def test_the_page_has_a_command_for_every_number_of_seeds(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_page import commands_for, how_many

    one, group = curve(0.1, 0.2), ("mnist", "softmax", 3, 20, 2, 0.01, None, None)
    cells = {("local", "A"): [one] * 3, ("local", "B"): [one], ("waffle", "B"): [one] * 2}
    assert how_many(cells) == "one seed, 2 or 3 where a spread is given"
    said = [line.split("--lr 0.01 ")[1] for line in commands_for(group, cells, ["local", "waffle"])]
    end = "--store bench/waffle-cells"
    assert said == [
        f"--seeds 1 --methods local,waffle {end}", f"--seeds 1 --methods local,waffle {end}",
        f"--seeds 3 --methods local {end}", f"--seeds 2 --methods waffle {end}",
    ]  # fmt: skip
    assert how_many({("local", "A"): [one] * 2}) == "2 seeds"


def test_only_what_is_missing_is_run(tmp_path, monkeypatch):
    store = Store(tmp_path)
    first = table.run_table(TINY, ["B"], ["local", "fedavg"], [1], store)
    ran = []
    monkeypatch.setattr(
        table, "run_cell", lambda setting, recipe, *rest: ran.append(recipe.name) or first["B"]["local"][0]
    )
    again = table.run_table(TINY, ["B"], ["local", "fedavg", "scaffold"], [1], store)
    assert ran == ["scaffold"]
    np.testing.assert_array_equal(again["B"]["fedavg"][0].accuracy, first["B"]["fedavg"][0].accuracy)


@pytest.mark.usefixtures("shared_data")
def test_one_row_more_adds_a_method_to_the_table(tmp_path):
    own = {"local": METHODS["local"], "mine": lambda setting: cf.fedavg(lr=setting.lr, batch=setting.batch, epochs=2)}
    store = Store(tmp_path)
    cells = table.run_table(TINY, ["B"], own, [1], store)
    report = table.table_report(TINY, cells, [1])["cells"]["B"]
    assert (list(report), report["mine"]["published"]) == (["local", "mine"], None)
    assert store.get(facts(TINY._replace(distribution="B"), "mine", own["mine"](TINY))) is not None


@pytest.mark.usefixtures("shared_data")
def test_local_looks_at_alices_rows_alone():
    silos = silos_of(TINY._replace(distribution="B*"))
    assert run_cell(TINY, METHODS["local"](TINY), silos).weights is None
    assert run_cell(TINY, METHODS["fedavg"](TINY), silos).weights == pytest.approx(np.full((2, 3), 1 / 3))


@pytest.mark.usefixtures("shared_data")
def test_the_command_prints_the_paper_s_table_as_json(tmp_path):
    words = "reproduce waffle --distribution C --rows 20 --agents 3 --rounds 2 --seeds 2 --methods local,waffle --json"
    done = confrere(*words.split(), "--store", str(tmp_path / "cells"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["seeds"] == [1, 2]
    assert set(report["cells"]) == {"C"}
    for method, said in (("local", 0.9854), ("waffle", 0.99)):
        cell = report["cells"]["C"][method]
        assert cell["published"] == said
        assert 0 <= cell["last"]["mean"] <= cell["best"]["mean"] <= 1
        assert {"mean", "std"} == set(cell["chosen"])
    assert len(list((tmp_path / "cells").glob("*.parquet"))) == 4
    assert {p.name for p in tmp_path.glob("*.png")} == {
        "waffle-mnist-softmax-C-accuracy.png", "waffle-mnist-softmax-C-weights.png",
    }  # fmt: skip


BANDS = {  # of an independent program: mean of three seeds, 10 agents x 200 rows, best of 100 rounds
    "A": {"local": 0.789, "fedavg": 0.886, "scaffold": 0.886, "weight_erosion": 0.869, "waffle": 0.876},
    "B": {"local": 0.949, "fedavg": 0.903, "scaffold": 0.905, "weight_erosion": 0.959, "waffle": 0.956},
    "C": {"local": 0.887, "fedavg": 0.846, "scaffold": 0.848, "weight_erosion": 0.916, "waffle": 0.916},
    "A*": {"local": 0.789, "fedavg": 0.271, "scaffold": 0.271, "weight_erosion": 0.781, "waffle": 0.766},
    "B*": {"local": 0.949, "fedavg": 0.357, "scaffold": 0.379, "weight_erosion": 0.949, "waffle": 0.937},
}


def check_order(distribution, found):
    """Who is above whom in the independent program, by distribution."""
    local, common = found["local"], [found["fedavg"], found["scaffold"]]
    personal = [found["weight_erosion"], found["waffle"]]
    if distribution == "A":
        assert min(common) > max(personal)
        assert min(personal) > local
    elif distribution in ("B", "C"):
        assert min(personal) > local > max(common)
    else:
        assert found["weight_erosion"] > local - 0.02
        assert found["waffle"] > local - 0.04
        assert max(common) < local - 0.3


@pytest.mark.usefixtures("shared_data")
@pytest.mark.slow
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_small_setting_is_within_three_points_of_the_independent_program_and_in_its_order(distribution):
    setting = Setting(rows=200, lr=0.01)
    cells = table.run_table(setting, [distribution], list(BANDS["A"]), [1, 2, 3], Store(None))
    report = table.table_report(setting, cells, [1, 2, 3])["cells"][distribution]
    found = {method: report[method]["best"]["mean"] for method in BANDS[distribution]}
    assert found == pytest.approx(BANDS[distribution], abs=0.03)
    check_order(distribution, found)
