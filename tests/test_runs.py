"""Runs from files: what is refused and where, and that an interrupted run ends as one that was not."""

import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

import confrere as cf
from confrere.cli.compare import init
from confrere.data.choose import Choice, check_user, chosen_silos
from confrere.runs.config import checked, read_config, told_by_line
from confrere.runs.run import journal, opened, resume, run, study_of
from tests.test_cli import COMMAND, confrere
from tests.test_saved import table

STUDY = """\
[data]
path = "patients.csv"
label = "ill"
silo = "clinic"

[study]
algorithms = ["local", "fedsgd"]
seeds = 40
rounds = 5

[study.grid]
lr = [0.1, 1.0]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, a study of it, and the run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("runs")
    table(120).write_csv(folder / "patients.csv")
    (folder / "study.toml").write_text(STUDY)
    done = confrere("run", "study.toml", "--out", "straight", "--no-report", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def cells(folder: Path) -> list:
    return json.loads((folder / "study.json").read_text())["cells"]


@pytest.mark.parametrize(("change", "words"), [
    ({"budget": "bytes=3"}, "one round of fedsgd would take .* more than the budget of 3 bytes"),
    ({"budget": "bytes=0"}, "more than the budget of 0 bytes"),
    ({"users": ["east"]}, "silo 'east' has no test rows in some seed"),
])  # fmt: skip
def test_a_run_that_is_refused_leaves_no_folder_behind(tmp_path, change, words):
    frame = table(40)
    lonely = frame.head(1).with_columns(pl.lit("east").alias("clinic"))
    pl.concat([frame, lonely] if "users" in change else [frame]).write_csv(tmp_path / "patients.csv")
    data = {"path": str(tmp_path / "patients.csv"), "label": "ill", "silo": "clinic"}
    study = {"algorithms": ["fedsgd"], "seeds": 2, "rounds": 2, "grid": {"lr": [0.1]}, **change}
    config = checked({"data": data, "study": study}, "", tmp_path / "study.toml")
    with pytest.raises(ValueError, match=words):
        run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("text", "words"), [
    ("{", "invalid json: eof while parsing an object at line 1 column 1"), ('{"a": 1}', "field required in data"),
])  # fmt: skip
def test_a_damaged_configuration_is_told_in_one_line_with_its_file(tmp_path, text, words):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    (tmp_path / "study.json").write_text("{}", encoding="utf-8")
    for reading in (opened, resume):
        with pytest.raises(ValueError, match="damaged") as told:
            reading(tmp_path)
        remedy = "put a copy of it back, or begin a new run in another folder"
        assert str(told.value) == f"{tmp_path / 'config.json'} is damaged ({words}): {remedy}"
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["config.json", "study.json"]


def test_nothing_but_the_error_is_said_where_there_is_no_terminal(tmp_path):
    table(40).write_csv(tmp_path / "patients.csv")
    named = ("--label", "ill", "--silo", "clinic", "--algorithms", "fedavg", "--seeds", "2")
    done = confrere("compare", "patients.csv", *named, "--out", "out", "--budget", "bytes=3", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("confrere: ")
    assert not (tmp_path / "out").exists()


def test_a_run_leaves_its_result_and_a_journal(place):
    straight = place / "straight"
    events = [entry["event"] for entry in journal(straight)]
    assert (events[0], events[-1], set(events[1:-1])) == ("begun", "finished", {"computed"})
    found = cells(straight)
    assert len(found) == 3 * 2 * 40  # ridge_local is always there
    assert pl.read_parquet(straight / "cells.parquet").height > 0


def killed_after(place: Path, folder: str, seconds: float) -> None:
    """Start a run and kill it without warning."""
    words = [COMMAND, "run", "study.toml", "--out", folder, "--quiet"]
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (place / folder / "journal.jsonl").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def length_of_a_run(place: Path) -> float:
    """Seconds from the beginning of a run to its end, with compiled programs at hand."""
    begin = time.monotonic()
    killed_after(place, "timed", 0.0)
    start = time.monotonic() - begin
    begin = time.monotonic()
    assert confrere("resume", "timed", "--quiet", cwd=place).returncode == 0
    return max(1.0, time.monotonic() - begin - start)


def kill_and_resume(place: Path, times: int, seed: int) -> None:
    """A run that is killed at a random moment and resumed has the bits of the straight one, every time.

    The moments are spread over the run: one in each part of it.
    """
    rng, length = random.Random(seed), length_of_a_run(place)
    expected = cells(place / "straight")
    left = []
    for number in range(times):
        folder = f"killed-{seed}-{number}"
        killed_after(place, folder, rng.uniform(number, number + 1) / times * length)
        left.append(len(list((place / folder / "cells").glob("[!.]*.json"))))
        done = confrere("resume", folder, "--json", cwd=place)
        assert done.returncode == 0, done.stderr
        assert cells(place / folder) == expected
        assert (place / folder / "report.html").read_text().endswith("</html>\n")
    assert min(left) < len(expected), "no run was interrupted"


def test_a_run_that_was_killed_twice_ends_with_the_same_bits(place):
    kill_and_resume(place, 2, seed=0)


@pytest.mark.slow
def test_a_run_that_was_killed_fifty_times_ends_with_the_same_bits(place):
    kill_and_resume(place, 50, seed=1)


def test_a_finished_run_is_read_and_nothing_is_computed(place):
    before = {file.name: file.stat().st_mtime_ns for file in (place / "straight" / "cells").iterdir()}
    done = confrere("resume", "straight", "--no-report", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert {file.name: file.stat().st_mtime_ns for file in (place / "straight" / "cells").iterdir()} == before


def test_changed_data_and_folders_in_use_are_refused(place, tmp_path):
    again = confrere("run", "study.toml", "--out", "straight", cwd=place)
    assert again.returncode == 1
    assert "confrere resume straight" in again.stderr
    (tmp_path / "study.toml").write_text(STUDY)
    table(120).write_csv(tmp_path / "patients.csv")
    killed_after(tmp_path, "run", 0.0)
    table(120, seed=5).write_csv(tmp_path / "patients.csv")
    done = confrere("resume", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "have changed" in done.stderr
    assert confrere("resume", ".", cwd=tmp_path).returncode == 3


@pytest.mark.parametrize(("old", "new", "words"), [
    ("seeds = 40", "seedz = 3", ["line 8", "'study.seedz'", "did you mean 'seeds'"]),
    ("seeds = 40", 'seeds = "3"', ["line 8", "study.seeds", "integer"]),
    ("seeds = 40", "seeds = 0", ["line 8", "study.seeds", "greater than or equal to 1"]),
    ('"local"', '"locla"', ["line 7: study.algorithms: there is no 'locla'; did you mean 'local'?"]),
    ("rounds = 5", 'users = ["a", "all"]', ["line 9: study.users: 'all' stands alone"]),
    ("[study.grid]", "[stuty]", ["line 11", "'stuty'", "did you mean 'study'"]),
    ('path = "patients.csv"\n', "", ["line 1", "'data.path' is missing"]),
    ("[data]", "[data", ["no TOML file", "line 1"]),
    ("seeds = 40", "seeds = 1.5", ["line 8", "study.seeds: should be a whole number (integer), not 1.5"]),
    ("lr = [0.1, 1.0]", 'lr = ["a"]', ["line 12", "study.grid.lr: should be a number, not 'a'"]),
    ("lr = [0.1, 1.0]", "lr = 3", ["line 12", "study.grid.lr: should be a list or a table, not 3"]),
    ('path = "patients.csv"', "path = 3", ["line 2", "data.path: should be text or a list, not 3"]),
    ('path = "patients.csv"', 'path = ["p.csv", 3]', ["line 2", "data.path: should be text, not 3"]),
    ("[study.grid]", "[derive.south]", ["line 12: derive.south.lr: should be text, not [0.1, 1.0]"]),
    (STUDY, 'data.path = "titanic"\n\nstudy.seeds = "x"', ["line 3: study.seeds: should be a whole number"]),
    ("seeds = 40", "'seeds' = true", ["line 8: study.seeds: should be a whole number"]),
    ("seeds = 40", "users = []", ["line 8: study.users: nothing is named: name one at least"]),
    ('["local", "fedsgd"]', "[]", ["line 7: study.algorithms: nothing is named: name one at least"]),
    ('"patients.csv"', "[]", ["line 2: data.path: nothing is named: name one at least"]),
    ('"patients.csv"', '[\n  "a.csv",\n  "label = 3",\n]\nlabell = 1', ["line 6: there is no field 'data.labell'"]),
])  # fmt: skip
def test_mistakes_are_told_with_line_and_field(tmp_path, old, new, words):
    (tmp_path / "study.toml").write_text(STUDY.replace(old, new))
    with pytest.raises(ValueError, match=re.escape("study.toml")) as problem:
        read_config(tmp_path / "study.toml")
    assert len(str(problem.value).splitlines()) == 1
    for word in words:
        assert word in str(problem.value)


GRID = STUDY[STUDY.index("[study.grid]") :]


@pytest.mark.parametrize(("old", "new", "words"), [
    ("[0.1, 1.0]", "[-1]", ["line 12: study.grid.lr: the grid of local: lr must be a finite number, 0 or more"]),
    ("[0.1, 1.0]", "[]", ["line 12: study.grid.lr: the grid of local: lr must be one finite number or more, not []"]),
    (GRID, "[study.grid.fedsgd]\nlr = [-1]", ["line 12: study.grid.fedsgd.lr: the grid of fedsgd: lr must be"]),
    ("lr =", "lrr =", ["line 12: study.grid.lrr: the grid names 'lrr'", "did you mean 'lr'?"]),
    (GRID, "[study.grid.fedsgd]\nlrr = [1]", ["line 12: study.grid.fedsgd.lrr: ", "did you mean 'lr'?"]),
    (GRID, "[study.grid.fedsdg]\nlr = [1]", ["line 11: study.grid.fedsdg: ", "did you mean 'fedsgd'?"]),
    ("rounds = 5", 'users = ["a", "c"]', ["line 9: study.users: there is no silo 'c'; there is 'a', 'b'"]),
    (GRID, '[derive]\nold = "agee / 2"', ["line 12: derive.old: silo 'a': old = ", "did you mean 'age'?"]),
    (GRID, '[derive.b]\nold = "agee / 2"', ["line 12: derive.b.old: silo 'b': old = ", "did you mean 'age'?"]),
    (GRID, '[derive.c]\nold = "age / 2"', ["line 11: derive.c: there is no silo 'c'; there is 'a', 'b'"]),
    ('"clinic"', '"clinic"\nexclude = ["c"]', ["line 5: data.exclude: there is no silo 'c'"]),
    ('"clinic"', '"clinic"\nfeatures = ["agee"]', ["line 5: data.features: ", "did you mean 'age'?"]),
    ('"clinic"', '"clinic"\ndrop = ["agee"]', ["line 5: data.drop: drop names the column 'agee'", "mean 'age'?"]),
    ('"clinic"', '"clinic"\ncategorical = ["agee"]\nfeatures = ["age"]', ["line 5: data.categorical: ", "'agee'"]),
    ('"clinic"', '"clinic"\nnumeric = ["agee"]', ["line 5: data.numeric: ", "did you mean 'age'?"]),
    ('"clinic"', '"clinic"\nmissing = {agee = [0]}', ["line 5: data.missing.agee: ", "did you mean 'age'?"]),
    (GRID, "[data.missing]\nagee = [0]", ["line 12: data.missing.agee: ", "did you mean 'age'?"]),
    ('"ill"', '"il"', ["line 3: data.label: silo 'a' has no label column 'il'", "'ill'"]),
    ('"clinic"', '"clinicc"', ["line 4: data.silo: the table has no silo column 'clinicc'", "'clinic'?"]),
])  # fmt: skip
def test_names_that_the_data_do_not_have_are_told_with_line_and_field(tmp_path, old, new, words):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace("seeds = 40", "seeds = 1").replace(old, new))
    table(40).write_csv(tmp_path / "patients.csv")
    config = read_config(file)
    with pytest.raises(ValueError, match=re.escape("study.toml")) as problem, told_by_line(file):
        study_of(config, chosen_silos(config.choice()))
    for word in words:
        assert word in str(problem.value)


@pytest.mark.parametrize(("name", "words"), [
    ("ridge_local", "line 7: study.algorithms: ridge_local is for linear models only"),
    ("auto", "line 7: study.algorithms: auto can be compared for linear models only"),
])  # fmt: skip
def test_networks_are_refused_before_anything_is_written_where_they_cannot_be_had(tmp_path, name, words):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace('["local", "fedsgd"]', f'["{name}"]\nmodel = "mlp"'))
    table(40).write_csv(tmp_path / "patients.csv")
    with pytest.raises(ValueError, match=words), told_by_line(file):
        run(read_config(file), tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_a_user_that_was_excluded_is_told_so():
    with pytest.raises(ValueError, match="silo 'north' is excluded"):
        check_user("north", ["south"], Choice(("p.csv",), exclude=("north",)))
    with pytest.raises(ValueError, match="silo 'north' is none of the silos that were named"):
        check_user("north", ["south"], Choice(("p.csv",), silos=("south",)))


def test_init_writes_a_file_that_runs_as_it_is(tmp_path):
    done = confrere("init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    config = read_config(tmp_path / "study.toml")
    assert config.data.path == "titanic"
    assert confrere("init", cwd=tmp_path).returncode == 1
    assert (
        confrere("init", "own.toml", "--data", "p.csv", "--label", "ill", "--silo", "clinic", cwd=tmp_path).returncode
        == 0
    )
    own = read_config(tmp_path / "own.toml")
    assert (own.data.label, own.data.silo, own.data.path) == ("ill", "clinic", str(tmp_path / "p.csv"))


def test_init_writes_paths_and_names_that_run_understands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    label, silo = 'so-called "flu"', "ward\\unit"
    init(Path("sub/study.toml"), "patients.csv", label, silo, quiet=True)
    found = read_config("sub/study.toml").data
    assert (found.path, found.label, found.silo) == (str(tmp_path / "patients.csv"), label, silo)
    init(Path("sub/named.toml"), "titanic", quiet=True)
    assert read_config("sub/named.toml").data.path == "titanic"


def test_every_field_of_the_template_is_understood(tmp_path):
    from confrere.runs.template import template

    lines = [line.removeprefix("# ") for line in template("p.csv", None, None).splitlines()[2:]]
    (tmp_path / "study.toml").write_text("\n".join(lines))
    config = read_config(tmp_path / "study.toml")
    assert config.data.missing == {"chol": [0]}
    assert config.choice().derive == {
        "": {"days_ill": "admission - onset"}, "south": {"days_ill": "duration_hours / 24"},
    }  # fmt: skip


def test_silos_that_recorded_differently_are_made_interoperable(tmp_path):
    from confrere.data.choose import Choice, chosen_silos

    north = "onset,admission,ill\n" + "".join(f"2020-01-0{i % 8 + 1},2020-01-1{i % 9},{i % 2}\n" for i in range(30))
    south = "hours,ill\n" + "".join(f"{24 * (i % 7)},{i % 2}\n" for i in range(30))
    (tmp_path / "north.csv").write_text(north)
    (tmp_path / "south.csv").write_text(south)
    formulas = {"north": {"days": "admission - onset"}, "south": {"days": "hours / 24"}}
    silos = chosen_silos(Choice((str(tmp_path),), label="ill", features=("days",), derive=formulas))
    assert silos.feature_names == ("days",)


def test_compare_says_what_is_best_for_whom_and_what_was_overridden(place):
    words = ("patients.csv", "--label", "ill", "--silo", "clinic", "--user", "a", "--features", "age,sex")
    chosen = ("--algorithms", "ridge_local,fedsgd", "--seeds", "2", "--no-report", "--out", "compared")
    done = confrere("compare", *words, *chosen, "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["overridden"] == {"features": "age, sex"}
    assert set(report["users"]) == {"a"}
    [row] = report["differences"]["fedsgd"]["ridge_local"]["log_loss"]
    assert row["low"] is row["high"] is None  # of two splits the tables show no interval either
    shown = confrere("resume", "compared", "--no-report", cwd=place)
    assert "fedsgd minus the other" in shown.stdout
    wrong = confrere("compare", *words, "--algorithms", "fedsdg", "--out", "never", cwd=place)
    assert wrong.returncode == 2
    assert "fedsdg" in wrong.stderr
    assert not (place / "never").exists()


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({}, ["auto", "ridge_local", "fedavg", "weight_erosion"]),
        ({"model": "mlp"}, ["local", "fedavg", "fine_tuned", "weight_erosion"]),
        ({"model": "mlp", "algorithms": ["ditto"]}, ["ditto"]),
    ],
)
def test_networks_are_compared_by_what_they_can_do(part, expected):
    config = checked({"data": {"path": "titanic"}, "study": part}, "", Path("study.toml"))
    assert config.study.algorithms == expected
    assert list(study_of(config, cf.data.titanic("age-strict", seed=0)).contenders[0].candidates)
