"""What the README and the documentation tell people to type works."""

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import reads_outside_data

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"  # its blocks belong together, and are run in order
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page != TUTORIAL]
LONG = ("Compare", "Report")  # sections of the tutorial that take their time


def blocks(language: str) -> list[tuple[str, str]]:
    """(page, text) of every code block in a language."""
    found = []
    for page in PAGES:
        for text in re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            found.append((page.name, text))
    return found


def commands() -> list[str]:
    lines = [line for _, text in blocks("console") for line in text.splitlines() if line.startswith("$ ")]
    return list(dict.fromkeys(line[2:].split("#")[0].strip() for line in lines if "activate" not in line))


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_python_on_a_page_runs(page, capsys, tmp_path, monkeypatch, request):
    if any(name == page and reads_outside_data(text) for name, text in blocks("python")):
        request.getfixturevalue("shared_data")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    promised: list[str] = []
    for name, text in blocks("python"):
        if name == page:
            exec(compile(text, name, "exec"), namespace)
            promised += re.findall(r"print\(.*\)  # (.*), \.\.\.$", text, re.MULTILINE)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert all(words in shown.out for words in promised), promised


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("confrere")])
def test_commands_on_the_pages_run(command, tmp_path, request):
    if reads_outside_data(command):
        request.getfixturevalue("shared_data")
    words = command.split()
    program = Path(sys.executable).with_name(words[0])
    done = subprocess.run([program, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("make")])
def test_make_knows_the_targets_on_the_pages(command):
    done = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def follow(tutorial: str, folder: Path) -> None:
    """Do what the blocks of a page say, one after the other, in one folder."""
    for language, text in re.findall(r"```(python|console)\n(.*?)```", tutorial, re.DOTALL):
        lines = [line[2:].split() for line in text.splitlines() if line.startswith("$ ")]
        programs = [[Path(sys.executable).with_name(words[0]), *words[1:]] for words in lines]
        for command in [[sys.executable, "-c", text]] if language == "python" else programs:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stderr}"


def sections(*left_out: str) -> str:
    """The tutorial without some of its sections."""
    head, *rest = TUTORIAL.read_text(encoding="utf-8").split("\n## ")
    assert set(left_out) <= {part.split("\n")[0] for part in rest}
    return "\n## ".join([head, *(part for part in rest if part.split("\n")[0] not in left_out)])


def test_the_tutorial_leads_from_a_table_to_predictions(tmp_path):
    follow(sections(*LONG), tmp_path)
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 41
    assert "north" in (tmp_path / "model" / "CARD.md").read_text()


@pytest.mark.slow
def test_the_tutorial_leads_from_a_table_to_a_report(tmp_path):
    follow(sections(), tmp_path)
    assert (tmp_path / "comparison" / "study.json").is_file()
    assert "north" in (tmp_path / "report.html").read_text(encoding="utf-8")


ROOMS = "answers clients data estimator insight mixers models networks report saved selection study transforms weights"
PACKAGES = ["", *(f".{room}" for room in ROOMS.split())]


@pytest.mark.parametrize("package", [f"confrere{name}" for name in PACKAGES])
def test_every_public_name_is_in_the_reference(package):
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    names = set(importlib.import_module(package).__all__) - {"__version__"}
    modules = {
        "clients",
        "data",
        "insight",
        "mixers",
        "models",
        "networks",
        "selection",
        "splits",
        "stopping",
        "testing",
        "transforms",
        "weights",
    }
    constants = {"METRICS", "metrics_of"}  # of a module whose members are all listed
    assert names
    assert [name for name in sorted(names - modules - constants) if not re.search(rf"\b{name}\b", text)] == []
    assert [name for name in sorted(names & modules) if not re.search(rf"\.{name}\b", text)] == []


def test_links_between_pages_lead_somewhere():
    for page in (*PAGES, TUTORIAL):
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "images").iterdir())
    assert pictures
    assert all(picture.stat().st_size < 200_000 for picture in pictures)


def test_every_command_on_the_pages_is_tried():
    assert {c.split()[0] for c in commands()} == {"confrere", "make"}
