"""Tidying, inside one silo: every column becomes numbers or text, and what is missing becomes null.

Numbers in text ("63.0") are numbers, `true` and `false` are levels, and whole numbers are written the same way
whether a file says 1 or 1.0. Cells that cannot be meant (infinite, or text among numbers) are refused by name.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from confrere.checks import WrongField
from confrere.data.intake.options import Options, did_you_mean

Kind = Literal["numeric", "categorical", "text", "date", "empty"]
MISSING_WORDS = ("", "?", "na", "n/a", "nan", "null", "<na>")  # in any case
DECIMAL_COMMA = r"^([+-]?\d+),(\d+)$"
WHOLE = r"^(-?(?:0|[1-9]\d*))\.0*$"
DATE = r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})([ T]\d{1,2}:\d{2}.*)?$"
DAY = 24 * 60 * 60 * 1e6  # in microseconds
FROM_DATES = "derive one, such as an age or the days since an event, or leave the column out with drop= (--drop)"
TELLING = 5  # in fewer rows "all" and "most" would tell about single people
MOSTLY = 0.8  # so large a share of numbers makes other cells mistakes


class Where(NamedTuple):
    """Where cells are, for messages: the silo, each row's place in the table that was given, and the column."""

    silo: str | None
    rows: np.ndarray
    name: str = ""

    @property
    def column(self) -> str:
        """The column, named."""
        return f"column {self.name!r}" if self.silo is None else f"silo {self.silo!r}, column {self.name!r}"

    def cell(self, place: int) -> str:
        """A cell, named."""
        return f"{self.column}, row {self.rows[place]} (counted from 0)"


@dataclass(frozen=True, eq=False)
class Tidied:
    """One silo's rows: numeric columns as Float64, all others as String, null where a value is missing."""

    name: str
    columns: pl.DataFrame
    kinds: Mapping[str, Kind]
    label: pl.Series  # likewise, but without nulls and without a name
    hidden: Mapping[str, int] = field(default_factory=dict)  # rows whose value was taken as missing, by column
    rows: np.ndarray | None = None  # each row's place in the table that was given


@dataclass(frozen=True, eq=False)
class Table:
    """The same once the label is settled."""

    name: str
    columns: pl.DataFrame
    kinds: Mapping[str, Kind]
    y: np.ndarray  # class numbers, or the label's numbers
    hidden: Mapping[str, int] = field(default_factory=dict)
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y)  # the columns may be none

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """Numeric columns [rows, columns], with NaN where a value is missing."""
        if not names:
            return np.zeros((len(self), 0))
        chosen = [self.columns[name].cast(pl.Float64) for name in names]  # names that look like patterns are names
        return np.column_stack([column.to_numpy() for column in chosen])


def tidy_columns(frame: pl.DataFrame, options: Options, where: Where) -> tuple[pl.DataFrame, dict[str, Kind]]:
    """All feature columns, tidied, and what each holds."""
    tidied: list[pl.Series] = []
    kinds: dict[str, Kind] = {}
    for raw in frame.get_columns():
        kind, column = tidy_column(raw, wanted_kind(options, raw.name), options.missing.get(raw.name, ()), where)
        tidied.append(column)
        kinds[raw.name] = kind
    return pl.DataFrame(tidied), kinds


def wanted_kind(options: Options, name: str) -> Kind | None:
    """What the user says a column holds."""
    return "categorical" if name in options.categorical else "numeric" if name in options.numeric else None


def tidy_column(raw: pl.Series, wanted: Kind | None, missing: Sequence[Any], where: Where) -> tuple[Kind, pl.Series]:
    """One column, and what it holds; `missing` are values that mean that there is none."""
    kind, column = tidy_values(nameless(raw), wanted, missing, where._replace(name=raw.name))
    return kind, column.alias(raw.name)


def nameless(column: pl.Series) -> pl.Series:
    """The column without its name. Wherever values are worked on: polars takes a name like "^age$" for a pattern."""
    return column.alias("")


def tidy_values(raw: pl.Series, wanted: Kind | None, missing: Sequence[Any], where: Where) -> tuple[Kind, pl.Series]:
    """The same for a column without a name."""
    dtype = raw.dtype
    if dtype.is_numeric():
        column = finite_numbers(raw.cast(pl.Float64), missing, where)
        if wanted == "categorical":
            return known("categorical", number_levels(column))
        return known("numeric", column)
    if dtype == pl.Boolean or dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        return tidy_text(raw.cast(pl.String), wanted, missing, where)
    if dtype == pl.Duration:
        return tidy_values(days(raw), wanted, missing, where)
    if dtype.is_temporal():
        if wanted == "numeric":
            raise ValueError(f"{where.column} holds dates or times, which are no numbers: {FROM_DATES}")
        return known("date" if wanted is None else wanted, raw.cast(pl.String))
    if dtype == pl.Null:
        return "empty", raw.cast(pl.String)
    raise TypeError(f"{where.column} holds {dtype}, not numbers or text: leave it out with drop= (--drop)")


