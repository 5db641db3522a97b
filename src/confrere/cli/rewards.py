"""`confrere rewards`: who deserves credit for the models of a finished run, and what each scheme would pay."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, progress_bar, start_jax

WIDE = 160  # letters, where nobody says how wide the terminal is
SchemeName = Literal["equal", "rounds", "rows", "weight", "ndoye", "influence", "shapley", "sure", "all"]


def rewards(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", show_default=False)],
    user: Annotated[
        list[str] | None, typer.Option(help="Only these users (by default all of the run).", show_default=False)
    ] = None,
    budget: Annotated[float, typer.Option(min=0, help="What each user has to give, in any unit.")] = 1000.0,
    scheme: Annotated[
        SchemeName, typer.Option(help="How the budget is shared out; all: every way, side by side.")
    ] = "all",
    algorithm: Annotated[
        str | None, typer.Option(help="Of the run's algorithms, by default its main one.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of resampling.")] = 0,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Who deserves credit? What every silo did in a run and was worth to a user, and shares of a budget by each scheme.

    On the first split of the run. Nothing is paid, and nothing is written: this is a ledger to read.
    """
    with for_people():
        start_jax()
        from confrere.runs.rewards import run_ledgers
        from confrere.runs.run import opened

        finished = opened(folder)
        with progress_bar("Ledgers", hidden=quiet or json) as progress:
            found = run_ledgers(finished, inputs.apart(user), budget, algorithm, seed, progress)
        if json:
            print_json({name: chosen(ledger.to_dict(), scheme) for name, ledger in found.items()})
        else:
            for ledger in found.values():
                show(ledger, scheme, quiet)


def chosen(ledger: dict[str, Any], scheme: str) -> dict[str, Any]:
    """A ledger with one scheme alone, or as it is."""
    if scheme == "all":
        return ledger
    accounts = {
        silo: account | {"paid": {scheme: account["paid"][scheme]}} for silo, account in ledger["accounts"].items()
    }
    return ledger | {"accounts": accounts, "schemes": {scheme: ledger["schemes"][scheme]}}


def show(ledger: Any, scheme: SchemeName, quiet: bool) -> None:
    """The ledger as two tables and, unless quiet, in words."""
    from confrere.insight.credit.tables import credit_in_words, payment_table

    screen = console()
    if not screen.is_terminal:
        screen = console(WIDE)
    screen.print(ledger.table())
    screen.print(payment_table(ledger, None if scheme == "all" else (scheme,)))
    if not quiet:
        for said in credit_in_words(ledger, "shapley" if scheme == "all" else scheme):
            print(said)
