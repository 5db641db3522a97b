"""A run shared by several processes: the same bits as in one, and words that do not fit are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from confrere.cli import processes
from confrere.study.sharing import gathered, own_share
from tests.meeting import free_port

ROOT = Path(__file__).resolve().parents[1]
STUDY = """
[data]
path = "titanic"
[study]
algorithms = ["auto", "fedavg"]
seeds = 3
rounds = 4
"""
TIMEOUT_S = 600


def confrere(folder, *words) -> "subprocess.Popen[str]":
    """The command line, in a process of its own."""
    code = "from confrere.cli import main; main()"
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], cwd=folder, env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: "subprocess.Popen[str]") -> str:
    """What it printed, once it went well."""
    try:
        out, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return out


def kept(folder: Path) -> dict[str, bytes]:
    """Every file of a run but its journal, which has the time."""
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.suffix != ".jsonl"
    }


def without_folder(printed: str) -> dict:
    """What a run printed as JSON, wherever it was kept."""
    return {k: v for k, v in json.loads(printed).items() if k not in ("folder", "report")}


@pytest.mark.slow
def test_processes_end_with_the_bits_of_one_whoever_starts_them(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    how = ("run", "study.toml", "--no-report", "--json")
    alone = ended(confrere(tmp_path, *how, "--out", "alone"))
    shared = ended(confrere(tmp_path, *how, "--out", "shared", "--processes", 2))
    assert kept(tmp_path / "shared") == kept(tmp_path / "alone")
    assert without_folder(shared) == without_folder(alone)

    meet = ("--processes", 2, "--meet", f"localhost:{free_port()}")
    by_hand = [confrere(tmp_path, *how, "--out", "by-hand", *meet, "--process", k) for k in range(2)]
    printed = [ended(process) for process in by_hand]
    assert kept(tmp_path / "by-hand") == kept(tmp_path / "alone")
    assert without_folder(printed[0]) == without_folder(alone)
    assert printed[1] == ""

    for cell in list((tmp_path / "shared" / "cells").iterdir())[::2]:
        cell.unlink()
    (tmp_path / "shared" / "study.json").unlink()
    ended(confrere(tmp_path, "resume", "shared", "--no-report", "--json", "--processes", 2))
    assert kept(tmp_path / "shared") == kept(tmp_path / "alone")


def test_a_process_alone_has_every_case_and_its_own_cells():
    assert own_share(["a", "b", "c"]) == ["a", "b", "c"]
    assert gathered({("fedavg", 0, 1): "cell"}) == {("fedavg", 0, 1): "cell"}


@pytest.mark.parametrize(
    ("count", "process", "meet", "words"),
    [
        (2, 1, None, "--process and --meet go together"),
        (2, None, "localhost:1234", "--process and --meet go together"),
        (2, 2, "localhost:1234", "of 2 processes the last is 1"),
    ],
)
def test_words_that_do_not_fit_together_are_refused(count, process, meet, words):
    with pytest.raises(processes.typer.BadParameter, match=words):
        processes.check(count, process, meet)
