"""The encoding: how a row of a table becomes a row of features, the same way in every silo.

A numeric column is standardised, and a missing value becomes the mean; a categorical one becomes a column of zeros
and ones per level (a single one if there are two), all zeros where the value is missing or was never seen. Where
values are missing, a further column `name=missing` says so. What no training row shows is zero.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from confrere.data.intake.misfits import (
    Misfit,
    Misfits,
    misfit_gaps,
    misfit_levels,
    misfit_numbers,
    refuse,
    warnings_about,
)
from confrere.data.intake.options import did_you_mean
from confrere.data.intake.read import read
from confrere.data.intake.tidy import Kind, Where, nameless, tidy_column
from confrere.data.notes import tell

FORMAT = 1


class Line(NamedTuple):
    """(value - shift) / scale, with `fill` for a missing value."""

    fill: float
    shift: float
    scale: float


@dataclass(frozen=True)
class Number:
    """A numeric column. Without a common line each silo has its own; without either the feature is 0."""

    name: str
    line: Line | None
    constant: bool  # then there is no feature but the indicator
    missing: bool  # whether there is an indicator
    own: Mapping[str, Line] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features."""
        return (self.name,) * (not self.constant) + (f"{self.name}=missing",) * self.missing

    def write(self, out: np.ndarray, column: pl.Series, silo: str | None) -> None:
        """Fill in the features [rows, features] of a tidied column."""
        values = column.to_numpy()
        unknown = np.isnan(values)
        line = self.line or self.own.get(silo or "")
        if not self.constant and line is not None:
            out[:, 0] = (np.where(unknown, line.fill, values) - line.shift) / line.scale
        if self.missing:
            out[:, -1] = unknown

    def misfits(self, column: pl.Series, silo: str | None, silent: Collection[str]) -> list[Misfit]:
        """Gaps that training never had, and numbers far from all of its."""
        values = column.to_numpy()
        seen = self.missing and self.features[-1] not in silent
        line = self.line or self.own.get(silo or "")
        judged = line is not None and line.scale != 1 and not self.constant and self.name not in silent
        far = misfit_numbers(self.name, values, line.shift, line.scale) if line is not None and judged else []
        return misfit_gaps(self.name, np.isnan(values), seen, aside=self.missing) + far


