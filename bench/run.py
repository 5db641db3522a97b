"""Run the comparison: `python bench/run.py [--quick] [--only a,b] [--tasks L,S,C] [--repeats N]
[--out bench/RESULTS.md]`.

Every contestant is a script that prints one line of JSON (see `tasks.py`). Further sections of the page come
from `bench/sections/*.py`: each has a function `section(quick: bool) -> str` that gives markdown. `--only`
may name them too, by the name of the file: they are then written in their places and the rest of the page stays. The
tables of some contestants only are shown, and not written over a page that has them all. With some of the tasks and no
`--only`, all contestants run on them, no section does, and their tables are written in their places.
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import report
from confrere.speed import machine
from contestants import CONTESTANTS, QUICK_ROUNDS, Contestant
from environments import last_words, prepare
from results import Comparison, Measurement, Result
from tasks import TASKS

HERE = Path(__file__).resolve().parent
REPEATS = 5
TIMEOUT_S = 1200


def interpreter(contestant: Contestant) -> tuple[str | None, str]:
    """The interpreter for a contestant, or None and the reason."""
    if not (HERE / contestant.script).exists():
        return None, f"bench/{contestant.script} is absent"
    if contestant.environment is None:
        return sys.executable, ""
    environment = prepare(contestant.environment)
    return (str(environment.python), "") if environment.python else (None, environment.reason)


def measure(contestant: Contestant, python: str, task: str, rounds: int) -> Measurement:
    """Run one process to its end and read its line. Raises RuntimeError with the reason if there is none."""
    command = [python, str(HERE / contestant.script), task, "--rounds", str(rounds)]
    output, errors, code = _finish(command, own=contestant.environment is None)
    line = next((text for text in reversed(output.splitlines()) if text.startswith('{"contestant"')), None)
    if code or line is None:
        raise RuntimeError(last_words(errors or output))
    return Measurement(**json.loads(line))


def _finish(command: list[str], *, own: bool) -> tuple[str, str, int]:
    """Run a command in a process group of its own, so that what it started ends with it."""
    inherited = {key: value for key, value in os.environ.items() if own or key != "PYTHONPATH"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=inherited | {"BENCH_STARTED": repr(time.time())},
    )
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not finished after {TIMEOUT_S} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return output, errors, process.returncode


def rounds_of(contestant: Contestant, task: str, *, quick: bool) -> int:
    """How many rounds to time."""
    rounds = contestant.rounds.get(task, TASKS[task].rounds)
    return min(rounds, QUICK_ROUNDS[task]) if quick else rounds


def turns(contestants: list[Contestant], task: str, repeats: int) -> Iterator[Contestant]:
    """Who runs when: all once, then all again in a rotated order, each as often as it may."""
    for repeat in range(repeats):
        shift = repeat % max(len(contestants), 1)
        for contestant in contestants[shift:] + contestants[:shift]:
            if repeat < contestant.repeats.get(task, repeats):
                yield contestant


def compare(contestants: list[Contestant], tasks: list[str], repeats: int, *, quick: bool) -> Comparison:
    """Run everything, saying what is being done."""
    found = {contestant.name: interpreter(contestant) for contestant in contestants}
    results: list[Result] = []
    for task in tasks:
        there = [c for c in contestants if task in c.tasks]
        by_name = {c.name: Result(c, task, reason=found[c.name][1]) for c in there}
        for contestant in turns(there, task, 1 if quick else repeats):
            result, python = by_name[contestant.name], found[contestant.name][0]
            if python is None or result.reason:
                continue
            try:
                run = measure(contestant, python, task, rounds_of(contestant, task, quick=quick))
            except RuntimeError as error:
                result.reason = str(error)
                say(f"{task} {contestant.name}: {result.reason}")
                continue
            result.runs.append(run)
            say(f"{task} {contestant.name}: {report.figure(result.medians_ms[-1])} ms per round")
        results.extend(by_name.values())
    return Comparison(results, quick)


def sections(only: set[str], *, quick: bool) -> Iterator[str]:
    """The markdown of every file in `bench/sections`. One that fails says so in its place."""
    for file in sorted((HERE / "sections").glob("[!_]*.py")):
        if only and file.stem not in only:
            continue
        say(f"section {file.stem}")
        try:
            yield _load(file).section(quick)
        except Exception as error:  # what was measured so far is not lost to one section
            say(f"section {file.stem}: {error!r}")
            yield f"## {file.stem}\n\nThis section did not run: {last_words(repr(error))}"


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_section_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def say(text: str) -> None:
    """Progress, on the standard error."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Read the command line, run, write the page."""
    parser = argparse.ArgumentParser(description="Compare confrere with its peers.")
    parser.add_argument("--quick", action="store_true", help="one process each, few rounds")
    parser.add_argument("--only", default="", help="names of contestants and sections, separated by commas")
    parser.add_argument("--tasks", default=",".join(TASKS), help="tasks, separated by commas (default: all)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"turns of the contestants (default: {REPEATS})")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md", help="the page to write")
    given = parser.parse_args()
    only = set(filter(None, given.only.split(",")))
    tasks = given.tasks.split(",")
    known = {c.name for c in CONTESTANTS} | {file.stem for file in (HERE / "sections").glob("[!_]*.py")}
    if unknown := sorted(only - known) + sorted(set(tasks) - set(TASKS)):
        there = f"there are {', '.join(sorted(known))}, and the tasks {', '.join(TASKS)}"
        parser.error(f"unknown: {', '.join(unknown)}; {there}")
    facts = machine.facts()
    contestants = [c for c in CONTESTANTS if (not only or c.name in only) and set(c.tasks) & set(tasks)]
    comparison = compare(contestants, tasks, given.repeats, quick=given.quick)
    some = set(tasks) != set(TASKS)
    found = sections(only, quick=given.quick) if only or not some else ()
    if only and given.out.exists():
        page = report.spliced(given.out.read_text(), found)
    elif some and given.out.exists():
        page = report.renewed(given.out.read_text(), comparison, facts["load before the run"])
    else:
        page = report.render(comparison, facts, found)
    given.out.write_text(page)
    print(report.summary(comparison))


if __name__ == "__main__":
    main()
