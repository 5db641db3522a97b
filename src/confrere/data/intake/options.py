"""What a user can choose about the intake of a table, and the checks that the choices fit the columns."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from confrere.checks import WrongField, check_counts

Scale = Literal["shared", "silo"]
Task = Literal["classification", "regression"]
Names = str | Sequence[str]


@dataclass(frozen=True)
class Options:
    """The choices of one intake; see `Silos.from_table` for what they mean."""

    label: str
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    missing: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    scale: Scale | None = "shared"
    task: Task | None = None
    min_level: int = 1


def make_options(
    label: str,
    drop: Names = (),
    categorical: Names = (),
    numeric: Names = (),
    missing: Mapping[str, Any] | None = None,
    scale: Scale | None = "shared",
    task: Task | None = None,
    min_level: int = 1,
) -> Options:
    """Options that do not contradict one another, or an error that says which do."""
    check_name("label", label)
    check_one_of("scale", scale, Scale)
    check_one_of("task", task, Task)
    check_counts(min_level=min_level)
    if missing is not None and not isinstance(missing, Mapping):
        raise TypeError(f"missing must give values by column, as in {{'chol': [0]}}, not {missing!r}")
    gone = {str(name): as_values(values) for name, values in (missing or {}).items()}
    dropped, levels, numbers = names("drop", drop), names("categorical", categorical), names("numeric", numeric)
    options = Options(label, dropped, levels, numbers, gone, scale, task, min_level)
    for name in options.categorical:
        if name in options.numeric:
            raise WrongField(("data", "numeric"), f"column {name!r} is named both in categorical and in numeric")
    for given, columns in (("drop", options.drop), ("categorical", options.categorical), ("numeric", options.numeric)):
        if label in columns:
            raise WrongField(("data", given), f"column {label!r} is the label, so it cannot be named in {given}")
    return options


def check_name(what: str, given: Any) -> None:
    """Refuse what is no column name; columns without text for a name are named by their number, written as text."""
    if not isinstance(given, str):
        raise TypeError(f"{what} must be the name of a column, not {given!r}{as_text_hint(given)}")


def as_text_hint(given: Any) -> str:
    """How a column that is called by a number is named."""
    return f": write {str(given)!r}" if isinstance(given, int | np.integer) and not isinstance(given, bool) else ""


def names(what: str, given: Names) -> tuple[str, ...]:
    """Column names; one name may be given without a list around it."""
    if not isinstance(given, Iterable):
        hint = as_text_hint(given)
        raise TypeError(f"{what} must be the name of a column or a list of names, not {given!r}{hint}")
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def as_values(given: Any) -> tuple[Any, ...]:
    """The values of a column that mean "missing"; one value may be given without a list around it."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    return tuple(value.item() if isinstance(value, np.generic) else value for value in (given if several else (given,)))


def check_one_of(name: str, value: Any, choices: Any) -> None:
    """Refuse what is neither None nor one of the words of a Literal."""
    if value is not None and value not in get_args(choices):
        raise ValueError(f"{name} must be {', '.join(map(repr, get_args(choices)))} or None, not {value!r}")


def check_named(options: Options, columns: Iterable[str]) -> None:
    """Every column that the options name must be there, in one silo at least."""
    known = list(columns)
    chosen = {
        "drop": options.drop,
        "categorical": options.categorical,
        "numeric": options.numeric,
        "missing": tuple(options.missing),
    }
    for option, named in chosen.items():
        for name in named:
            if name not in known and name != options.label:
                field = ("data", option, *([name] if option == "missing" else []))
                said = f"{option} names the column {name!r}, which no silo has{did_you_mean(name, known)}"
                raise WrongField(field, said)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at names that look alike, or at what there is."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.75)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    some = ", ".join(map(repr, known[:10])) + (", ..." if len(known) > 10 else "")
    return f"; there is {some}" if known else ""
