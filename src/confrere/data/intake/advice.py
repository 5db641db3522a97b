"""Advice: columns that know too much about the label, identifiers, numbers that look like codes, zeros and numbers such
as 999 that look like missing values.

A column knows too much if it alone tells the label: by its levels, by whether it is missing, or by a threshold. That
is so if it is right in 97 of 100 rows and makes at most a fifth of the errors of guessing the most frequent class;
for numeric labels, if it correlates with the label beyond .999.

All this is decided inside one silo, but for two things: numbers are codes only if they look so in all silos, and that
values which are 0 throughout are none shows in other silos only. For these each silo answers yes or no, column by
column, in messages (`Looks`, and `Distance` if some silo has a column of zeros) that are recorded like all others.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from confrere.data.intake import messages
from confrere.data.intake.layout import often_known
from confrere.data.intake.messages import Distance, Looks
from confrere.data.intake.survey import Plan
from confrere.data.intake.tidy import Table, how_many, nameless, on_command_line

RIGHT, REMAINING, CORRELATION = 0.97, 0.2, 0.999
LEAST_ROWS, LEAST_MINORITY = 30, 8  # in fewer rows, columns separate labels by chance
MOST_ROWS = 20_000  # so many are enough to see it
MOST_CODES, MOST_VALUES = 5, 20
FAR, LEAST_ZEROS = 0.3, 5  # part of the median above which all values are far from 0; rows worth a word
GAP_CODES = (-1, -7, -8, -9, *(sign * int(digit * n) for n in (2, 3, 4, 5) for digit in "789" for sign in (1, -1)))
APART = 0.5  # part of the range of all other values by which a code for gaps is away from them
CHUNK = 2**20  # numbers sorted at once


class Told(NamedTuple):
    """What all silos said about their numeric columns."""

    looks: tuple[Looks, ...]
    distances: tuple[Distance, ...]


def ask(tables: Sequence[Table], plan: Plan, least: int) -> Told:
    """The exchange: what numeric columns look like, and how far from 0 they are where a silo has nothing but zeros.

    No silo tells of a column that fewer than `least` of its rows know.
    """
    looks = messages.gather(look(table, plan, least) for table in tables)
    asked = {name for message in looks for name, zeros in message.zeros.items() if zeros}
    return Told(looks, messages.gather(distance(table, plan, asked, least) for table in tables) if asked else ())


def look(table: Table, plan: Plan, least: int) -> Looks:
    """Inside a silo: which numeric columns may be codes, and which are 0 throughout."""
    names = often_known(table.columns, numeric_columns(table, plan), least)
    whole = {name: whole_values(table.columns[name]) for name in names}
    several = {name: count > 2 for name, count in whole.items() if count <= MOST_CODES}
    zeros = {name: whole[name] == 1 and all_zeros(known_values(table, name)) for name in names}
    return Looks(table.name, {name: name in several for name in names}, several, zeros)


def distance(table: Table, plan: Plan, asked: Collection[str], least: int) -> Distance:
    """Inside a silo: of the columns asked for, whether values are many and far from 0."""
    names = [name for name in often_known(table.columns, numeric_columns(table, plan), least) if name in asked]
    return Distance(table.name, {name: far_from_zero(known_values(table, name)) for name in names})


def numeric_columns(table: Table, plan: Plan) -> list[str]:
    """The numeric features of which a silo has values."""
    return [name for name, kind in plan.columns.items() if kind == "numeric" and table.kinds.get(name) == "numeric"]


def known_values(table: Table, name: str) -> np.ndarray:
    """The values of a numeric column that are not missing."""
    return nameless(table.columns[name]).drop_nulls().to_numpy()


def whole_values(column: pl.Series) -> float:
    """How many different values there are, if they are all whole numbers and at most five; else infinity."""
    if column.n_unique() > MOST_CODES + 1:  # the one more may be "missing"
        return np.inf
    values = nameless(column).drop_nulls().unique()
    return len(values) if len(values) <= MOST_CODES and (values == values.floor()).all() else np.inf


def all_zeros(values: np.ndarray) -> bool:
    """Whether there are nothing but zeros, and enough of them to be worth a word."""
    return len(values) >= LEAST_ZEROS and not values.any()


def far_from_zero(values: np.ndarray) -> bool:
    """Whether values other than 0 are many and all far from it."""
    rest = values[values != 0]
    return len(np.unique(rest)) > MOST_VALUES and bool(rest.min() >= FAR * np.median(rest))


def advise(
    tables: Sequence[Table], plan: Plan, classes: Sequence[str] | None, told: Told
) -> tuple[list[str], list[str]]:
    """What to warn about, and what to note, silo by silo."""
    cautions: list[str] = []
    notes: list[str] = []
    for table in tables:
        rows = sample(len(table))
        small = table if len(rows) == len(table) else some_rows(table, rows)
        for name in telltales(small, plan, classes is not None):
            cautions.append(
                f"silo {table.name!r}: column {name!r} alone tells the label almost perfectly; "
                f"is it known when a prediction is wanted? If not, name it in drop ({on_command_line('drop', name)})"
            )
        cautions += [
            f"silo {table.name!r}: column {name!r} counts up or down from row to row, as identifiers do: if so, "
            f"drop it ({on_command_line('drop', name)})"
            for name in counters(table, plan)
        ]
    for name in codes(told.looks, plan):
        option = on_command_line("categorical", name)
        notes.append(
            f"column {name!r} has a few whole numbers only; if they are codes, name it in categorical ({option})"
        )
    notes += [
        f"silo {silo!r}: column {name!r} is {code} in {many} rows, {why}: if that means that it "
        f"was not taken, say so with missing={{{name!r}: [{code}]}} ({on_command_line('missing', f'{name}={code}')})"
        for silo, name, code, many, why in suspicious_values(tables, plan, told.distances)
    ]
    return cautions, notes


def suspicious_values(
    tables: Sequence[Table], plan: Plan, distances: Sequence[Distance]
) -> list[tuple[str, str, int, str, str]]:
    """Where 0 or a usual code seems to stand for a missing value: silo, column, value, rows, and why it is odd.

    The silo then has many others, all far from it. A silo whose values are all 0 is suspicious if another said that its
    own are many and far from it; one that has nothing but usual codes is so by itself.
    """
    far = {name for message in distances for name, yes in message.far.items() if yes}
    found: list[tuple[str, str, int, str, str]] = []
    for name, table in ((name, table) for name in plan.columns for table in tables):
        if table.kinds.get(name) != "numeric":
            continue
        values = known_values(table, name)
        found += [
            (table.name, name, code, how_many(count, len(values)), why)
            for code, count, why in codes_in(values, name in far)
        ]
    return found


def codes_in(values: np.ndarray, far_elsewhere: bool) -> list[tuple[int, int, str]]:
    """Inside a silo: the values of one column that seem to stand for a missing value, in how many rows, and why.

    `far_elsewhere`: whether another silo's values are many and far from 0.
    """
    codes = gap_codes(values)
    rest = values[~np.isin(values, codes)]
    zeros = int((rest == 0).sum())
    odd = zeros >= LEAST_ZEROS and (far_from_zero(rest) or (far_elsewhere and all_zeros(values)))
    why = "far from all other values" if len(rest) else "a usual code for gaps"
    return [(code, int((values == code).sum()), why) for code in [0] * odd + codes]


def gap_codes(values: np.ndarray) -> list[int]:
    """Usual codes for missing values that are repeated and far from all other values, of which there are many or none.

    A code below 0 need not be far away where all others, of which there are more than five different, are 0 or more.

    >>> gap_codes(np.array([*range(90, 180), 999, 999, 999, 999, 999])), gap_codes(np.array([*range(90), 99] * 5))
    ([999], [])
    >>> gap_codes(np.array([999] * 5))
    [999]
    """
    repeated = [code for code in GAP_CODES if (values == code).sum() >= LEAST_ZEROS]
    rest = values[~np.isin(values, repeated)]
    if not len(rest):
        return [code for code in repeated if code != -1]  # -1 throughout may as well be one of -1 and 1
    if not repeated or len(rest) <= MOST_VALUES:
        return []
    low, high = rest.min(), rest.max()
    lone = low >= 0 and len(np.unique(rest)) > MOST_CODES

    def apart(code: int) -> bool:
        return (code < 0 and lone) or max(low - code, code - high) > APART * (high - low) > 0

    return [code for code in repeated if apart(code)]


def sample(count: int) -> np.ndarray:
    """All rows, or so many evenly spread ones that it is quick."""
    return np.arange(count) if count <= MOST_ROWS else np.linspace(0, count - 1, MOST_ROWS).astype(np.int64)


def some_rows(table: Table, rows: np.ndarray) -> Table:
    """A part of a silo's rows."""
    return Table(table.name, table.columns[rows] if table.columns.width else table.columns, table.kinds, table.y[rows])


