"""`confrere compare`, `run`, `resume` and `init`: comparisons, from options or from a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import inputs, processes
from confrere.cli.common import for_people, print_json, progress_bar, start_jax
from confrere.cli.reading import Label, Reading, SiloColumn, with_reading
from confrere.plural import plural

Report = Annotated[bool, typer.Option("--report/--no-report", help="Write report.html into the folder of the run.")]
Out = Annotated[Path, typer.Option(help="The folder for the run; a new one.")]


@with_reading
def compare(
    data: inputs.Data,
    reading: Reading,
    user: Annotated[list[str] | None, typer.Option(help="For whom: silos by name, or all.")] = None,
    algorithms: Annotated[
        list[str] | None,
        typer.Option(
            help="What is compared (by default auto,ridge_local,fedavg,weight_erosion; "
            "local,fedavg,fine_tuned,weight_erosion with --model mlp)."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Random splits of every silo into halves.")] = 10,
    out: Out = Path("confrere-run"),
    model: inputs.ModelName = "linear",
    budget: inputs.Budget = None,
    compress: inputs.Compress = None,
    report: Report = True,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Which algorithm is best for each silo? Tuned on training rows, with paired differences and intervals.

    Everything is kept in the folder --out: a run that is interrupted goes on with `confrere resume`.
    """
    with for_people():
        start_jax()
        from confrere.runs.config import Config, checked

        given: dict[str, Any] = {
            "data": reading.part(data),
            "study": {"model": model, "seeds": seeds, "budget": budget, "compress": compress},
        }
        users, named = inputs.apart(user), inputs.known_algorithms(algorithms)
        if users and users != ("all",):
            given["study"]["users"] = list(users)
        if named:
            given["study"]["algorithms"] = list(named)
        config: Config = checked(given, "", Path("the command line")).beside(Path.cwd())
        carry_out(lambda runs, progress: runs.run(config, out, progress), report, json, quiet)


def run(
    file: Annotated[Path, typer.Argument(help="A study.toml; `confrere init` writes one.", show_default=False)],
    out: Out = Path("confrere-run"),
    budget: inputs.Budget = None,
    compress: inputs.Compress = None,
    number: processes.Number = 1,
    process: processes.Process = None,
    meet: processes.Meet = None,
    report: Report = True,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """The comparison that a file describes, in one process or shared by several, on one machine or on many."""
    with for_people():
        start_jax()
        from confrere.runs.config import read_config, told_by_line

        config = read_config(file)
        chosen = {name: value for name, value in (("budget", budget), ("compress", compress)) if value is not None}
        config = config.model_copy(update={"study": config.study.model_copy(update=chosen)})
        with (
            told_by_line(file),
            processes.shared_by(number, process, meet, ["run", str(file), "--out", str(out)]) as first,
        ):
            carry_out(lambda runs, progress: runs.run(config, out, progress), report, json, quiet, first)


def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    number: processes.Number = 1,
    process: processes.Process = None,
    meet: processes.Meet = None,
    report: Report = True,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Continue a run that was interrupted; it ends with the same numbers, to the last digit."""
    with for_people():
        start_jax()
        with processes.shared_by(number, process, meet, ["resume", str(folder)]) as first:
            carry_out(lambda runs, progress: runs.resume(folder, progress), report, json, quiet, first)


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("study.toml"),
    data: Annotated[str, typer.Option(help="The data it names.")] = "titanic",
    label: Label = None,
    silo: SiloColumn = None,
    json: inputs.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Write the file and say nothing.")] = False,
) -> None:
    """Write a commented study.toml, ready to run on the Titanic or on your own table."""
    with for_people():
        from confrere.runs.template import seen_from, template

        if file.exists():
            raise ValueError(f"{file} is there already: choose another name")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(template(seen_from(file, data), label, silo), encoding="utf-8")
        if json:
            print_json({"file": str(file)})
        elif not quiet:
            print(f"{file} is written. Run it with: confrere run {file}")


def carry_out(begin: Any, wanted: bool, json: bool, quiet: bool, first: bool = True) -> None:
    """Run with a progress bar, show what came out, and write the report; of several processes the first one does."""
    from confrere.cli.report import write
    from confrere.runs import run as runs
    from confrere.runs.summary import summary

    with progress_bar("Experiments", hidden=quiet or json) as progress:
        finished = begin(runs, progress)
    if not first:
        return
    found = summary(finished)
    if not json:
        show(found, quiet)
    page = write(finished, quiet or json) if wanted else None
    if json:
        print_json(found | {"report": None if page is None else str(page)})
    elif page is not None:
        print(f"Report: {page}")


def show(found: dict[str, Any], quiet: bool) -> None:
    """Means by user, and differences with training alone and with FedAvg."""
    from confrere.cli.comparison_tables import show_differences, show_means, without_repeats

    if not quiet:
        for note in found["notes"]:
            print(f"note: {note}")
    for name, value in found["overridden"].items():
        print(f"chosen by hand: {name} {value}")
    for algorithm, why in found["stopped"].items():
        print(f"{algorithm} was {why}")
    metrics = " / ".join(found["metrics"])
    splits = plural(found["seeds"], "split")
    show_means(f"{metrics} on the user's test rows, mean over {splits}, no intervals", found["users"])
    for algorithm, differences in without_repeats(found["differences"]).items():
        show_differences(f"{algorithm} minus the other, 95 % intervals", differences)
    print(f"Run: {found['folder']}")
