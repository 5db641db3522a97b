"""The commands, and what they share: the help, the version, errors and exit codes.

Heavy imports wait inside the commands, so that `confrere --version` and `--help` answer at once.
"""

from typing import Annotated

import typer

from confrere._version import __version__
from confrere.cli import (
    bench,
    check,
    compare,
    demo,
    deploy,
    doctor,
    explain,
    feedback,
    footprint,
    hub,
    monitor,
    predict,
    report,
    reproduce,
    reproduce_book,
    reproduce_waffle,
    rewards,
    select,
    similarity,
    site,
    train,
)

YOURS, STUDIES, SITES = "Your own data", "Studies in a folder", "Several hospitals, each on its own machine"
ABOUT = "About confrere"
TABLE = "patients.csv --label died --silo hospital"
MANUAL = "\n\n".join([
    "Personalised collaborative learning: silos train together, no row leaves its silo, and each ends with the model "
    "that is best for its own population.",
    "DATA is a table with a column that names the silo, a folder or several files with one silo each (CSV or Parquet), "
    "or a data set: titanic, heart_disease, breast_cancer, diabetes. A first hour with a table of your own:",
    f"  confrere check {TABLE}\n  confrere compare {TABLE} --out run\n"
    f"  confrere feedback {TABLE} --user north\n  confrere select {TABLE} --user north\n"
    f"  confrere train {TABLE} --user north --out model\n  confrere predict model new-patients.csv\n"
    "  confrere monitor model last-month.csv",
    "`check` trains nothing: it says what was understood and what to mend. `compare` asks whether learning together is "
    "worth it, and writes a report to read. `feedback` says what could be "
    "better in a silo's own data, `select` whom it might learn with, before training. `train` keeps "
    "the model of one silo; `predict` and `monitor` use it.",
    "Every command has --help with an example, --json for programs and --quiet. Exit codes: 0 all went well, 1 it "
    "failed, 2 the command was not understood (an unknown option, algorithm or model), 3 data was not found (a table, "
    "rows, a study.toml, a model or a run that is not there).",
])  # fmt: skip

app = typer.Typer(
    name="confrere",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help=MANUAL,
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


app.command("check", rich_help_panel=YOURS, epilog=f"Example: confrere check {TABLE}")(check.check)
app.command("compare", rich_help_panel=YOURS, epilog=f"Example: confrere compare {TABLE} --user all")(compare.compare)
app.command("feedback", rich_help_panel=YOURS, epilog=f"Example: confrere feedback {TABLE} --user north")(
    feedback.feedback
)
app.command("select", rich_help_panel=YOURS, epilog=f"Example: confrere select {TABLE} --user north --method all")(
    select.select
)
app.command(
    "similarity", rich_help_panel=YOURS, epilog=f"Example: confrere similarity {TABLE} --user north --out map.html"
)(similarity.similarity)
app.command("train", rich_help_panel=YOURS, epilog=f"Example: confrere train {TABLE} --user north --out model")(
    train.train
)
app.command("explain", rich_help_panel=YOURS, epilog=f"Example: confrere explain {TABLE} --user north --about south")(
    explain.explain
)
app.command(
    "predict", rich_help_panel=YOURS, epilog="Example: confrere predict model new-patients.csv --out predictions.csv"
)(predict.predict)
app.command("monitor", rich_help_panel=YOURS, epilog="Example: confrere monitor model last-month.csv")(monitor.monitor)
app.command(
    "init", rich_help_panel=STUDIES, epilog="Example: confrere init study.toml --data patients.csv --label died"
)(compare.init)
app.command("run", rich_help_panel=STUDIES, epilog="Example: confrere run study.toml --out my-run")(compare.run)
app.command("resume", rich_help_panel=STUDIES, epilog="Example: confrere resume my-run")(compare.resume)
app.command("report", rich_help_panel=STUDIES, epilog="Example: confrere report my-run --user north --out north.html")(
    report.report
)
app.command("rewards", rich_help_panel=STUDIES, epilog="Example: confrere rewards my-run --user north --budget 1000")(
    rewards.rewards
)
app.command("footprint", rich_help_panel=STUDIES, epilog="Example: confrere footprint my-run --country FRA")(
    footprint.footprint
)
app.add_typer(hub.app, name="hub", rich_help_panel=SITES)
app.add_typer(site.app, name="site", rich_help_panel=SITES)
app.command("deploy", rich_help_panel=SITES, epilog="Example: confrere deploy study.toml --hub hub")(deploy.deploy)
app.command("status", rich_help_panel=SITES, epilog="Example: confrere status --hub hub --json")(deploy.status)
app.command("stop", rich_help_panel=SITES, epilog="Example: confrere stop 3f2a9c --hub hub")(deploy.stop)
app.command("fetch", rich_help_panel=SITES, epilog="Example: confrere fetch 3f2a9c --folder north --out model")(
    deploy.fetch
)
app.command("demo", rich_help_panel=ABOUT, epilog="Example: confrere demo --seeds 10 --out my-report")(demo.demo)
app.command("bench", rich_help_panel=ABOUT, epilog="Example: confrere bench --task L --json")(bench.bench)
app.command("doctor", rich_help_panel=ABOUT, epilog="Example: confrere doctor --json")(doctor.doctor)
app.add_typer(reproduce.app, name="reproduce", rich_help_panel=ABOUT)
reproduce.app.command(
    "waffle", epilog="Example: confrere reproduce waffle --distribution B --rows 200 --lr 0.01 --seeds 3"
)(reproduce_waffle.waffle)
reproduce.app.command("book", epilog="Example: confrere reproduce book --assignment flavours")(reproduce_book.book)
