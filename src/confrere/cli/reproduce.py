"""`confrere reproduce`: the papers' experiments, run again."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from confrere.cli.common import for_people, print_json, progress_bar, start_jax, status

app = typer.Typer(no_args_is_help=True, help="Run a paper's experiments again.", rich_markup_mode="rich")

Progress = Callable[[int, int], None] | None
Report = dict[str, Any]
SplitChoice = Literal["age-strict", "age-some"]
SPLITS: tuple[SplitChoice, ...] = ("age-strict", "age-some")
FigureFolder = Annotated[
    Path | None, typer.Option(help="Folder for the figures (by default confrere-report; none with --json).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


@app.callback()
def several() -> None:
    """Run a paper's experiments again."""


@app.command(
    "weight-erosion",
    epilog="Example: confrere reproduce weight-erosion --split age-strict --seeds 20",
)
def weight_erosion(
    split: Annotated[
        SplitChoice | None,
        typer.Option(help="How the passengers are split (by default age-strict; both with --seeds)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="One seed in detail; 278 is the authors' own run.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Instead: the table over this many seeds.")] = None,
    out: FigureFolder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The Weight Erosion paper on the Titanic: Figures 1 and 2 for one seed, or the table over many.

    With seed 278 (the default) it is the authors' run to the digit, from their row order and initial weights, which are
    read from CONFRERE_DATA/titanic. Both the correct FedAvg and the one of the published figures are reported.
    """
    if seed is not None and seeds is not None:
        raise typer.BadParameter("give --seed or --seeds, not both")
    if seeds is not None and out is not None:
        raise typer.BadParameter("--out is for the figures of one seed; there are none with --seeds")
    with for_people():
        if seeds is not None:
            many(SPLITS if split is None else (split,), seeds, json, quiet)
        else:
            single("age-strict" if split is None else split, 278 if seed is None else seed, out, json, quiet)


def single(split: SplitChoice, seed: int, out: Path | None, json: bool, quiet: bool) -> None:
    """One seed: the JSON object, or a table and figures."""
    start_jax()
    from confrere.cli import tables
    from confrere.reproduce import weight_erosion as paper

    with status("Compiling and running the experiments", hidden=quiet or json):
        silos, results = paper.single_run(split, seed)
        report = paper.single_run_report(split, seed, results)
    if json:
        print_json(report)
    else:
        tables.show_single(report, silos.names)
    if out is not None or not json:
        with status("Drawing the figures", hidden=quiet or json):
            page = draw(split, seed, silos, results, report, out or Path("confrere-report"))
        if not json:
            print(f"Figures: {page}")


def run_and_tell(
    counted: str, run: Callable[[Progress], Report], show: Callable[[Report], None], json: bool, quiet: bool
) -> None:
    """Run with a progress bar, then print the report as JSON or show its tables."""
    with progress_bar(counted, hidden=quiet or json) as progress:
        report = run(progress)
    if json:
        print_json(report)
    else:
        show(report)


def draw(split, seed, silos, results, report, folder: Path) -> Path:
    """Figures 1 and 2 as PNG, and both with the table on an HTML page."""
    with drawing_into(folder):
        from confrere.reproduce import figures, page

        figures.draw_png(silos, results, folder, split, seed)
        return page.write_page(silos, results, report, folder / f"weight-erosion-{split}-{seed}.html")


@contextlib.contextmanager
def drawing_into(folder: Path) -> Iterator[None]:
    """Make the folder; what drawing needs and is not installed is said with what to install."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except ModuleNotFoundError as problem:
        raise ValueError(f"drawing needs {problem.name}: pip install 'confrere[plots]'") from problem


def many(splits: tuple[SplitChoice, ...], seeds: int, json: bool, quiet: bool) -> None:
    """The table over many seeds."""
    start_jax()
    from confrere.cli import tables
    from confrere.reproduce import weight_erosion as paper

    run_and_tell(
        "Seeds",
        lambda progress: paper.cells_report(paper.many_seeds(splits, seeds, progress)),
        tables.show_cells,
        json,
        quiet,
    )


@app.command("ebola", epilog="Example: confrere reproduce ebola --split age-strict --seed 278")
def ebola(
    split: Annotated[
        SplitChoice | None, typer.Option(help="Figure 1 is age-strict, 2 is age-some (by default both).")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the patients, the split and the start.")] = 278,
    out: FigureFolder = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The Ebola case study of the Weight Erosion report, on SYNTHETIC patients: the real table is private.

    Three silos by age, each the user once: Global, Weight Erosion and Local, round by round, and the weights of the
    silos. The experiment is the report's; its numbers are not.
    """
    with for_people():
        start_jax()
        from confrere.cli import tables
        from confrere.reproduce import ebola as study

        with status("Compiling and running the experiments", hidden=quiet or json):
            drawn = [study.run_split(name, seed) for name in (SPLITS if split is None else (split,))]
        reports = [study.split_report(figure) for figure in drawn]
        if json:
            print_json({"data": "synthetic", "seed": seed, "splits": {r["split"]: r for r in reports}})
        else:
            for report in reports:
                tables.show_single(report, report["silos"], tables.GLOBAL)
        if out is not None or not json:
            folder = out or Path("confrere-report")
            with status("Drawing the figures", hidden=quiet or json), drawing_into(folder):
                from confrere.reproduce import ebola_figures

                page = ebola_figures.draw(drawn, folder)
            if not json:
                print(f"Figures: {page}")


@app.command("attractor", epilog="Example: confrere reproduce attractor --seeds 5")
def attractor(
    seeds: Annotated[int, typer.Option(min=1, help="Random regression problems.")] = 20,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The local model as an attractor of Weight Erosion, and what stopping by the cone of gradients changes."""
    with for_people():
        start_jax()
        from confrere.cli.tables import show_attractor
        from confrere.reproduce.attractor import attractor as run

        run_and_tell("Problems", lambda progress: run(seeds, progress=progress), show_attractor, json, quiet)


@app.command("auto", epilog="Example: confrere reproduce auto --quick")
def auto(
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Deals of every cell (by default 20; 2 with --quick).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few cells only: to see that it works.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The study behind `auto`: which candidates it averages, on data sets kept for that choice, and where it loses.

    MNIST, CIFAR-10, heart disease and the weather are read from CONFRERE_DATA. About half an hour with 20 seeds.
    """
    with for_people():
        start_jax()
        from confrere.cli.auto_tables import show_study
        from confrere.reproduce.auto import study

        count = seeds or (2 if quick else 20)
        run_and_tell("Cells", lambda progress: study(count, quick, progress), show_study, json, quiet)


@app.command("hospitals", epilog="Example: confrere reproduce hospitals --seeds 10")
def hospitals(
    seeds: Annotated[int, typer.Option(min=1, help="Random splits of every silo into halves.")] = 20,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """`auto` beside ten fixed methods on real silos: groups of Titanic passengers, and four hospitals.

    Heart disease is read from CONFRERE_DATA, else downloaded; in both scalings. With 20 splits about ten
    minutes on two cores.
    """
    with for_people():
        start_jax()
        from confrere.cli.comparison_tables import show_hospitals
        from confrere.reproduce.hospitals import hospitals as run

        run_and_tell("Experiments", lambda progress: run(seeds, progress), show_hospitals, json, quiet)


@app.command("methods", epilog="Example: confrere reproduce methods --seeds 10 --store cells")
def methods(
    seeds: Annotated[int, typer.Option(min=1, help="Random splits of every silo into halves.")] = 10,
    store: Annotated[Path | None, typer.Option(help="Folder for finished cells, which are not run again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Every method on real silos, each tuned: groups of Titanic passengers, and four hospitals.

    Heart disease is read from CONFRERE_DATA, else downloaded. Differences are with training alone at its best. Ten
    splits take about a quarter of an hour on two cores; with --store it may be interrupted.
    """
    with for_people():
        start_jax()
        from confrere.cli.comparison_tables import show_every_method
        from confrere.reproduce.every_method import every_method as run

        run_and_tell("Experiments", lambda progress: run(seeds, progress, store), show_every_method, json, quiet)
