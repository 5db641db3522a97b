"""The command line, through the installed entry point."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from confrere.cli.app import app

COMMAND = Path(sys.executable).with_name("confrere")


def confrere(*arguments: str, without_data: bool = False, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, COLUMNS="100")
    if without_data:
        environment.pop("CONFRERE_DATA", None)
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, check=False)


def test_the_version_is_said_without_importing_jax():
    probe = "import sys; sys.argv = ['confrere', '--version']\nfrom confrere.cli import main\ntry: main()\n"
    probe += "except SystemExit: pass\nprint('jax' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["confrere", "0.1.0", "False", "False"]


def test_help_lists_the_commands_and_the_exit_codes():
    done = confrere("--help")
    assert done.returncode == 0
    for word in ("demo", "reproduce", "Exit codes", "Example"):
        assert word in done.stdout


def every_command(group=None, path=""):
    """All commands, those of groups included, by what one types."""
    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every_command(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_command_has_json_an_example_and_no_gap_in_its_help():
    found = dict(every_command())
    assert {"check", "compare", "train", "predict", "monitor", "report", "reproduce auto"} <= set(found)
    for name, command in found.items():
        assert f"Example: confrere {name}" in command.epilog, name
        for wanted in ("--json", "--quiet"):
            assert any(wanted in option.opts for option in command.params), (name, wanted)
        assert all(" [" not in (getattr(option, "help", "") or "") for option in command.params), name  # read as markup


def test_the_authors_run_as_json(shared_data):
    done = confrere("reproduce", "weight-erosion", "--split", "age-some", "--seed", "278", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["split"], report["seed"], report["rounds"]) == ("age-some", 278, 30)
    for user, row in report["users"].items():
        assert row["others"] == [i for i in range(4) if str(i) != user]
        assert len(row["distance"]) == len(row["alpha"]) == 30
        assert set(row["accuracy"]) == {"weight_erosion", "local", "fedavg", "fedavg_as_published"}
        assert set(row["accuracy_batch_mean"]) == set(row["accuracy"])


def test_the_authors_run_without_data_says_what_is_missing():
    done = confrere("reproduce", "weight-erosion", "--seed", "278", "--json", without_data=True)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "CONFRERE_DATA" in done.stderr
    assert "titanic_tfds_order.csv" in done.stderr


def test_another_seed_needs_no_folder_of_data_and_draws_its_figures(tmp_path):
    done = confrere("reproduce", "weight-erosion", "--seed", "1", without_data=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Weight" in done.stdout
    written = sorted(p.name for p in (tmp_path / "confrere-report").iterdir())
    assert written == ["figure1-age-strict-1.png", "figure2-age-strict-1.png", "weight-erosion-age-strict-1.html"]
    page = (tmp_path / "confrere-report" / "weight-erosion-age-strict-1.html").read_text(encoding="utf-8")
    assert "Figure 1" in page
    assert 'src="http' not in page


def test_the_table_over_seeds_as_json(tmp_path):
    done = confrere("reproduce", "weight-erosion", "--seeds", "2", "--split", "age-strict", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert sorted(cells) == [f"age-strict/{user}" for user in range(4)]
    for row in cells.values():
        for name in ("weight_erosion", "local", "fedavg"):
            assert 0 < row[name]["mean"] < 1
            assert row[name]["std"] >= 0
    assert list(tmp_path.iterdir()) == []


def test_the_demo_prints_a_table_and_where_the_report_is(tmp_path):
    done = confrere("demo", "--seeds", "2", "--quiet", without_data=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("worth it?", "0-20", "unknown", "mean of all", "Report:"):
        assert words in done.stdout
    page = tmp_path / "confrere-report" / "report.html"
    assert str(page) in done.stdout.replace("\n", "")
    assert "Did learning together help 21-35?" in page.read_text(encoding="utf-8")
    assert done.stderr == ""


def test_the_demo_as_json(tmp_path):
    done = confrere("demo", "--seeds", "2", "--json", "--out", "here", without_data=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [h["name"] for h in report["hospitals"]] == ["0-20", "21-35", "36+", "unknown"]
    for hospital in report["hospitals"]:
        assert {g["rival"] for g in hospital["help"]["gains"]} == {"ridge_local", "fedavg"}
        assert sum(hospital["listening"]["shares"].values()) <= 1.00001
    assert report["label"] == "survival"
    assert report["report"] == "here/report.html"
    assert done.stderr == ""


def test_the_demo_refuses_a_folder_that_is_a_file_before_it_works(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = confrere("demo", "--out", str(blocked))
    assert done.returncode == 1
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr
    assert blocked.read_text() == "in the way"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "weight-erosion", "--seed", "1", "--seeds", "2"), "not both"),
        (("reproduce", "weight-erosion", "--split", "by-name"), "age-strict"),
        (("reproduce", "weight-erosion", "--seeds", "0"), "--seeds"),
        (("reproduce", "no-such-paper"), "No such command"),
    ],
)
def test_what_is_not_understood_is_refused_with_code_2(arguments, words):
    done = confrere(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_folder_that_cannot_be_written_is_an_error_without_a_traceback(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = confrere("reproduce", "weight-erosion", "--seed", "1", "--out", str(blocked))
    assert done.returncode == 1
    assert "file" in done.stderr
    assert "Traceback" not in done.stderr
    assert blocked.read_text() == "in the way"


def test_a_second_run_finds_its_programs_compiled(tmp_path):
    cache = tmp_path / "cache"
    environment = dict(os.environ, XDG_CACHE_HOME=str(cache))
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [COMMAND, "reproduce", "weight-erosion", "--seeds", "1", "--split", "age-strict", "--json"]
    subprocess.run(command, capture_output=True, env=environment, check=True)
    programs = {p.name for p in (cache / "confrere" / "compiled").iterdir() if p.name.endswith("-cache")}
    assert programs
    subprocess.run(command, capture_output=True, env=environment, check=True)
    assert {p.name for p in (cache / "confrere" / "compiled").iterdir() if p.name.endswith("-cache")} == programs
    shutil.rmtree(cache)
