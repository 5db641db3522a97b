"""`confrere select`: whom one silo might learn with, before anything is trained."""

import contextlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, start_jax, status
from confrere.cli.reading import Reading, with_reading

Method = Literal["ndoye", "influence", "gradients", "discrepancy", "all"]
EVERY = ("ndoye", "influence", "gradients")
RULES = "best=K; below=SCORE (ndoye, discrepancy); above=SCORE (influence, gradients); drop, up to the largest gap"
SIDES = {"ndoye": "below", "discrepancy": "below", "influence": "above", "gradients": "above"}  # where the better are


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
    min_count: Annotated[int, typer.Option(min=1, help="Silos with fewer training rows are not asked.")] = 5,
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
        choose = rule(keep, method)
        choice = reading.choice(data)
        from confrere.data.choose import check_user

        silos = inputs.silos_of(data, choice)
        check_user(user, silos.names, choice)
        start_jax()
        found = {}
        for name in EVERY if method == "all" else (method,):
            with status(f"Asking the silos: {name}", hidden=quiet or json):
                found[name] = choose(selection_by(name, silos, user, inputs.apart(silent), min_count, seed))
        if json:
            print_json({name: selection.to_dict() for name, selection in found.items()})
        else:
            show(found, silos, user, quiet)


def selection_by(method: str, silos: Any, user: str, silent: tuple[str, ...], min_count: int, seed: int) -> Any:
    """The selection by one method."""
    from confrere import selection

    return getattr(selection, method)(silos, user, silent=silent, min_count=min_count, seed=seed)


def rule(keep: str | None, method: Method) -> Callable[[Any], Any]:
    """Whom to keep of a selection; words that are not understood are told before any silo is asked."""
    if keep is None:
        return lambda selection: selection
    name, equals, number = keep.partition("=")
    if name == "drop" and not equals:
        return lambda selection: selection.drop()
    with contextlib.suppress(ValueError):
        if name == "best":
            most = int(number)
            return lambda selection: selection.best(most)
        if name in SIDES.values():
            limit = float(number)
            if method == "all":
                raise typer.BadParameter(f"--keep {keep}: the methods' scores have no common limit: say best=K or drop")
            if SIDES[method] != name:
                raise typer.BadParameter(f"--keep {keep}: the better scores of {method} are {SIDES[method]} a limit")
            return lambda selection: getattr(selection, name)(limit)
    raise typer.BadParameter(f"--keep {keep} is not understood: say {RULES}")


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
