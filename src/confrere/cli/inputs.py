"""The options that say which data: shared by `check`, `compare` and `train`."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

MIN_LEVEL = 5  # as in study.toml
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
Label = Annotated[str | None, typer.Option(help="The column to be predicted.", show_default=False)]
SiloColumn = Annotated[
    str | None, typer.Option("--silo", help="The column that tells silos apart.", show_default=False)
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--silos",
        help="Only these silos take part: north,west; a name with a comma in double quotes.",
        show_default=False,
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="These silos take no part; written as for --silos.", show_default=False)
]
Features = Annotated[list[str] | None, typer.Option(help="Only these columns are used.", show_default=False)]
Drop = Annotated[list[str] | None, typer.Option(help="These columns are not used.", show_default=False)]
Categorical = Annotated[list[str] | None, typer.Option(help="These columns hold codes.", show_default=False)]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="Values that mean that there is none, as in chol=0.", show_default=False, metavar="COLUMN=VALUE"),
]
Scale = Annotated[
    Literal["shared", "silo"], typer.Option(help="Standardise with statistics that silos share, or each by itself.")
]
MinLevel = Annotated[
    int,
    typer.Option(
        min=1,
        help="Levels that fewer rows of a silo have are not named by it, but share one, and of columns that fewer know "
        "nothing is told (not in named data sets).",
    ),
]
Task = Annotated[
    Literal["classification", "regression"] | None,
    typer.Option(help="What the label is (by default told from its values).", show_default=False),
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


def choice_in(file: str, given: Any) -> Any:
    """The choice that a study.toml describes in [data] and [derive]; options that say it, too, are refused."""
    from confrere.runs.config import read_config

    said = [name for name in ("label", "silo", "silos", "exclude", "features") if getattr(given, name)]
    said += [name for name, value in given.options.items() if (name, value) != ("min_level", MIN_LEVEL)]
    if said:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in said)
        raise ValueError(f"{file} says which data: write what {options} would say into its [data]")
    return read_config(file).choice()


def choice_of(
    data: list[str], label: str | None, silo: str | None, only: list[str] | None, exclude: list[str] | None,
    features: list[str] | None, drop: list[str] | None, categorical: list[str] | None, missing: list[str] | None,
    scale: str, task: str | None, min_level: int,
):  # fmt: skip
    """The options as one choice; lists may be written with commas."""
    from confrere.data.choose import Choice

    options: dict[str, Any] = {
        "drop": apart(drop), "categorical": apart(categorical), "missing": gone(missing), "task": task,
        "scale": None if scale == "shared" else scale, "min_level": min_level,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value}
    choice = Choice(tuple(data), label, silo, apart(only), apart(exclude), apart(features), given)
    return choice_in(data[0], choice) if is_study(data) else choice


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