def telltales(table: Table, plan: Plan, classes: bool) -> list[str]:
    """Columns that alone tell the label."""
    numeric = [n for n, k in plan.columns.items() if k == "numeric" and n in table.kinds]
    others = [n for n, k in plan.columns.items() if k == "categorical" and n in table.kinds]
    values = table.numbers(numeric)
    if len(table) < LEAST_ROWS:
        return []
    if not classes:
        return [name for name, r in zip(numeric, correlations(values, table.y), strict=True) if abs(r) > CORRELATION]
    counts = np.bincount(table.y)
    least_errors = len(table) - counts.max()
    if least_errors < LEAST_MINORITY:
        return []
    allowed = min(REMAINING * least_errors, (1 - RIGHT) * len(table))
    errors = dict(zip(numeric, number_errors(values, table.y), strict=True))
    few = [name for name in numeric if table.columns[name].n_unique() <= MOST_VALUES]
    errors |= {name: level_errors(table.columns[name], table.y) for name in others + few}
    return [name for name in plan.columns if errors.get(name, np.inf) <= allowed]


def level_errors(column: pl.Series, y: np.ndarray) -> float:
    """Errors of guessing the most frequent class of each level ("missing" is one), and one for each level too many."""
    level = nameless(column).cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    table = np.zeros((int(level.max()) + 1, int(y.max()) + 1))
    np.add.at(table, (level, y), 1)
    return float((table.sum(1) - table.max(1)).sum() + max(0, len(table) - 2))


