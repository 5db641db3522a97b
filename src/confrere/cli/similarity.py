"""`confrere similarity`: who is like whom, in what sense, and a map of it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, start_jax, status
from confrere.cli.reading import Reading, with_reading


@with_reading
def similarity(
    data: inputs.DataOrStudy,
    reading: Reading,
    user: Annotated[
        str | None, typer.Option(help="Say in words who is like this silo, and in what sense.", show_default=False)
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these of models, gradients, transfer, influence, outcomes, features and predictions (by default "
            "all); written with commas, or the option repeated.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the map, and as .html the matrices, too: map.svg or map.html.", show_default=False),
    ] = None,
    resamples: Annotated[int, typer.Option(min=0, help="Draws behind intervals, ellipses and groups; 0: none.")] = 100,
    min_group: Annotated[int, typer.Option(min=1, help="Of what fewer rows have, nothing is told.")] = 5,
    seed: Annotated[int, typer.Option(help="Of folds and resampling.")] = 0,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Who is like whom, in what sense, and what does it rest on? Matrices, a map, and groups if they are stable.

    Nothing is trained but each silo's own model. What crosses the border is told with every matrix, in bytes.
    """
    with for_people():
        kind = kind_of(out)
        choice = reading.choice(data)
        from confrere.data.choose import check_user

        silos = inputs.silos_of(data, choice)
        if user is not None:
            check_user(user, silos.names, choice)
        start_jax()
        from confrere.insight import similarity as measured

        wanted = inputs.apart(measure) or "all"
        with status("Asking the silos", hidden=quiet or json):
            found = measured(silos, wanted, resamples=resamples, min_group=min_group, seed=seed)
        if out is not None:
            write(found, out, kind)
        if json:
            print_json(found.to_dict())
        else:
            show(found, silos, user, out, quiet)


def kind_of(out: Path | None) -> str:
    """Whether a picture or a page is wanted."""
    if out is not None and out.suffix.lower() not in (".svg", ".html"):
        raise typer.BadParameter(f"{str(out)!r} must end with .svg or .html", param_hint="--out")
    return "" if out is None else out.suffix.lower()


def write(found: Any, out: Path, kind: str) -> None:
    """The map as a picture, or the map and the matrices as a page."""
    from confrere.disk import write_whole
    from confrere.report import likeness_page

    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, likeness_page.picture(found) if kind == ".svg" else likeness_page.page(found))


def show(found: Any, silos: Any, user: str | None, out: Path | None, quiet: bool) -> None:
    """The combined matrix, then each measure's; for a user the others in words, and how to go on."""
    if not quiet:
        for note in silos.notes:
            print(f"note: {note}")
    likens = any(m.dissimilarity is not None for m in found.measures.values())
    for name in (*(["combined"] if likens else []), *found.measures):
        console().print(found.table(name))
    for other in found.like(user) if user is not None else ():
        print(f"{other.silo}: {other.words[0]}")
        for said in other.words[1:] if not quiet else ():
            print(f"  {said}")
    for name, why in found.without.items():
        print(f"{name}: {why}.")
    if likens:
        print(f"Groups: {found.groups().words}.")
        print(f"Map: {found.map().words}.")
    if out is not None and not quiet:
        print(f"Written: {out}")
