"""`confrere check`: what the intake understood of each silo, before any training."""

from typing import Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json
from confrere.cli.reading import Reading, with_reading
from confrere.plural import plural

FEWEST = 3
MOST_NAMED = 6  # features of one column
MIN_GROUP = (
    f"Smallest group shown of other silos, {FEWEST} or more. With less than 5, what is shown is only for those who may "
    "see numbers of so few people."
)


def checked_least(least: int) -> int:
    """Refuse groups so small that single people would be shown."""
    if least < FEWEST:
        raise typer.BadParameter(f"groups of fewer than {FEWEST} rows of other silos are never shown, not {least}")
    return least


@with_reading
def check(
    data: inputs.DataOrStudy,
    reading: Reading,
    user: Annotated[str | None, typer.Option(help="The silo that is yours: all is shown of it.")] = None,
    least: Annotated[int, typer.Option("--min-group", help=MIN_GROUP, callback=checked_least)] = 5,
    json: inputs.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="The tables alone, without what to mend.")] = False,
) -> None:
    """What was understood of each silo's table: columns, missing values, labels; and what to mend before training.

    Nothing is trained, and nothing is written. Of silos that are not yours only counts and statistics of at least
    --min-group rows are shown.
    """
    with for_people():
        from confrere.data.choose import check_user
        from confrere.data.overview import overview

        choice = reading.choice(data)
        silos = inputs.silos_of(data, choice)
        if user is not None:
            check_user(user, silos.names, choice)
        report = overview(silos, user, least)
        if json:
            print_json(report)
        else:
            show(report)
            if not quiet:
                advise(report)


def show(report: dict[str, Any]) -> None:
    """The overview as tables."""
    from rich.table import Table

    screen = console()
    few = f"<{report['least']}"
    counts = (plural(len(report["silos"]), "silo"), plural(len(report["features"]), "feature"))
    table = Table(title=f"{report['origin']}: {', '.join(counts)}")
    for title in ("Silo", "Rows", f"Label: {report['label']}", "Columns it lacks"):
        table.add_column(title)
    for name, silo in report["silos"].items():
        mine = " (yours)" if name == report["own"] else ""
        table.add_row(
            name + mine,
            few if silo["rows"] is None else str(silo["rows"]),
            "hidden" if silo["rows"] is None else in_words(silo["label"], few),
            ", ".join(lacking(silo)) or "none",
        )
    screen.print(table)
    columns = Table(title="Columns: missing values by silo", caption=f"{few}: too few to give the number")
    for title in ("Column", "Kind", "Missing"):
        columns.add_column(title)
    for column in names_of_columns(report):
        found = {name: silo["columns"].get(column) for name, silo in report["silos"].items()}
        kind = next(f["kind"] for f in found.values() if f)
        columns.add_row(column, kind, gaps(found, few))
    screen.print(columns)
    if report["made"]:
        made = Table("Column", "Became", title="Columns: made alike in all silos")
        for column in names_of_columns(report):
            made.add_row(column, became(column, report["made"].get(column)))
        screen.print(made)


def names_of_columns(report: dict[str, Any]) -> list[str]:
    """The columns of all silos, each once."""
    return list(dict.fromkeys(column for silo in report["silos"].values() for column in silo["columns"]))


def became(column: str, made: dict[str, Any] | None) -> str:
    """What was made of a column so that silos agree: whether it was scaled, and its features of zeros and ones.

    >>> became("sex", {"how": "zeros and ones", "features": ["sex=f", "sex=m", "sex=missing"]})
    'zeros and ones: f, m, missing'
    >>> became("age", {"how": "scaled alike", "features": ["age", "age=missing"]}), became("note", None)
    ('scaled alike; zeros and ones: missing', 'left out')
    """
    if made is None:
        return "left out"
    marks = [name.removeprefix(f"{column}=") for name in made["features"] if name != column]
    more = f" and {len(marks) - MOST_NAMED} more" if len(marks) > MOST_NAMED else ""
    ones = [f"zeros and ones: {', '.join(marks[:MOST_NAMED])}{more}"] if marks else []
    return "; ".join([made["how"]] * (column in made["features"]) + ones)


def advise(report: dict[str, Any]) -> None:
    """What left the silos, what was noticed, and what to mend."""
    print(f"{plural(report['shared'], 'quantity', 'quantities')} left the silos so that their features agree.")
    for note in (*report["quirks"], *report["notes"]):
        print(f"- {note}")
    if not report["quirks"] and not report["notes"]:
        print("Nothing to mend was found.")


def lacking(silo: dict[str, Any]) -> list[str]:
    """Columns that a silo has not, or has no value of."""
    return [*silo["absent"], *(f"{name} (no value)" for name, found in silo["columns"].items() if found["known"] == 0)]


def in_words(label: dict[str, Any], few: str) -> str:
    """Counts of classes, or mean and spread."""
    if "mean" in label:
        return few if label["mean"] is None else f"mean {label['mean']:.4g}, std {label['std']:.3g}"
    told = [f"{name} {count}" for name, count in label.items() if count is not None]
    hidden = [name for name, count in label.items() if count is None]
    return ", ".join([*told, f"{' and '.join(hidden)} hidden (some {few})"] if hidden else told)


def gaps(columns: dict[str, dict[str, Any] | None], few: str) -> str:
    """The silos that lack values of a column, and how many: as long as the list of gaps, not as that of silos."""
    there = [f"{name} {gap(found, few)}" for name, found in columns.items() if gap(found, few) != "0"]
    rest = len(columns) - len(there)
    if there and rest:
        there.append(f"no other ({rest})")
    return ", ".join(there) or "none"


def gap(found: dict[str, Any] | None, few: str) -> str:
    """How many values are missing."""
    if found is None:
        return "absent"
    if found["missing"] is None:
        return f"all but {few}" if found["few"] == "known" else few
    return str(found["missing"])
