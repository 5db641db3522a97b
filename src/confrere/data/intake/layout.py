"""The second exchange: from the levels and gaps of all rows, which features there are, whatever the split.

So every split of the same tables has the same features in the same order, and models of different splits can be
compared and averaged. A feature that no training row of a split shows is zero in all its rows, which to any model is as
if it were not there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import polars as pl

from confrere.data.intake.encoding import Category, Encoding, Number
from confrere.data.intake.messages import Layout, Levels, Summary
from confrere.data.intake.options import Options
from confrere.data.intake.survey import Plan, sorted_levels
from confrere.data.intake.tidy import Table

MANY_LEVELS = 100


def lay_out(table: Table, plan: Plan, options: Options) -> Layout:
    """Inside a silo: the levels that occur often enough, and the columns with gaps."""
    missing = gaps(table.columns, plan, options.min_level)
    return Layout(table.name, missing, all_levels(table.columns, table, plan, options))


def own_columns(table: Table, plan: Plan, kind: str) -> list[str]:
    """The features of a kind for which a silo has a column."""
    return [name for name, held in plan.columns.items() if held == kind and name in table.kinds]


def often_known(rows: pl.DataFrame, names: Sequence[str], least: int) -> list[str]:
    """The columns of which at least so many values are known."""
    return [name for name in names if rows.height - rows[name].null_count() >= least]


def all_levels(rows: pl.DataFrame, table: Table, plan: Plan, options: Options) -> dict[str, Levels]:
    """The levels of the categorical columns that enough rows know."""
    names = often_known(rows, own_columns(table, plan, "categorical"), options.min_level)
    return {name: named_levels(rows[name], options.min_level) for name in names}


def gaps(rows: pl.DataFrame, plan: Plan, least: int) -> dict[str, bool]:
    """Whether values are missing, column by column; nothing is said of fewer rows than `least`."""
    if rows.height < least:
        return {}
    nulls = {column.name: column.null_count() for column in rows.get_columns()}
    return {name: nulls[name] > 0 for name in plan.columns if name in nulls}


def lacks(message: Layout | Summary, name: str, absent: Mapping[str, Sequence[str]]) -> bool:
    """Whether a silo says that values are missing, or has no such column; one that does not say counts as without."""
    return message.missing.get(name, name in absent.get(message.silo, ()))


def named_levels(column: pl.Series, least: int) -> Levels:
    """Levels that occur at least so often, and whether there are rarer ones."""
    counts = column.alias("level").drop_nulls().value_counts(name="count")
    often = counts.filter(pl.col("count") >= least)
    return Levels(sorted_levels(often["level"].to_list()), often.height < counts.height)


def common_layout(layouts: Sequence[Layout], plan: Plan, options: Options, classes: Sequence[str] | None) -> Encoding:
    """From what all silos said: an encoding that has all features, but no statistics yet."""

    def column(name: str, kind: str) -> Number | Category:
        missing = any(lacks(message, name, plan.absent) for message in layouts)
        if kind == "numeric":
            return Number(name, None, False, missing)
        given = [message.levels[name] for message in layouts if name in message.levels]
        levels = sorted_levels([level for some in given for level in some.names])
        return Category(name, levels, any(some.others for some in given), missing)

    return Encoding(
        tuple(column(name, kind) for name, kind in plan.columns.items()),
        options.label,
        None if classes is None else tuple(classes),
        {silo: names for silo, names in plan.absent.items() if names},
        {name: values for name, values in options.missing.items() if name in plan.columns},
    )


def without_constants(first: Encoding) -> Encoding:
    """The layout without numeric columns that are constant over all rows, as the first encoding finds them."""

    def settled(column: Number | Category) -> Number | Category:
        if isinstance(column, Category):
            return column
        return replace(column, line=None, constant=column.name in first.silent)

    return replace(first, columns=tuple(c for c in map(settled, first.columns) if c.features), silent=())


def remarks_on(first: Encoding, untold: Collection[str]) -> list[str]:
    """What is to be said about columns that vary too little or too much, or are too rarely known to be told of."""
    remarks: list[str] = []
    for column in first.columns:
        constant = column.constant or column.name in first.silent
        if constant:
            kept = f", only {column.name}=missing is kept" if column.missing else ""
            rare = isinstance(column, Category) and column.other and not column.levels
            why = "no level that enough rows of a silo have (min_level)" if rare else "the same value in all rows"
            why = "no silo of which enough rows know it (min_level)" if column.name in untold else why
            remarks.append(f"column {column.name!r} has {why} and is left out{kept}")
        elif isinstance(column, Category) and len(column.levels) > MANY_LEVELS:
            remarks.append(
                f"column {column.name!r} has {len(column.levels)} levels and becomes as many features: "
                "drop it, or name only frequent levels with min_level (--min-level)"
            )
    return remarks
