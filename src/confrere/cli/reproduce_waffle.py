"""`confrere reproduce waffle`: Table 1 of the WAFFLE paper, run again."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from confrere.cli.common import console, for_people, print_json, progress_bar, start_jax, status
from confrere.cli.reproduce import FigureFolder, Json, Quiet, drawing_into

if TYPE_CHECKING:
    from confrere.reproduce.waffle.cells import Store
    from confrere.reproduce.waffle.setting import Setting

DataChoice = Literal["mnist", "fashion_mnist", "cifar10"]
DistributionChoice = Literal["A", "B", "C", "A*", "B*", "all"]
ModelChoice = Literal["softmax", "lenet5", "dla"]


def waffle(
    data: Annotated[DataChoice, typer.Option(help="The images.")] = "mnist",
    distribution: Annotated[
        DistributionChoice, typer.Option(help="A: alike; B, C: other labels; *: and labels permuted.")
    ] = "all",
    model: Annotated[ModelChoice, typer.Option(help="Softmax regression, LeNet-5 or DLA.")] = "softmax",
    agents: Annotated[int, typer.Option(min=1, help="How many agents; Alice is the first.")] = 10,
    rows: Annotated[int, typer.Option(min=1, help="Training images of each agent.")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each one pass over every agent's images.")] = 100,
    lr: Annotated[float, typer.Option(min=0, help="Learning rate.")] = 0.01,
    batch: Annotated[int | None, typer.Option(min=1, help="Images of a step (by default as in the paper).")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 1 to this one.")] = 3,
    methods: Annotated[str, typer.Option(help="Names with commas between, or all (default: those of Table 1).")] = "",
    width: Annotated[int | None, typer.Option(min=1, help="Width of the DLA.")] = None,
    penalties: Annotated[
        str, typer.Option(help="Choose Weight Erosion's penalty instead: candidates for p_d x rounds, with commas.")
    ] = "",
    store: Annotated[Path | None, typer.Option(help="Folder for finished cells, which are not run again.")] = None,
    out: FigureFolder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The WAFFLE paper's Table 1: Alice's accuracy with every method, beside what was published.

    The images are read from CONFRERE_DATA, else downloaded. The paper's own size is --model lenet5 --rows 6000 --lr
    0.1: hours on two cores; with --store it may be interrupted. `best` is the best round on test images, as published;
    `chosen` is the round that is best on validation images. With --penalties it is not the table that is run, but
    Weight Erosion with every candidate, of which one is chosen on validation images.
    """
    with for_people():
        start_jax()
        from confrere.reproduce.waffle.cells import Store
        from confrere.reproduce.waffle.methods import chosen
        from confrere.reproduce.waffle.setting import DISTRIBUTIONS, Setting
        from confrere.reproduce.waffle.table import run_table, table_report

        wanted = chosen(tuple(name.strip() for name in methods.split(",") if name.strip()), model)
        setting = Setting(data, "A", model, agents, rows, rounds, lr, 1, width, batch)
        which = DISTRIBUTIONS if distribution == "all" else (distribution,)
        numbers = range(1, seeds + 1)
        if penalties:
            report = try_penalties(setting, which, penalties, numbers, Store(store), quiet or json)
            print_json(report) if json else show_penalties(report)
            return
        with progress_bar("Rounds", hidden=quiet or json) as progress:
            cells = run_table(setting, which, wanted, numbers, Store(store), progress)
        report = table_report(setting, cells, numbers)
        if json:
            print_json(report)
        else:
            show(report)
        if out is not None or not json:
            folder = out or Path("confrere-report")
            with status("Drawing the figures", hidden=quiet or json), drawing_into(folder):
                from confrere.reproduce.waffle.figures import draw

                paths = draw(cells, folder, f"{data}-{model}")
            if not json:
                print(f"Figures: {paths[0].parent} ({len(paths)} pictures)")


def try_penalties(
    setting: "Setting", distributions: Sequence[str], penalties: str, seeds: Sequence[int], store: "Store", quiet: bool
) -> dict[str, Any]:
    """Weight Erosion with every candidate."""
    from confrere.reproduce.waffle.penalties import penalties_report, run_penalties

    candidates = [number(word) for word in penalties.split(",")]
    with progress_bar("Rounds", hidden=quiet) as progress:
        tried = run_penalties(setting, distributions, candidates, seeds, store, progress)
    return penalties_report(setting, tried, seeds)


def number(word: str) -> float:
    """A candidate as it was typed."""
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"--penalties wants numbers with commas between, such as 0.6,0.8,1: not {word!r}") from None


def show_penalties(report: dict[str, Any]) -> None:
    """The candidates down, distributions across."""
    first, last = (f"{100 * share:.0f}" for share in report["window"])
    table = Table(
        title="Weight Erosion's penalty p_d, times the rounds",
        caption="rounds (%) after which the others' weights are zero; accuracy on Alice's validation images at her "
        f"best round. Chosen: the best accuracy of those that fade at {first} to {last} % everywhere",
    )
    table.add_column("penalty")
    for distribution in next(iter(report["candidates"].values())):
        table.add_column(distribution, justify="right")
    for penalty, row in report["candidates"].items():
        table.add_row(penalty, *map(penalty_entry, row.values()))
    console().print(table)
    chosen = report["chosen"]
    print("No candidate fades in time everywhere: try others." if chosen is None else f"Chosen: {chosen:g} / rounds")


def penalty_entry(cell: dict[str, float | None]) -> str:
    """When the others have gone, and the accuracy."""
    when = "never" if cell["faded"] is None else f"{100 * cell['faded']:.0f} %"
    return f"{when}, {cell['validation']:.4f}"


def show(report: dict[str, Any]) -> None:
    """The table: methods down, distributions across."""
    setting, seeds = report["setting"], len(report["seeds"])
    table = Table(
        title=f"Alice's accuracy: {setting['data']}, {setting['model']}, {setting['agents']} agents with "
        f"{setting['rows']} images, {setting['rounds']} rounds, {seeds} seed{'s' if seeds > 1 else ''}",
        caption="best round on test images, last round, round chosen on validation images; "
        "(published, with LeNet-5 or DLA on all images)",
    )
    table.add_column("")
    for distribution in report["cells"]:
        table.add_column(distribution, justify="right", no_wrap=True)
    for method in next(iter(report["cells"].values())):
        table.add_row(method, *(entry(row[method], seeds) for row in report["cells"].values()))
        table.add_section()
    console().print(table)


def entry(cell: dict[str, Any], seeds: int) -> str:
    """One cell in four lines; a deviation where there are several seeds."""
    best = f"{cell['best']['mean']:.3f}" + (f" ± {cell['best']['std']:.3f}" if seeds > 1 else "")
    said = "" if cell["published"] is None else f"\n({cell['published']:.3f})"
    return f"{best}\n{cell['last']['mean']:.3f}\n{cell['chosen']['mean']:.3f}{said}"
