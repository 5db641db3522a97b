"""`confrere demo`: the main job on real data that the install brings."""

from pathlib import Path
from typing import Annotated

import typer

from confrere.cli.common import for_people, print_json, progress_bar, start_jax, status


def demo(
    seeds: Annotated[int, typer.Option(min=1, help="Random splits to average over.")] = 20,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("confrere-report"),
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Four groups of Titanic passengers as silos: does learning together help each of them?

    Weight Erosion against training alone and against FedAvg, each silo being the user once.
    """
    with for_people():
        start_jax()
        from confrere.cli import tables
        from confrere.cli.reproduce import draw
        from confrere.reproduce import weight_erosion as paper

        with progress_bar("Random splits", hidden=quiet or json) as progress:
            cells = paper.cells_report(paper.many_seeds(("age-strict", "age-some"), seeds, progress))
        with status("Drawing the report", hidden=quiet or json):
            silos, results = paper.single_run("age-strict", 0)
            report = paper.single_run_report("age-strict", 0, results)
            page = draw("age-strict", 0, silos, results, report, out)
        if json:
            print_json({**cells, "report": str(page)})
            return
        tables.show_cells(cells)
        print(f"Report: {page.resolve()}")
