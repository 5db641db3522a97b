"""`confrere select`: whom one silo might learn with, before anything is trained."""

from typing import Annotated, Any, Literal

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, start_jax, status
from confrere.cli.reading import Reading, with_reading

Method = Literal["ndoye", "influence", "gradients", "discrepancy", "all"]
EVERY = ("ndoye", "influence", "gradients")
RULES = "best=K, below=SCORE or above=SCORE (below where lower is better, as by ndoye), or drop: up to the largest gap"


@with_reading
def select(
    data: inputs.DataOrStudy,
    reading: Reading,
    user: Annotated[str, typer.Option(help="The silo for which a model is to be made.", show_default=False)],
    method: Annotated[
        Method,
        typer.Option(
            help="ndoye: how well a silo's model carries over; influence: how much the loss rises without a silo; "
            "gradients: weights of a short run of Weight Erosion; all: these three."
        ),
    ] = "ndoye",
    silent: Annotated[
        list[str] | None, typer.Option(help="Silos that did not answer; written as for --silos.", show_default=False)
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="RULE", help=f"Whom to keep: {RULES}.", show_default="each method's own rule")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of folds and resampling.")] = 0,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Whom might a silo learn with? Silos ranked before training, with intervals, reasons and what was sent for it.

    Nothing is trained. To follow the advice, name the silos to `confrere train` with --silos or --exclude.
    """
    with for_people():
        rule(keep)  # a word that is not understood is told before silos are asked
        choice = reading.choice(data)
        from confrere.data.choose import check_user

        silos = inputs.silos_of(data, choice)
        check_user(user, silos.names, choice)
        start_jax()
        found = {}
        for name in EVERY if method == "all" else (method,):
            with status(f"Asking the silos: {name}", hidden=quiet or json):
                found[name] = kept_by(keep, selection_by(name, silos, user, inputs.apart(silent), seed))
        if json:
            print_json({name: selection.to_dict() for name, selection in found.items()})
        else:
            show(found, silos, user, quiet)


def selection_by(method: str, silos: Any, user: str, silent: tuple[str, ...], seed: int) -> Any:
    """The selection by one method."""
    from confrere import selection

    return getattr(selection, method)(silos, user, silent=silent, seed=seed)


def rule(keep: str | None) -> tuple[str, float | None] | None:
    """A rule of choice and its number, if it has one."""
    if keep is None:
        return None
    name, equals, number = keep.partition("=")
    try:
        if name == "drop" and not equals:
            return name, None
        if name == "best":
            return name, int(number)
        if name in ("below", "above"):
            return name, float(number)
    except ValueError:
        pass
    raise ValueError(f"--keep {keep} is not understood: say {RULES}")


def kept_by(keep: str | None, selection: Any) -> Any:
    """The selection, with the choice of a rule if there is one."""
    said = rule(keep)
    if said is None:
        return selection
    name, number = said
    return selection.drop() if number is None else getattr(selection, name)(number)


def show(found: dict[str, Any], silos: Any, user: str, quiet: bool) -> None:
    """A table for each method; unless quiet, the reasons too, and how to go on."""
    if not quiet:
        for note in silos.notes:
            print(f"note: {note}")
    for selection in found.values():
        console().print(selection.table())
        if not quiet:
            for name in (*selection.ranking, *selection.silent):
                print(f"{name}: {selection.reasons[name]}")
    if not quiet:
        print(f"Nothing is trained yet. {user} may keep or leave any silo: confrere train ... --silos or --exclude.")
