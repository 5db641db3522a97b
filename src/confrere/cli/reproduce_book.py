"""`confrere reproduce book`: the exercises of the book on FL networks, run again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from confrere.cli.common import console, for_people, print_json, progress_bar, start_jax, status
from confrere.cli.reproduce import Json, Quiet, drawing_into
from confrere.reproduce.book.numbers import Reference, flat


def book(
    assignment: Annotated[str, typer.Option(help="The name of one assignment, or all.")] = "all",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for a page and figures (by default confrere-report with all; none with --json)."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The exercises of "Federated Learning: From Theory to Practice" on the weather stations of Finland.

    Every number is printed beside what the author's notebook printed, in double precision. The weather is read from
    CONFRERE_DATA/fmi_weather. Without --assignment all of them run, in about a minute, and the stations' networks and
    the progress of every algorithm are drawn.
    """
    with for_people():
        from confrere.reproduce.book import ASSIGNMENTS, run_assignments

        if assignment not in (*ASSIGNMENTS, "all"):
            raise typer.BadParameter(f"{assignment!r} is none of all, {', '.join(ASSIGNMENTS)}")
        start_jax(double=True)
        names = ASSIGNMENTS if assignment == "all" else (assignment,)
        with needing_sklearn(), progress_bar("Assignments", hidden=quiet or json) as progress:
            report = run_assignments(names, progress)
        if json:
            print_json(report)
        else:
            show(report)
        if out is not None or (assignment == "all" and not json):
            folder = out or Path("confrere-report")
            with status("Drawing the figures", hidden=quiet or json), drawing_into(folder):
                from confrere.reproduce.book.figures import draw

                page = draw(report, folder)
            if not json:
                print(f"Figures: {page}")


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
