"""`confrere footprint`: what a finished run cost, and what its algorithms reached for that."""

from pathlib import Path
from typing import Annotated

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, progress_bar

Country = Annotated[
    str | None,
    typer.Option(help="Whose electricity, as in FRA, for CO2 (needs the extra footprint).", show_default=False),
]
Watts = Annotated[
    float | None, typer.Option(min=0, help="What the processor draws at full load.", show_default=False)
]  # fmt: skip


def footprint(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    country: Country = None,
    watts: Watts = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="A picture to write: accuracy against bytes (PNG, PDF, SVG).", show_default=False),
    ] = None,
    operations: Annotated[
        bool, typer.Option(help="Count the operations of training, for which its data must be there.")
    ] = True,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """What a finished run cost in bytes, processor seconds, energy and CO2, and what was reached for that.

    Bytes are exact. Energy is measured where the processor tells it, else estimated, and CO2 always is: what was
    assumed is said.
    """
    with for_people():
        from confrere.cli.report import is_model

        if is_model(folder):
            raise ValueError(
                f"{folder} holds a model, not a run: its card (confrere report {folder}) says what left silos"
            )
        from confrere.runs.footprint import run_footprint

        with progress_bar("Operations", hidden=quiet or json or not operations) as progress:
            found = run_footprint(folder, country, watts, operations, progress)
        if plot is not None:
            plot.parent.mkdir(parents=True, exist_ok=True)
            found.plot(plot)
        if json:
            print_json(found.to_dict() | {"folder": str(folder), "plot": None if plot is None else str(plot)})
            return
        show(found, quiet)
        if plot is not None:
            print(f"Picture: {plot}")


def show(found: object, quiet: bool) -> None:
    """The table, and what is to be known about it."""
    from rich.table import Table

    from confrere.insight.footprint.compared import RunFootprint, table

    assert isinstance(found, RunFootprint)
    titles, rows = table(found)
    work = next((k for k, title in enumerate(titles) if title.startswith("CPU")), len(titles))
    for heading, some in (("bytes of one run", range(1, work)), ("work of one run", range(work, len(titles)))):
        if not some:
            continue
        shown = Table(title=f"What was reached, and the {heading} (95 % intervals)")
        shown.add_column("", no_wrap=True)
        for k in some:
            shown.add_column(titles[k], justify="right")
        for row in rows:
            shown.add_row(row[0], *(row[k] for k in some))
        console().print(shown)
    for price in found.prices:
        if price.stopped:
            print(f"{price.algorithm} was {price.stopped}")
    for words in found.words if not quiet else ():
        print(words)