def days(raw: pl.Series) -> pl.Series:
    """Durations as numbers, in days."""
    return raw.dt.total_microseconds() / DAY


def tidy_text(raw: pl.Series, wanted: Kind | None, missing: Sequence[Any], where: Where) -> tuple[Kind, pl.Series]:
    """A column of text: numbers if they all are, else levels, or dates."""
    text = text_levels(raw)
    text = text.set(text.str.to_lowercase().is_in(MISSING_WORDS) | text.is_in([level_name(v) for v in missing]), None)
    if wanted == "categorical":
        return known("categorical", text)
    if wanted == "numeric":
        text = text.replace({"false": "0", "true": "1"})
    numbers = text.cast(pl.Float64, strict=False)
    bad = (text.is_not_null() & numbers.is_null()).to_numpy()
    some = len(text) - text.null_count()
    if bad.any() and (wanted == "numeric" or number_like(text) >= MOSTLY * some):
        refuse_cells(text, bad, where)
    if not bad.any():
        return known("numeric", finite_numbers(numbers, missing, where))
    if text.drop_nulls().str.contains(DATE).all():
        return "date", text
    return known("categorical", text)


def known(kind: Kind, column: pl.Series) -> tuple[Kind, pl.Series]:
    """The column with its kind, which is "empty" if no value is known."""
    return ("empty" if column.null_count() == len(column) else kind), column


def text_levels(raw: pl.Series) -> pl.Series:
    """Text without blanks around it, whole numbers without a point, true and false in small letters."""
    text = raw.str.strip_chars().str.replace(WHOLE, "${1}")
    small = text.str.to_lowercase()
    return small.zip_with(small.is_in(["true", "false"]).fill_null(False), text)


def number_levels(numbers: pl.Series) -> pl.Series:
    """Numbers as the names of levels: 1, not 1.0."""
    return text_levels(numbers.cast(pl.String))


def level_name(value: Any) -> str:
    """One value as the name of a level, written as `text_levels` writes it."""
    return str(text_levels(pl.Series([str(value)]))[0])


def number_like(text: pl.Series) -> int:
    """How many cells are numbers, those with a decimal comma included."""
    return int(with_points(text).cast(pl.Float64, strict=False).is_not_null().sum())


def with_points(text: pl.Series) -> pl.Series:
    """The text with a decimal point in place of a decimal comma."""
    return text.str.replace(DECIMAL_COMMA, "${1}.${2}")


def has_decimal_commas(raw: pl.Series) -> bool:
    """Whether cells are numbers with a decimal comma, or without, but for a few words; with points they are unclear."""
    text = raw.str.strip_chars()
    known = text.filter(~text.str.to_lowercase().is_in(MISSING_WORDS)).drop_nulls()
    if not known.str.contains(DECIMAL_COMMA).any() or known.str.contains(r"^[+-]?\d*\.\d").any():
        return False
    return number_like(known) >= MOSTLY * len(known)


def refuse_cells(text: pl.Series, bad: np.ndarray, where: Where) -> None:
    """Say which cells of a numeric column are no numbers."""
    first = int(np.flatnonzero(bad)[0])
    if text.drop_nulls().str.contains(DATE).all():
        raise ValueError(f"{where.cell(first)}: {text[first]!r} is a date, which is no number: {FROM_DATES}")
    commas = np.flatnonzero(text.str.contains(DECIMAL_COMMA).fill_null(False).to_numpy())
    if len(commas):
        raise ValueError(
            f"{where.cell(int(commas[0]))}: {text[int(commas[0])]!r} is no number: write it with a point, not with a "
            f"comma; {len(commas)} cell(s) of this column are like that"
        )
    raise ValueError(
        f"{where.cell(first)}: {text[first]!r} is no number, but the column seems to hold numbers; "
        f"{int(bad.sum())} cell(s) are like that. Mend them, or say missing={{{where.name!r}: [{text[first]!r}]}} "
        f"({on_command_line('missing', f'{where.name}={text[first]}')}) if they mean that the value is missing, or "
        f"categorical=[{where.name!r}] ({on_command_line('categorical', where.name)}) if the numbers are codes"
    )


def on_command_line(option: str, value: str) -> str:
    """How the same is said on the command line.

    >>> on_command_line("missing", "unit=not known")
    "--missing 'unit=not known'"
    """
    return f"--{option} {shlex.quote(value)}"