@dataclass(frozen=True)
class Category:
    """A categorical column: its levels, and whether there is a column for levels that no silo names."""

    name: str
    levels: tuple[str, ...]
    other: bool
    missing: bool

    @property
    def constant(self) -> bool:
        """Whether the column says nothing."""
        return len(self.levels) + self.other < 2

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features; a level that is called as one of ours keeps its name."""
        taken = [f"{self.name}={level}" for level in self.levels]
        other, missing = (f"{self.name}={word}" for word in ("other", "missing"))
        shown = taken + [f"{other} level" if other in taken else other] * self.other
        first = 0 if len(shown) > 2 else 1  # of two levels one column tells all
        return tuple(shown[first:]) + (f"{missing} value" if missing in taken else missing,) * self.missing

    def write(self, out: np.ndarray, column: pl.Series, silo: str | None) -> None:
        """Fill in the features [rows, features] of a tidied column."""
        unknown = column.is_null().to_numpy()
        place = np.full(len(column), -1)
        if self.levels:
            named = column.cast(pl.Enum(self.levels), strict=False).to_physical().cast(pl.Int64).fill_null(-1)
            place = named.to_numpy().copy()
        if self.other:
            place[(place < 0) & ~unknown] = len(self.levels)
        width = out.shape[1] - self.missing
        place -= len(self.levels) + self.other - width
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = 1
        if self.missing:
            out[:, -1] = unknown

    def misfits(self, column: pl.Series, silo: str | None, silent: Collection[str]) -> list[Misfit]:
        """Levels that nobody named, and gaps that training never had."""
        seen = self.missing and self.features[-1] not in silent
        gaps = misfit_gaps(self.name, column.is_null().to_numpy(), seen, aside=self.missing)
        return misfit_levels(self.name, column, self.levels, self.other) + gaps


@dataclass(frozen=True)
class Encoding:
    """How rows of a table become rows of features; it can be kept as JSON and used on new rows.

    >>> import polars as pl, confrere as cf
    >>> table = pl.DataFrame(
    ...     {"age": [40, 60, 50, 70], "sex": ["f", "m", "m", "m"], "ill": [0, 1, 0, 1], "clinic": ["a", "a", "b", "b"]}
    ... )
    >>> encoding = cf.Silos.from_table(table, label="ill", silo="clinic").encoding
    >>> encoding.features
    ('age', 'sex=m')
    >>> encoding.transform(pl.DataFrame({"age": [55, None], "sex": ["m", "f"]})).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    >>> encoding.transform(pl.DataFrame({"age": [55], "sex": ["x"]}), misfits="refuse")
    Traceback (most recent call last):
    ValueError: column 'sex', row 0 (counted from 0): 'x' is no level that the model knows ('f', 'm')
    >>> encoding == type(encoding).from_dict(encoding.to_dict())
    True
    """

    columns: tuple[Number | Category, ...]
    label: str
    label_names: tuple[str, ...] | None
    absent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # silo -> columns it does not have
    gone: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # column -> values that mean "missing"
    silent: tuple[str, ...] = ()  # features that no training row shows: zero in all rows

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of all features, in order."""
        return tuple(name for column in self.columns for name in column.features)

    def rows(self, frame: pl.DataFrame, count: int, silo: str | None) -> np.ndarray:
        """Features [rows, features] of a tidied table; columns that it does not have are missing throughout."""
        out = np.zeros((count, len(self.features)))
        start = 0
        held = {series.name: series for series in frame.get_columns()}
        for column in self.columns:
            end = start + len(column.features)
            kind = pl.Float64 if isinstance(column, Number) else pl.String
            values = held[column.name] if column.name in held else pl.Series(column.name, [None] * count, kind)
            column.write(out[:, start:end], nameless(values.cast(kind)), silo)
            start = end
        out[:, np.isin(self.features, self.silent)] = 0
        return out

    def transform(self, table: Any, silo: str | None = None, misfits: Misfits = "allow", depth: int = 1) -> np.ndarray:
        """Features [rows, features] of new rows, from a table or a file; the label need not be there.

        `silo` is the silo from which the rows come: it is needed if silos were standardised each on its own, and
        allows the columns to be absent that this silo never had. Cells whose like training never saw (unknown levels,
        gaps where there were none, absurd numbers) are refused by name, warned about (in columns of
        levels, `depth` calls up), or allowed: then what is unknown is zero, and a missing number the mean.
        """
        tidied, where = self.opened(table, silo)
        if misfits == "refuse":
            refuse(self.misfits_in(tidied, silo), where)
        elif misfits == "warn":
            codes = {column.name for column in self.columns if isinstance(column, Category)}
            tell(warnings_about(m for m in self.misfits_in(tidied, silo) if m.column in codes), depth + 1)
        return self.rows(tidied, len(where.rows), silo)

    def misfits(self, table: Any, silo: str | None = None) -> list[Misfit]:
        """The cells of new rows whose like training never saw, by column and reason."""
        return self.misfits_in(self.opened(table, silo)[0], silo)

    def opened(self, table: Any, silo: str | None) -> tuple[pl.DataFrame, Where]:
        """The columns of new rows, tidied, and where their cells are; what cannot be read is refused."""
        frame = read(table)
        where = Where(silo, np.arange(frame.height))
        self.check_silo(silo)
        self.check_columns(frame.columns, silo)
        held = {series.name: series for series in frame.get_columns()}
        return pl.DataFrame([self.tidied(held[c.name], c, where) for c in self.columns if c.name in held]), where

    def misfits_in(self, tidied: pl.DataFrame, silo: str | None) -> list[Misfit]:
        """The same of tidied columns."""
        held = {series.name: series for series in tidied.get_columns()}
        found: list[Misfit] = []
        for column in self.columns:
            if column.name in held:
                kind = pl.Float64 if isinstance(column, Number) else pl.String
                found += column.misfits(nameless(held[column.name].cast(kind)), silo, self.silent)
        return found

    def tidied(self, raw: pl.Series, column: Number | Category, where: Where) -> pl.Series:
        """One column of new rows as numbers or levels, or an error that names the cell."""
        kind: Kind = "numeric" if isinstance(column, Number) else "categorical"
        return tidy_column(raw, kind, self.gone.get(column.name, ()), where)[1]

    def check_silo(self, silo: str | None) -> None:
        """Where each silo has its own mean and scale, rows must come from one of them."""
        owners = {name for column in self.columns if isinstance(column, Number) for name in column.own}
        if owners and silo not in owners:
            known = " or ".join(map(repr, sorted(owners)))
            raise ValueError(f"each silo has its own scale, so say whose rows these are: silo={known}, not {silo!r}")

    def check_columns(self, columns: list[str], silo: str | None) -> None:
        """Every column of the encoding must be there, unless the silo never had it."""
        spared = self.absent.get(silo or "", ())
        lacking = [c.name for c in self.columns if c.name not in {*columns, *spared}]
        if lacking:
            named = ", ".join(map(repr, lacking))
            raise ValueError(f"the table lacks the column(s) {named}{did_you_mean(lacking[0], columns)}")

    def with_own(self, own: Mapping[str, Mapping[str, Line]]) -> "Encoding":
        """The same with each silo's own lines, silo -> column -> line."""

        def add(column: Number | Category) -> Number | Category:
            if isinstance(column, Category):
                return column
            return replace(
                column, own={silo: lines[column.name] for silo, lines in own.items() if column.name in lines}
            )

        return replace(self, columns=tuple(map(add, self.columns)))

    def for_silo(self, silo: str) -> "Encoding":
        """What one silo may keep: the same without the means and scales that are other silos' own."""
        own = {silo: {c.name: c.own[silo] for c in self.columns if isinstance(c, Number) and silo in c.own}}
        return self.with_own(own)

    def to_dict(self) -> dict[str, Any]:
        """As plain values that JSON can hold."""
        plain = asdict(self)
        plain["columns"] = [
            {"kind": "numeric" if isinstance(column, Number) else "categorical"} | values
            for column, values in zip(self.columns, plain["columns"], strict=True)
        ]
        return {"format": FORMAT} | plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Encoding":
        """From what `to_dict` gave, also after a detour through JSON."""
        if plain.get("format") != FORMAT:
            raise ValueError(f"this is no encoding of format {FORMAT}: format is {plain.get('format')!r}")
        names = plain["label_names"]
        return cls(
            tuple(column_from(column) for column in plain["columns"]),
            plain["label"],
            None if names is None else tuple(names),
            {silo: tuple(absent) for silo, absent in plain["absent"].items()},
            {column: tuple(values) for column, values in plain["gone"].items()},
            tuple(plain["silent"]),
        )


def column_from(plain: Mapping[str, Any]) -> Number | Category:
    """A column of an encoding from plain values."""
    if plain["kind"] == "categorical":
        return Category(plain["name"], tuple(plain["levels"]), plain["other"], plain["missing"])
    line = None if plain["line"] is None else Line(*plain["line"])
    own = {silo: Line(*values) for silo, values in plain["own"].items()}
    return Number(plain["name"], line, plain["constant"], plain["missing"], own)
