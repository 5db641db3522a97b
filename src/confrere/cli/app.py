"""The commands, and what they share: the help, the version, errors and exit codes.

Heavy imports wait inside the commands, so that `confrere --version` and `--help` answer at once.
"""

from typing import Annotated

import typer

from confrere._version import __version__
from confrere.cli import bench, check, compare, demo, doctor, monitor, predict, report, reproduce, train

app = typer.Typer(
    name="confrere",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="""Personalised collaborative learning: silos train together, no row leaves its silo, and each ends with the
    model that is best for its own population.

    Exit codes: 0 all went well, 1 it failed, 2 the command was not understood, 3 data was not found.""",
    epilog="Example: confrere demo",
)


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        print(f"confrere {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """What every command shares."""


app.command("demo", epilog="Example: confrere demo --seeds 10 --out my-report")(demo.demo)
app.command("check", epilog="Example: confrere check patients.csv --label died --silo hospital")(check.check)
app.command(
    "train", epilog="Example: confrere train patients.csv --label died --silo hospital --user north --out model"
)(train.train)
app.command("compare", epilog="Example: confrere compare patients.csv --label died --silo hospital --user all")(
    compare.compare
)
app.command("init", epilog="Example: confrere init study.toml --data patients.csv --label died --silo hospital")(
    compare.init
)
app.command("run", epilog="Example: confrere run study.toml --out my-run")(compare.run)
app.command("resume", epilog="Example: confrere resume my-run")(compare.resume)
app.command("report", epilog="Example: confrere report my-run --user north --out north.html")(report.report)
app.command("predict", epilog="Example: confrere predict model new-patients.csv --out predictions.csv")(predict.predict)
app.command("monitor", epilog="Example: confrere monitor model last-month.csv")(monitor.monitor)
app.command("bench", epilog="Example: confrere bench --task L --json")(bench.bench)
app.command("doctor", epilog="Example: confrere doctor --json")(doctor.doctor)
app.add_typer(reproduce.app, name="reproduce")
