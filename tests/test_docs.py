"""What the README and the documentation tell people to type works."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


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
def test_python_on_a_page_runs(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for name, text in blocks("python"):
        if name == page:
            exec(compile(text, name, "exec"), namespace)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("confrere")])
def test_commands_on_the_pages_run(command, tmp_path):
    words = command.split()
    program = Path(sys.executable).with_name(words[0])
    done = subprocess.run([program, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("make")])
def test_make_knows_the_targets_on_the_pages(command):
    done = subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_on_the_pages_is_tried():
    assert {c.split()[0] for c in commands()} == {"confrere", "make"}
