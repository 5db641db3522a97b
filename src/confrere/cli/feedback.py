"""`confrere feedback`: what could be better in one silo's own data, and what the others are told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, start_jax, status
from confrere.cli.reading import Reading, with_reading


@with_reading
def feedback(
    data: inputs.DataOrStudy,
    reading: Reading,
    user: Annotated[
        str | None,
        typer.Option(
            help="Your own silo: the feedback is for it alone. A table of one site needs no name.", show_default=False
        ),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(help="A TOML file with possible values by column.", show_default=False),
    ] = None,
    min_count: Annotated[int, typer.Option(min=3, help="Silos tell nothing, and are told nothing, of fewer rows.")] = 5,
    noise: Annotated[
        float,
        typer.Option(min=0.0, help="Noise in what other silos tell of columns, in typical rows: it blurs, no more."),
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Of folds, resampling and noise.")] = 0,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """What could be better in my own data? Codes, units, odd values, rows and labels, and what to record next.

    Nothing is written, and no row leaves its silo. What is said of single rows is for the silo that they belong to.
    """
    with for_people():
        choice = reading.choice(data)
        choice = replace(choice, one_site=user in (None, Path(data[0]).stem))
        silos = inputs.silos_of(data, choice)
        user = known_user(user, silos.names, choice)
        start_jax()
        from confrere import insight

        with status(f"Looking at the data of {user}", hidden=quiet or json):
            found = insight.feedback(silos, user, ranges=ranges, min_count=min_count, noise=noise, seed=seed)
        if json:
            print_json(found.to_dict())
        else:
            show(found, quiet)


def known_user(user: str | None, names: Sequence[str], choice: Any) -> str:
    """For whom it is: the silo that was named, or the only one."""
    from confrere.data.choose import check_user

    if user is None and len(names) > 1:
        raise ValueError(f"--user: say for whom; there are {', '.join(names)}")
    user = names[0] if user is None else user
    check_user(user, names, choice)
    return user


def show(found: Any, quiet: bool) -> None:
    """The table of findings; unless quiet, all else in words."""
    from confrere.insight.quality.words import sections

    console().print(found.table())
    if quiet:
        return
    for heading, words in sections(found):
        print(f"\n{heading}:")
        for said in words:
            print(f"- {said}")
