"""What commands share: which data, and options that several have."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

DATA = (
    "A table with a column of silos, a folder or several files (one silo each), or a data set: titanic, heart_disease, "
    "breast_cancer, diabetes"
)
Data = Annotated[list[str], typer.Argument(help=f"{DATA}.", show_default=False)]
DataOrStudy = Annotated[
    list[str],
    typer.Argument(
        help=f"{DATA}; or a study.toml that says which data, and how columns are derived.", show_default=False
    ),
]
ModelName = Annotated[
    Literal["linear", "mlp"], typer.Option("--model", help="linear: logistic or linear regression; mlp: a network.")
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="bytes=N",
        help="Bytes that all silos together may send and receive, as in bytes=2MB: a run stops in time.",
        show_default=False,
    ),
]
Compress = Annotated[
    str | None,
    typer.Option(
        metavar="top_k=F|bits=N",
        help="Silos send only the largest fraction of their numbers (top_k=0.1), or round them (bits=8).",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Events = Annotated[bool, typer.Option("--json", help="Print one JSON object a line, for each change.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar, no notes.")]


def is_study(data: Sequence[str]) -> bool:
    """Whether a study.toml was named in place of data."""
    return len(data) == 1 and data[0].endswith(".toml")


def silos_of(data: Sequence[str], choice: Any) -> Any:
    """The silos of a choice; mistakes of a study.toml are told with line and field."""
    from confrere.data.choose import chosen_silos

    if not is_study(data):
        return chosen_silos(choice)
    from confrere.runs.config import told_by_line

    with told_by_line(Path(data[0])):
        return chosen_silos(choice)


def apart(words: list[str] | None) -> tuple[str, ...]:
    """Names, also those written with commas between them; a name that has a comma stands in double quotes.

    >>> apart(["north,west", '"south, east",centre'])
    ('north', 'west', 'south, east', 'centre')
    """
    rows = (row for word in words or () for row in csv.reader([" ".join(word.splitlines())], skipinitialspace=True))
    return tuple(name.strip() for row in rows for name in row if name.strip())


def known_algorithms(words: list[str] | None) -> tuple[str, ...]:
    """Algorithms by name; an unknown one is a command that is not understood."""
    from confrere.algorithm_names import AlgorithmName
    from confrere.data.intake.options import did_you_mean

    names, known = apart(words), get_args(AlgorithmName)
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"there is no algorithm {name!r}{did_you_mean(name, known)}", param_hint="--algorithms"
            )
    return names


def gone(words: list[str] | None) -> dict[str, list[Any]]:
    """COLUMN=VALUE pairs by column; numbers become numbers."""
    found: dict[str, list[Any]] = {}
    for word in words or ():
        column, sign, value = word.partition("=")
        if not sign or not column:
            raise typer.BadParameter(f"{word!r} is not COLUMN=VALUE, as in chol=0")
        found.setdefault(column, []).append(number_or_word(value))
    return found


def number_or_word(value: str) -> float | str:
    """A number if it is one."""
    try:
        return float(value)
    except ValueError:
        return value
