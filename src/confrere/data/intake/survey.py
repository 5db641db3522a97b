"""The first exchange: silos say which columns they have and what these hold, and agree on the features and the task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from confrere.data.intake.messages import Classes, Survey
from confrere.data.intake.options import Options
from confrere.data.intake.tidy import Kind, Tidied, nameless, number_levels, on_command_line

FEW_CODES = 10  # so many different whole numbers may be classes
MANY_LEVELS = 50
NEARLY_ALL = 0.9
FEW_ROWS = 10  # below, a category may well have as many levels as rows
ENOUGH_PAIRS = 20  # of rows of one silo: a category of five levels repeats one in all but 2 % of cases


@dataclass(frozen=True)
class Plan:
    """What the silos agreed on: the columns that become features, those left out, and who lacks which."""

    columns: Mapping[str, Kind]
    left_out: Mapping[str, str]  # column -> why
    absent: Mapping[str, tuple[str, ...]]  # silo -> columns it does not have
    classes: bool


def survey(tidied: Tidied, options: Options) -> Survey:
    """Inside a silo: which columns there are and what they hold. A free text is called so, its words stay.

    A column that fewer than `min_level` rows know is said to be empty: what it holds would be about these few.
    """

    def kind(name: str, found: Kind) -> Kind:
        if len(tidied.columns) - tidied.columns[name].null_count() < options.min_level:
            return "empty"
        free = found == "categorical" and name not in options.categorical and is_free_text(tidied.columns[name])
        return "text" if free else found

    kinds = {n: kind(n, k) for n, k in tidied.kinds.items()}
    unsure = [n for n, k in kinds.items() if k == "categorical" and n not in options.categorical]
    counts = {name: known_and_different(tidied.columns[name]) for name in unsure}
    few = {name: (known, levels) for name, (known, levels) in counts.items() if known < FEW_ROWS}
    return Survey(tidied.name, kinds, label_kind(tidied.label), few)


def known_and_different(column: pl.Series) -> tuple[int, int]:
    """How many values are known, and how many of them differ."""
    known = nameless(column).drop_nulls()
    return len(known), known.n_unique()


def is_free_text(column: pl.Series) -> bool:
    """Whether text has so many values that it is no category: names, notes, identifiers."""
    rows = len(column)
    known, levels = known_and_different(column)
    return (levels > MANY_LEVELS and levels > rows / 2) or (known >= FEW_ROWS and levels >= NEARLY_ALL * known)


def label_kind(label: pl.Series) -> str:
    """Inside a silo: whether labels are text, whole numbers that may be classes, or numbers."""
    if label.dtype == pl.String:
        return "text"
    codes = bool((label == label.floor()).all()) and label.n_unique() <= FEW_CODES
    return "codes" if codes else "numbers"


def agree(surveys: Sequence[Survey], options: Options) -> Plan:
    """From what all silos said: the kind of each column, in the order in which columns are first named."""
    names = list(dict.fromkeys(name for message in surveys for name in message.kinds))
    columns: dict[str, Kind] = {}
    left_out: dict[str, str] = {}
    for name in names:
        kind = common_kind(name, surveys)
        kind = "text" if kind == "categorical" and are_names(name, surveys) else kind
        if kind in ("numeric", "categorical"):
            columns[name] = kind
        else:
            why = RARE if kind == "empty" and options.min_level > 1 else WHY_LEFT_OUT[kind]
            words = {option: on_command_line(option, name) for option in ("drop", "categorical")}
            left_out[name] = why.format(column=name, least=options.min_level, **words)
    absent = {m.silo: tuple(n for n in columns if n not in m.kinds) for m in surveys}
    return Plan(columns, left_out, absent, are_classes(surveys, options))


WHY_LEFT_OUT: dict[Kind, str] = {
    "date": "column {column!r} holds dates and is left out: derive a number from it, such as an age or days since",
    "text": "column {column!r} has nearly as many values as rows, as names and free text have, and is left out: "
    "name it in drop ({drop}), or in categorical ({categorical}) if it is a category",
    "empty": "column {column!r} has no known value in any silo and is left out",
}


RARE = (
    "column {column!r} is known in fewer than {least} rows of every silo and is left out, as no silo tells of so few: "
    "lower min_level (--min-level) if they may be told of"
)


def check_kinds(tidied: Tidied, plan: Plan) -> None:
    """Inside a silo: what it did not tell of a column must agree with what the others said."""
    for name, kind in tidied.kinds.items():
        if kind != "empty" and plan.columns.get(name, kind) != kind:
            raise disagreement(name, f"{plan.columns[name]} in the other silos", f"{kind} in silo {tidied.name!r}")


class Disagreement(ValueError):
    """A column that silos recorded differently."""

    def __init__(self, column: str, said: str):
        super().__init__(said)
        self.column = column


def disagreement(name: str, one: str, other: str) -> Disagreement:
    """The error about a column that silos recorded differently."""
    return Disagreement(
        name,
        f"column {name!r} is {one}, but {other}: record it alike, or name it in categorical, numeric or drop "
        f"({on_command_line('categorical', name)}, {on_command_line('drop', name)})",
    )


def common_kind(name: str, surveys: Sequence[Survey]) -> Kind:
    """What a column holds in all silos that know it; text wins over categories."""
    holders: dict[Kind, str] = {}
    for message in surveys:
        kind = message.kinds.get(name, "empty")
        if kind != "empty":
            holders.setdefault(kind, message.silo)
    found = set(holders)
    if len(found) <= 1:
        return found.pop() if found else "empty"
    if "numeric" not in found and found != {"date", "categorical"}:
        return "text"
    (one, first), (two, second) = list(holders.items())[:2]
    raise disagreement(name, f"{one} in silo {first!r}", f"{two} in silo {second!r}")


def are_names(name: str, surveys: Sequence[Survey]) -> bool:
    """Whether a category of which every silo knows few values has as many of them as rows, as names and identifiers do.

    Where no value occurs twice within a silo it cannot be told, and nothing is to leave that may be a name. Else, of c
    different values, equally frequent, two are the same with a chance of 1/c. Pairs within silos per repeated value so
    estimate c, which must be half of all rows or more, and large enough not to be a matter of luck.
    """
    counts = [message.few.get(name) for message in surveys if message.kinds.get(name) == "categorical"]
    few = [count for count in counts if count is not None]
    if len(few) < len(counts):  # a silo knows enough values to say that it is a category
        return False
    rows = sum(known for known, _ in few)
    repeated = sum(known - levels for known, levels in few)
    pairs = sum(known * (known - 1) // 2 for known, _ in few)
    enough = rows >= FEW_ROWS and pairs >= (repeated + 1) * max(ENOUGH_PAIRS, rows / 2)
    return repeated == 0 or enough


def are_classes(surveys: Sequence[Survey], options: Options) -> bool:
    """Whether the label has classes: as the user says, else if it is text or everywhere a few whole numbers."""
    kinds = {message.label: message.silo for message in surveys}
    if options.task == "regression":
        return False
    if "text" in kinds and len(kinds) > 1:
        other = next(silo for kind, silo in kinds.items() if kind != "text")
        raise ValueError(
            f"the label {options.label!r} is text in silo {kinds['text']!r}, but numbers in silo {other!r}: "
            "record it alike"
        )
    return options.task == "classification" or "numbers" not in kinds


def class_names(tidied: Tidied, options: Options) -> Classes:
    """Inside a silo: the names of its classes."""
    levels = label_levels(tidied.label)
    if is_free_text(levels) and levels.n_unique() > MANY_LEVELS:
        raise ValueError(
            f"silo {tidied.name!r}: the label {options.label!r} has {levels.n_unique()} values in {len(levels)} rows, "
            "too many for classes; is it the right column, or a number (task='regression', --task regression)?"
        )
    return Classes(tidied.name, sorted_levels(levels.unique().to_list()))


def label_levels(label: pl.Series) -> pl.Series:
    """Labels as the names of classes."""
    return label if label.dtype == pl.String else number_levels(label)


def sorted_levels(levels: Sequence[str]) -> tuple[str, ...]:
    """Names in order: as numbers if they all are, else as words."""
    try:
        return tuple(sorted(set(levels), key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(set(levels)))


def common_classes(messages: Sequence[Classes], options: Options) -> tuple[str, ...]:
    """All class names, in order; there must be two."""
    names = sorted_levels([name for message in messages for name in message.names])
    if len(names) < 2:
        raise ValueError(
            f"the label {options.label!r} has only one class, {names[0]!r}: there is nothing to learn; "
            "is it the right column?"
        )
    return names