def finite_numbers(numbers: pl.Series, missing: Sequence[Any], where: Where) -> pl.Series:
    """Numbers with null for NaN and for those that mean that the value is missing; infinite ones are refused."""
    values = numbers.to_numpy()  # polars would do all this too, but takes a while to start, column by column
    gone = [number for number in map(as_number, missing) if number is not None]
    if gone:
        values = np.where(np.isin(values, gone), np.nan, values)
    infinite = np.isinf(values)
    if infinite.any():
        first = int(np.flatnonzero(infinite)[0])
        raise ValueError(
            f"{where.cell(first)}: {numbers[first]} is not finite; {int(infinite.sum())} value(s) are "
            "like that: mend them, or leave them blank if they are missing"
        )
    return pl.Series(numbers.name, values, nan_to_null=True)


def as_number(value: Any) -> float | None:
    """A value as a number, if it is one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def hidden_gaps(frame: pl.DataFrame, options: Options) -> dict[str, int]:
    """In how many rows each column that is not dropped has a value that means that there is none."""
    named = [name for name in options.missing if name in frame.columns and name not in options.drop]
    return {name: gaps_in(nameless(frame[name]), options.missing[name]) for name in named}


def gaps_in(raw: pl.Series, missing: Sequence[Any]) -> int:
    """How many values mean that there is none; dates are compared with nothing."""
    if raw.dtype.is_temporal() and raw.dtype != pl.Duration:
        return 0
    numbers = days(raw) if raw.dtype == pl.Duration else raw
    return int(text_levels(numbers.cast(pl.String)).is_in([level_name(value) for value in missing]).sum())


def how_many(count: int, rows: int) -> str:
    """A number of rows in a word that gives nobody away: where there are few rows, always the same.

    >>> how_many(9, 9), how_many(6, 9), how_many(1, 9), how_many(2, 2)
    ('all', 'most', 'some', 'some')
    """
    if rows < TELLING:
        return "some"
    return "all" if count == rows else "most" if 2 * count > rows else "some"


class Raw(NamedTuple):
    """One silo's rows as they were read, and each row's place in the table that was given."""

    name: str
    frame: pl.DataFrame
    rows: np.ndarray
    commas: tuple[str, ...] = ()  # columns that were written with decimal commas


def tidy(raw: Raw, options: Options) -> tuple[Tidied, int]:
    """Inside a silo: its rows, tidied, and how many were left out for want of a label."""
    where = Where(raw.name, raw.rows)
    if options.label not in raw.frame.columns:
        hint = did_you_mean(options.label, raw.frame.columns)
        raise WrongField(("data", "label"), f"silo {raw.name!r} has no label column {options.label!r}{hint}")
    label = nameless(tidy_label(raw.frame[options.label], options, where._replace(name=options.label)))
    labelled = label.is_not_null()
    if not labelled.any():
        raise ValueError(f"silo {raw.name!r} has no row with a label: leave it out")
    columns, kinds = tidy_columns(without_columns(raw.frame, {options.label, *options.drop}), options, where)
    kept = columns.filter(labelled) if columns.width else columns
    hidden = hidden_gaps(raw.frame.filter(labelled), options) if options.missing else {}
    rows = raw.rows[labelled.to_numpy()]
    return Tidied(raw.name, kept, kinds, label.filter(labelled), hidden, rows), int((~labelled).sum())


def without_columns(frame: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    """The table without some columns. polars itself would take a name such as "^age$" for a pattern."""
    return pl.DataFrame([column for column in frame.get_columns() if column.name not in names])


def tidy_label(raw: pl.Series, options: Options, where: Where) -> pl.Series:
    """The label as numbers or as names of classes; null where there is none."""
    wanted: Kind | None = "numeric" if options.task == "regression" and not raw.dtype.is_temporal() else None
    if wanted == "numeric" and raw.dtype == pl.String:
        check_amounts(nameless(raw), where)
    kind, label = tidy_column(raw, wanted, options.missing.get(options.label, ()), where)
    if kind == "date":
        raise ValueError(f"{where.column} holds dates, which cannot be a label: derive a number or a class")
    return label


def check_amounts(raw: pl.Series, where: Where) -> None:
    """Refuse a label without any number in a regression: it is the task that does not fit, not the cells."""
    text = raw.str.strip_chars()
    known = text.filter(~text.str.to_lowercase().is_in(MISSING_WORDS)).drop_nulls()
    if len(known) and not number_like(known):
        said = f"{where.column} is the label and holds no numbers, but {known[0]!r}, so that it is no regression"
        raise WrongField(
            ("data", "task"), f"{said}: leave the task out, or say 'classification' (--task classification)"
        )
