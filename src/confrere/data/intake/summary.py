"""The last exchange: what silos say about their training rows, and the encoding that follows from it.

`summarise` and `own_lines` run inside one silo; `combine` sees messages only. Counts n_i, sums s_i and squares
q_i about the own mean m_i = s_i / n_i give the common mean m = sum s_i / sum n_i and the common variance
(sum q_i + sum n_i (m_i - m)^2) / sum n_i  (Chan, Golub and LeVeque 1979).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from confrere.data.intake.encoding import Category, Encoding, Line, Number
from confrere.data.intake.layout import all_levels, gaps, lacks, often_known, own_columns
from confrere.data.intake.messages import Moments, Summary
from confrere.data.intake.options import Options
from confrere.data.intake.survey import Plan
from confrere.data.intake.tidy import Table


class Statistics(NamedTuple):
    """Of the known training values of each numeric column [columns]."""

    count: np.ndarray
    sum: np.ndarray
    squares: np.ndarray  # about the mean; exactly 0 where all values are the same


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
    """Inside a silo: what the others need to know about its training rows, and no more.

    Of a column that fewer than `min_level` of them know nothing is said: one row's sum would be the row itself.
    """
    rows = table.columns.filter(train) if table.columns.width else table.columns
    numeric = often_known(rows, own_columns(table, plan, "numeric"), options.min_level)
    found = statistics(table, numeric, train)
    moments: dict[str, Moments] = {}
    varies: dict[str, bool] = {}
    for j, name in enumerate(numeric):
        if options.scale != "silo":
            squares = float(found.squares[j]) if options.scale == "shared" else None
            moments[name] = Moments(int(found.count[j]), float(found.sum[j]), squares)
        if options.scale != "shared":
            varies[name] = bool(found.squares[j] > 0)
    missing = gaps(rows, plan, options.min_level)
    return Summary(table.name, missing, moments, varies, all_levels(rows, table, plan, options))


def own_lines(table: Table, plan: Plan, train: np.ndarray) -> dict[str, Line]:
    """Inside a silo: mean and scale of its own numeric columns, when no statistics may leave it."""
    names = own_columns(table, plan, "numeric")
    found = statistics(table, names, train)
    return {
        name: Line(float(total / count), float(total / count), float(np.sqrt(squares / count)) or 1.0)
        for name, count, total, squares in zip(names, *found, strict=True)
        if count > 0
    }


def combine(messages: Sequence[Summary], layout: Encoding) -> Encoding:
    """From what all silos said: the encoding. No table is seen here."""
    columns: list[Number | Category] = []
    silent: list[str] = []
    for column in layout.columns:
        if isinstance(column, Number):
            line, constant = common_line(column.name, messages)
            columns.append(replace(column, line=line))
            silent += [column.name] * (constant and not column.constant)
        else:
            columns.append(column)
            silent += unseen(column, messages)
        if column.missing and not any(lacks(message, column.name, layout.absent) for message in messages):
            silent.append(column.features[-1])
    return replace(layout, columns=tuple(columns), silent=tuple(silent))


def common_line(name: str, messages: Sequence[Summary]) -> tuple[Line | None, bool]:
    """The common mean and scale of a numeric column, if what they rest on was given, and whether it is constant."""
    given = [message.moments[name] for message in messages if name in message.moments]
    varies = any(message.varies.get(name, False) for message in messages)
    if not given:
        return None, not varies
    count = sum(moments.count for moments in given)
    mean = sum(moments.sum for moments in given) / count
    between = between_silos(given, mean)
    if not np.isfinite(between):
        raise ValueError(f"column {name!r}: the numbers are too large to be added up: rescale them")
    if any(moments.squares is None for moments in given):
        return Line(mean, 0.0, 1.0), not varies and between == 0
    scale = float(np.sqrt((sum(moments.squares or 0.0 for moments in given) + between) / count))
    return Line(mean, mean, scale or 1.0), scale == 0


def untold(messages: Sequence[Summary], plan: Plan) -> set[str]:
    """Columns of which no silo says anything, as too few of its training rows know them."""
    told = {name for m in messages for name in (*m.moments, *m.varies, *m.levels)}
    return set(plan.columns) - told


def unseen(column: Category, messages: Sequence[Summary]) -> list[str]:
    """Features of levels that no silo names in its training rows; all of them if there is but one level."""
    given = [message.levels[column.name] for message in messages if column.name in message.levels]
    named = {level for some in given for level in some.names}
    seen = [level in named for level in column.levels] + [any(some.others for some in given)] * column.other
    features = column.features[: len(column.features) - column.missing]
    if sum(seen) < 2:
        return list(features)
    return [feature for feature, there in zip(features, seen[-len(features) :], strict=True) if not there]


def between_silos(given: Sequence[Moments], mean: float) -> float:
    """The sum of n_i (m_i - m)^2; 0 where means differ by no more than the rounding of their sums."""
    own = np.array([moments.sum / moments.count for moments in given])
    weights = np.array([moments.count for moments in given])
    if np.ptp(own) <= 1e-14 * np.abs(own).max():
        return 0.0
    with np.errstate(over="ignore"):
        return float(weights @ (own - mean) ** 2)
