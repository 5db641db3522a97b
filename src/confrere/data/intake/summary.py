"""The second exchange: what silos say about their training rows, and the encoding that follows from it.

`summarise` and `own_lines` run inside one silo; `combine` sees messages only. Counts n_i, sums s_i and squares
q_i about the own mean m_i = s_i / n_i give the common mean m = sum s_i / sum n_i and the common variance
(sum q_i + sum n_i (m_i - m)^2) / sum n_i  (Chan, Golub and LeVeque 1979).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from confrere.data.intake.encoding import Category, Encoding, Line, Number
from confrere.data.intake.messages import Levels, Moments, Summary
from confrere.data.intake.options import Options
from confrere.data.intake.survey import Plan, sorted_levels
from confrere.data.intake.tidy import Table

MANY_COLUMNS = 100


class Statistics(NamedTuple):
    """Of the known training values of each numeric column [columns]."""

    count: np.ndarray
    sum: np.ndarray
    squares: np.ndarray  # about the mean; exactly 0 where all values are the same


class Combined(NamedTuple):
    """The encoding that all silos use, and what is to be said about columns left out."""

    encoding: Encoding
    remarks: tuple[str, ...]


def statistics(table: Table, names: Sequence[str], train: np.ndarray) -> Statistics:
    """Inside a silo: count, sum and squares about the mean of the training rows, column by column."""
    values = table.numbers(names)[train]
    known = ~np.isnan(values)
    count = known.sum(0)
    some = np.maximum(count, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.where(known, values, 0).sum(0)
        deviation = np.where(known, values - total / some, 0)
        squares = (deviation**2).sum(0)
        same = np.where(known, values, -np.inf).max(0, initial=-np.inf) == np.where(known, values, np.inf).min(
            0, initial=np.inf
        )
    squares = np.where(same | (count == 0), 0, squares)
    large = ~(np.isfinite(total) & np.isfinite(squares))
    if large.any():
        name = names[int(np.flatnonzero(large)[0])]
        raise ValueError(
            f"silo {table.name!r}, column {name!r}: the numbers are too large to be added up: rescale them"
        )
    return Statistics(count, total, squares)


def summarise(table: Table, plan: Plan, train: np.ndarray, options: Options) -> Summary:
    """Inside a silo: what the others need to know about its training rows, and no more."""
    numeric = own_columns(table, plan, "numeric")
    categorical = own_columns(table, plan, "categorical")
    rows = table.columns.filter(train) if table.columns.width else table.columns
    nulls = rows.null_count().row(0, named=True) if rows.width else {}
    missing = {name: nulls[name] > 0 for name in plan.columns if name in nulls}
    levels = {name: named_levels(rows[name], options.min_level) for name in categorical}
    found = statistics(table, numeric, train)
    moments: dict[str, Moments] = {}
    varies: dict[str, bool] = {}
    for j, name in enumerate(numeric):
        if options.scale != "silo":
            squares = float(found.squares[j]) if options.scale == "shared" else None
            moments[name] = Moments(int(found.count[j]), float(found.sum[j]), squares)
        if options.scale != "shared":
            varies[name] = bool(found.squares[j] > 0)
    return Summary(table.name, missing, moments, varies, levels)


def own_columns(table: Table, plan: Plan, kind: str) -> list[str]:
    """The features of a kind for which a silo has a column."""
    return [name for name, held in plan.columns.items() if held == kind and name in table.kinds]


def named_levels(column: pl.Series, least: int) -> Levels:
    """Levels that occur at least so often, and whether there are rarer ones."""
    counts = column.alias("level").drop_nulls().value_counts(name="count")
    often = counts.filter(pl.col("count") >= least)
    return Levels(sorted_levels(often["level"].to_list()), often.height < counts.height)


def own_lines(table: Table, plan: Plan, train: np.ndarray) -> dict[str, Line]:
    """Inside a silo: mean and scale of its own numeric columns, when no statistics may leave it."""
    names = own_columns(table, plan, "numeric")
    found = statistics(table, names, train)
    return {
        name: Line(float(total / count), float(total / count), float(np.sqrt(squares / count)) or 1.0)
        for name, count, total, squares in zip(names, *found, strict=True)
        if count > 0
    }


def combine(messages: Sequence[Summary], plan: Plan, options: Options, classes: Sequence[str] | None) -> Combined:
    """From what all silos said: the encoding. No table is seen here."""
    columns: list[Number | Category] = []
    remarks: list[str] = []
    for name, kind in plan.columns.items():
        missing = any(message.missing.get(name, True) for message in messages)
        column = (
            combine_numbers(name, messages, missing) if kind == "numeric" else combine_levels(name, messages, missing)
        )
        columns.append(column)
        remarks += remarks_on(column)
    encoding = Encoding(
        tuple(column for column in columns if column.features),
        options.label,
        None if classes is None else tuple(classes),
        {silo: names for silo, names in plan.absent.items() if names},
        {name: values for name, values in options.missing.items() if name in plan.columns},
    )
    return Combined(encoding, tuple(remarks))


def combine_numbers(name: str, messages: Sequence[Summary], missing: bool) -> Number:
    """A numeric column: the common mean and scale, if what they rest on was given."""
    given = [message.moments[name] for message in messages if name in message.moments]
    varies = any(message.varies.get(name, False) for message in messages)
    if not given:
        return Number(name, None, not varies, missing)
    count = sum(moments.count for moments in given)
    if count == 0:
        return Number(name, Line(0.0, 0.0, 1.0), True, False)
    mean = sum(moments.sum for moments in given) / count
    between = between_silos(given, mean)
    if any(moments.squares is None for moments in given):
        return Number(name, Line(mean, 0.0, 1.0), not varies and between == 0, missing)
    scale = float(np.sqrt((sum(moments.squares or 0.0 for moments in given) + between) / count))
    return Number(name, Line(mean, mean, scale or 1.0), scale == 0, missing)


def between_silos(given: Sequence[Moments], mean: float) -> float:
    """The sum of n_i (m_i - m)^2; 0 where means differ by no more than the rounding of their sums."""
    own = np.array([moments.sum / moments.count for moments in given if moments.count > 0])
    weights = np.array([moments.count for moments in given if moments.count > 0])
    if np.ptp(own) <= 1e-14 * np.abs(own).max():
        return 0.0
    return float(weights @ (own - mean) ** 2)


def combine_levels(name: str, messages: Sequence[Summary], missing: bool) -> Category:
    """A categorical column: all levels that some silo names."""
    given = [message.levels[name] for message in messages if name in message.levels]
    levels = sorted_levels([level for some in given for level in some.names])
    other = any(some.others for some in given)
    return Category(name, levels, other, missing and (other or bool(levels)))


def remarks_on(column: Number | Category) -> list[str]:
    """What is to be said about a column that varies too little or too much."""
    if column.constant:
        kept = f", only {column.name}=missing is kept" if column.features else ""
        return [f"column {column.name!r} has the same value in all training rows and is left out{kept}"]
    if isinstance(column, Category) and len(column.levels) > MANY_COLUMNS:
        return [
            f"column {column.name!r} has {len(column.levels)} levels and becomes as many features: "
            "drop it, or name only frequent levels with min_level"
        ]
    return []
