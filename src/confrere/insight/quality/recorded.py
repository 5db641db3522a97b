"""What silos recorded, column by column, before it became features: from tables, from arrays with columns, or features.

Nothing here leaves a silo; `telling` says what does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from confrere.data.dealing import Arrays
from confrere.data.intake.tables import Tables
from confrere.data.intake.tidy import Table, nameless
from confrere.data.silos import Silos


@dataclass(frozen=True, eq=False)
class Recorded:
    """One silo's rows as they were recorded."""

    silo: str
    rows: int
    numbers: Mapping[str, np.ndarray]  # NaN: missing
    levels: Mapping[str, np.ndarray]  # None: missing
    absent: tuple[str, ...]  # columns that other silos have
    places: np.ndarray  # each row's place in the table that was given
    hidden: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # column -> the codes, rows that had one

    def known(self, column: str) -> int:
        """How many values of a column there are."""
        if column in self.numbers:
            return int((~np.isnan(self.numbers[column])).sum())
        values = self.levels.get(column)
        return 0 if values is None else int(sum(value is not None for value in values))

    def finite(self, column: str) -> np.ndarray:
        """The known values of a numeric column."""
        values = self.numbers[column]
        return values[~np.isnan(values)]


def recorded(silos: Silos) -> tuple[Recorded, ...]:
    """What every silo recorded.

    >>> import confrere as cf
    >>> silos = cf.data.titanic("age-strict")
    >>> unknown = recorded(silos)[3]
    >>> unknown.silo, unknown.known("age"), unknown.known("fare") > 0
    ('unknown', 0, True)
    """
    if isinstance(silos.source, Tables):
        return tuple(from_table(table, silos.source) for table in silos.source.tables)
    if isinstance(silos.source, Arrays):
        return from_arrays(silos.source)
    return tuple(
        Recorded(s.name, len(s.y), dict(zip(silos.feature_names, s.X.T.astype(float), strict=True)), {}, (),
                 np.arange(len(s.y)))
        for s in silos.silos
    )  # fmt: skip


def from_table(table: Table, source: Tables) -> Recorded:
    """A silo of a table: the columns that become features."""
    numbers: dict[str, np.ndarray] = {}
    levels: dict[str, np.ndarray] = {}
    for name, kind in source.plan.columns.items():
        if name not in table.columns.columns:
            continue
        column = nameless(table.columns[name])
        if kind == "numeric":
            numbers[name] = column.cast(pl.Float64).to_numpy()
        else:
            levels[name] = np.array(column.to_list(), object)
    absent = tuple(name for name in source.plan.columns if name not in table.columns.columns)
    places = np.arange(len(table)) if table.rows is None else table.rows
    hidden = {
        name: (" or ".join(written(value) for value in source.options.missing.get(name, ())), count)
        for name, count in table.hidden.items()
        if count and name in source.plan.columns
    }
    return Recorded(table.name, len(table), numbers, levels, absent, places, hidden)


def written(value: Any) -> str:
    """A code as people write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def from_arrays(source: Arrays) -> tuple[Recorded, ...]:
    """Silos of arrays that know the columns from which they were made."""
    columns = source.pool().columns
    starts = (0, *source.ends[:-1])
    found = []
    for name, start, end in zip(source.names, starts, source.ends, strict=True):
        numbers = {n: v[start:end].astype(float) for n, v in columns.items() if v.dtype.kind in "biuf"}
        levels = {n: words(v[start:end]) for n, v in columns.items() if v.dtype.kind not in "biuf"}
        found.append(Recorded(name, end - start, numbers, levels, (), np.arange(end - start)))
    return tuple(found)


def words(values: np.ndarray) -> np.ndarray:
    """Levels as objects, None where there is no word."""
    return np.array([None if value is None or value == "" else str(value) for value in values.tolist()], object)


def features_of(silos: Silos) -> dict[str, list[int]]:
    """Where the features are that each column became, its indicator of missing values included."""
    place = {name: j for j, name in enumerate(silos.feature_names)}
    if silos.encoding is not None:
        return {c.name: [place[f] for f in c.features if f in place] for c in silos.encoding.columns}
    if isinstance(silos.source, Arrays):
        found = {name: silos.source.carriers.get(name, (name,)) for name in silos.source.columns}
        with_gaps = {name: (*features, f"{name}=missing") for name, features in found.items()}
        return {name: [place[f] for f in features if f in place] for name, features in with_gaps.items()}
    return {name: [j] for name, j in place.items()}
