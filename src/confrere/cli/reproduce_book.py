"""`confrere reproduce book`: the exercises of the book on FL networks, run again."""

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.table import Table

from confrere.cli.common import console, for_people, start_jax
from confrere.cli.reproduce import Json, Quiet, run_and_tell
from confrere.reproduce.book.numbers import Reference, flat


def book(
    assignment: Annotated[str, typer.Option(help="The name of one assignment, or all.")] = "all",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The exercises of "Federated Learning: From Theory to Practice" on the weather stations of Finland.

    Every number is printed beside what the author's notebook printed, in double precision. The weather is read from
    CONFRERE_DATA/fmi_weather. Without --assignment all of them run, in a minute or two.
    """
    with for_people():
        from confrere.reproduce.book import ASSIGNMENTS, run_assignments

        if assignment not in (*ASSIGNMENTS, "all"):
            raise typer.BadParameter(f"{assignment!r} is none of all, {', '.join(ASSIGNMENTS)}")
        start_jax(double=True)
        names = ASSIGNMENTS if assignment == "all" else (assignment,)
        with needing_sklearn():
            run_and_tell("Assignments", lambda progress: run_assignments(names, progress), show, json, quiet)


@contextlib.contextmanager
def needing_sklearn() -> Iterator[None]:
    """Say what to install where a library is missing."""
    try:
        yield
    except ModuleNotFoundError as problem:
        raise ValueError(f"the exercises need {problem.name}: pip install 'confrere[sklearn]'") from problem


def show(report: dict[str, Any]) -> None:
    """A table per assignment: our number, the notebook's, and that of another program on the present file."""
    for name, numbers in report["assignments"].items():
        table = Table(title=name, title_justify="left")
        table.add_column("", no_wrap=True)
        for title in ("ours", "notebook", "present file", "agrees"):
            table.add_column(title, justify="right")
        references = report["references"][name]
        for path, value in flat(numbers):
            reference = Reference(**references[path]) if path in references else Reference()
            table.add_row(path, written(value), *map(as_it_is, reference[:2]), agreement(reference, value))
        console().print(table)


def written(value: float) -> str:
    """A number as the notebooks print it."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.6f}" if abs(value) >= 0.01 else f"{value:.6g}"


def as_it_is(value: float | None) -> str:
    """A reference, with the digits that it has."""
    return "" if value is None else f"{value:.12g}"


def agreement(reference: Reference, value: float) -> str:
    """Whether a number is what it should be."""
    verdict = reference.verdict(value)
    if verdict is None:
        return ""
    return "NO" if not verdict else "yes" if reference.within is None else "in range"
