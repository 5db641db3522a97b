"""`confrere report`: the page on a finished run, written again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import footprint, inputs
from confrere.cli.common import for_people, print_json, progress_bar, start_jax


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a run, or of a model.", show_default=False)],
    user: Annotated[
        list[str] | None, typer.Option(help="Only these users (by default all of the run).", show_default=False)
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(help="Columns to look at groups by (by default sex and age).", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write (by default report.html in the folder).", show_default=False)
    ] = None,
    country: footprint.Country = None,
    watts: footprint.Watts = None,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """The report of a finished run: one HTML file that opens anywhere. Of a saved model, its card is shown.

    `compare`, `run` and `resume` write it by themselves; this writes it again, for some users or by other columns.
    """
    with for_people():
        if is_model(folder):
            show_card(folder, out, json)
            return
        start_jax()
        from confrere.runs.run import opened

        page = write(opened(folder), json or quiet, inputs.apart(user), inputs.apart(groups), out, country, watts)
        if json:
            print_json({"folder": str(folder), "report": str(page)})
        else:
            print(f"Report: {page}")


def write(
    finished: Any, hidden: bool, users: tuple[str, ...] = (), groups: tuple[str, ...] = (), out: Path | None = None,
    country: str | None = None, watts: float | None = None,
) -> Path:  # fmt: skip
    """Write the report of a run, with a progress bar."""
    from confrere.runs.report import write_run_report

    with progress_bar("Report", hidden=hidden) as progress:
        return write_run_report(finished, users or None, groups or None, out, progress, country, watts).resolve()


def is_model(folder: Path) -> bool:
    """Whether a folder holds a model that `confrere train` saved."""
    from confrere.saved.folder import MANIFEST

    return (folder / MANIFEST).is_file()


def show_card(folder: Path, out: Path | None, json: bool) -> None:
    """The model card of a saved model; with `out`, as a file."""
    from confrere.disk import write_whole
    from confrere.saved.card import model_card
    from confrere.saved.folder import read_manifest

    card = model_card(read_manifest(folder))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(out, card)
    if json:
        print_json({"folder": str(folder), "card": card, "report": None if out is None else str(out.resolve())})
    else:
        print(card if out is None else f"Model card: {out.resolve()}")
