"""The tables behind silos: from them features are made, anew whenever the training rows or the silos change."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from confrere.data.intake import messages
from confrere.data.intake.encoding import Encoding
from confrere.data.intake.layout import common_layout, lay_out, remarks_on, without_constants
from confrere.data.intake.options import Options
from confrere.data.intake.summary import combine, own_lines, summarise, untold
from confrere.data.intake.survey import Plan
from confrere.data.intake.tidy import Table
from confrere.data.silo import Silo, check_names, part_number
from confrere.data.silos import Silos
from confrere.data.source import Hand, Kind, Pool, Shared


@dataclass(frozen=True, eq=False)
class Tables:
    """Tidied tables, one per silo, and what the silos agreed on: the `source` of silos that come from tables."""

    tables: tuple[Table, ...]
    options: Options
    plan: Plan
    layout: Encoding
    classes: tuple[str, ...] | None
    origin: str = "tables"
    kind: Kind = "real"
    opening: tuple[Shared, ...] = ()  # what left the silos before any encoding
    notes: tuple[str, ...] = field(default=(), repr=False)  # what there is to say about the tables

    @classmethod
    def open(
        cls,
        tables: Sequence[Table],
        options: Options,
        plan: Plan,
        classes: tuple[str, ...] | None,
        origin: str,
        kind: Kind,
        opening: Sequence[Shared],
    ) -> "Tables":
        """With the layout that follows from all rows; the notes say what was left out."""
        sent = messages.gather(lay_out(table, plan, options) for table in tables)
        shared = (*opening, *(entry for message in sent for entry in messages.record(message)))
        layout = common_layout(sent, plan, options, classes)
        source = cls(tuple(tables), options, plan, layout, classes, origin, kind, shared)
        first, said = source.fit([np.ones(len(table), bool) for table in tables])
        layout = without_constants(first)
        check_features(layout.features)
        return replace(source, layout=layout, notes=tuple(remarks_on(first, untold(said, plan))))

    def fit(self, train: Sequence[np.ndarray]) -> tuple[Encoding, tuple[messages.Summary, ...]]:
        """The encoding that rests on the training rows, and what was sent for it."""
        sent = messages.gather(
            summarise(table, self.plan, rows, self.options) for table, rows in zip(self.tables, train, strict=True)
        )
        return combine(sent, self.layout), sent

    def encode(self, parts: Sequence[np.ndarray]) -> Silos:
        """Silos whose features rest on statistics of the training rows alone."""
        train = self.training_rows(parts)
        encoding, sent = self.fit(train)
        if len(encoding.silent) == len(encoding.features):
            raise ValueError(
                "no feature is left: every column is constant in the training rows, a date, free text or dropped"
                f"{self.too_rare()}"
            )
        if self.options.scale == "silo":
            pairs = zip(self.tables, train, strict=True)
            encoding = encoding.with_own({t.name: own_lines(t, self.plan, rows) for t, rows in pairs})
        silos = tuple(
            Silo(table.name, encoding.rows(table.columns, len(table), table.name), table.y, np.asarray(part, np.int8))
            for table, part in zip(self.tables, parts, strict=True)
        )
        shared = self.opening + tuple(entry for message in sent for entry in messages.record(message))
        notes = (*self.notes, *self.about_silent(encoding, untold(sent, self.plan)))
        return Silos(
            silos, encoding.features, self.classes, self.origin, self.kind, shared, self, encoding=encoding, notes=notes
        )

    def too_rare(self) -> str:
        """What `min_level` has to do with columns of which nothing is known."""
        least = self.options.min_level
        return (
            f", or known in fewer than {least} training rows of every silo (see min_level, --min-level)"
            if least > 1
            else ""
        )

    def about_silent(self, encoding: Encoding, hushed: Collection[str]) -> list[str]:
        """Features that are zero in all rows, and why: no training row shows them, or too few do."""
        least = self.options.min_level
        of_hushed = {f for c in encoding.columns if c.name in hushed and least > 1 for f in c.features}
        groups = [[name for name in encoding.silent if (name in of_hushed) == rare] for rare in (False, True)]
        whys = (
            "no training row shows {}: zero in all rows",
            f"fewer than {least} training rows of each silo know {{}}: zero in all rows, as no silo tells of so few; "
            "lower min_level (--min-level) if they may be told of",
        )
        return [why.format(", ".join(names)) for names, why in zip(groups, whys, strict=True) if names]

    def training_rows(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Which rows are for training, silo by silo."""
        for table, part in zip(self.tables, parts, strict=True):
            if len(part) != len(table):
                raise ValueError(f"silo {table.name!r} has {len(table)} rows, but parts for {len(part)}")
        train = [np.asarray(part) == part_number("train") for part in parts]
        if not any(rows.any() for rows in train):
            raise ValueError("no silo has a training row, so there is nothing to make features from")
        return train

    def all_for_training(self) -> Silos:
        """Silos with all rows for training."""
        return self.encode([np.zeros(len(table), np.int8) for table in self.tables])

    def pool(self) -> Pool:
        """All rows of all silos, in order: numbers with NaN, text with None where a value is missing."""
        frame = self.pooled()
        columns = {
            column.name: column.to_numpy() if column.dtype == pl.Float64 else np.array(column.to_list(), object)
            for column in frame.get_columns()
        }
        return Pool(columns, np.concatenate([table.y for table in self.tables]))

    def pooled(self) -> pl.DataFrame:
        """All rows of all silos in one table; a column that a silo lacks is missing there."""
        names = list(dict.fromkeys(name for table in self.tables for name in table.columns.columns))

        def whole(table: Table) -> pl.DataFrame:
            blank = pl.Series([None] * len(table))
            held = {series.name: series for series in table.columns.get_columns()}
            return pl.DataFrame([held.get(name, blank).cast(self.dtype(name)).alias(name) for name in names])

        return pl.concat([whole(table) for table in self.tables])

    def dtype(self, name: str) -> type[pl.DataType]:
        """How a column is held."""
        return pl.Float64 if self.plan.columns.get(name) == "numeric" else pl.String

    def deal(self, hands: Sequence[Hand]) -> "Tables":
        """The same rows in other silos; what columns hold stays as agreed, however few rows a silo is dealt."""
        check_names(tuple(hand.name for hand in hands), len(hands))
        frame, y = self.pooled(), np.concatenate([table.y for table in self.tables])
        tables = tuple(self.dealt(frame, y, hand) for hand in hands)
        opening = tuple(entry for table in tables for entry in self.opening_of(table))
        plan = replace(self.plan, absent={})
        return Tables.open(tables, self.options, plan, self.classes, self.origin, self.kind, opening)

    def dealt(self, frame: pl.DataFrame, y: np.ndarray, hand: Hand) -> Table:
        """One silo, of the rows of a hand."""
        rows = np.asarray(hand.rows)
        if len(rows) == 0:
            raise ValueError(f"silo {hand.name!r} is dealt no rows: make fewer silos, or larger ones")
        columns = frame[rows] if hand.gone is None else without(frame[rows], np.asarray(hand.gone, bool), hand.name)
        labels = y[rows] if hand.y is None else np.asarray(hand.y)
        if labels.shape != rows.shape:
            raise ValueError(f"silo {hand.name!r} is dealt {len(rows)} rows, but labels of shape {labels.shape}")
        kinds = {name: self.plan.columns.get(name, "text") for name in columns.columns}
        same = self.unchanged(hand)
        dealt = Table(hand.name, columns, kinds, labels.astype(y.dtype))
        return dealt if same is None else replace(dealt, hidden=same.hidden, rows=same.rows)

    def unchanged(self, hand: Hand) -> Table | None:
        """The silo that a hand leaves as it is, if it does."""
        ends = np.cumsum([len(table) for table in self.tables])
        for table, end in zip(self.tables, ends, strict=True):
            if hand.gone is None and np.array_equal(hand.rows, np.arange(end - len(table), end)):
                return table
        return None

    def opening_of(self, table: Table) -> list[Shared]:
        """What a dealt silo says before any encoding: its columns, the kind of its label, and its classes."""
        label = "numbers" if self.classes is None else "codes"
        said = messages.record(messages.Survey(table.name, table.kinds, label, {}))
        if self.classes is not None:
            names = tuple(self.classes[int(number)] for number in np.unique(table.y))
            said += messages.record(messages.Classes(table.name, names))
        return said


def without(columns: pl.DataFrame, gone: np.ndarray, silo: str) -> pl.DataFrame:
    """The table without the values that are `gone` [rows, columns]."""
    if gone.shape != columns.shape:
        raise ValueError(
            f"silo {silo!r}: gone has the shape {gone.shape}, but the rows and columns are {columns.shape}"
        )
    return pl.DataFrame([column.set(pl.Series(gone[:, j]), None) for j, column in enumerate(columns.get_columns())])


def check_features(names: Sequence[str]) -> None:
    """Features must be told apart by name."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two features would be called {', '.join(map(repr, twice))}: rename a column")