def number_errors(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Errors of the best threshold with a class on either side, and one where the value is missing [columns]."""
    wide = max(1, CHUNK // max(1, len(y)))
    chunks = [threshold_errors(values[:, start : start + wide], y) for start in range(0, values.shape[1], wide)]
    return np.concatenate([*chunks, np.zeros(0)])


def threshold_errors(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same for a few columns at once."""
    order = np.argsort(values, axis=0)  # what is missing comes last
    ordered, label = np.take_along_axis(values, order, 0), y[order]
    known = ~np.isnan(ordered)
    left_best = right_best = missing_best = np.zeros(1)
    for number in np.unique(y):
        left = np.cumsum((label == number) & known, axis=0)
        left_best = np.maximum(left_best, left)
        right_best = np.maximum(right_best, left[-1] - left)
        missing_best = np.maximum(missing_best, ((label == number) & ~known).sum(0))
    right = left_best + right_best
    right[:-1][ordered[:-1] == ordered[1:]] = 0  # no threshold between equal values
    return len(y) - right.max(0) - missing_best


def correlations(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The correlation of each column with the label, over rows where it is known; 0 if that says nothing."""
    known = ~np.isnan(values)
    count = np.maximum(known.sum(0), 1)
    labels = np.where(known, y[:, None], 0)
    x = np.where(known, values - np.where(known, values, 0).sum(0) / count, 0)
    t = np.where(known, labels - labels.sum(0) / count, 0)
    size = np.sqrt((x**2).sum(0) * (t**2).sum(0))
    return np.where((size > 0) & (count >= LEAST_ROWS), (x * t).sum(0) / np.where(size > 0, size, 1), 0)


def counters(table: Table, plan: Plan) -> list[str]:
    """Numeric columns whose whole numbers rise, or fall, from each row to the next."""

    def counts(column: pl.Series) -> bool:
        values = column.to_numpy()
        steps = np.diff(values)
        return bool((np.all(steps > 0) or np.all(steps < 0)) and np.all(values == np.floor(values)))

    return [n for n in numeric_columns(table, plan) if len(table) >= LEAST_ROWS and counts(table.columns[n])]


def codes(looks: Sequence[Looks], plan: Plan) -> list[str]:
    """Numeric columns with more than two, but in no silo more than five, values, all whole numbers."""

    def has_codes(name: str) -> bool:
        said = [message for message in looks if name in message.codes]
        return all(message.codes[name] for message in said) and any(message.several[name] for message in said)

    return [name for name, kind in plan.columns.items() if kind == "numeric" and has_codes(name)]
