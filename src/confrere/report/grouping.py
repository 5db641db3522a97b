"""Question 4: does it work equally for all patients? Test rows by sex, age band or a chosen column.

No group smaller than the minimum group size is shown, nor can it be had by subtraction: small groups are put together,
and if they are still too few, joined with the smallest of the others.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from confrere.data.dealing import of_silos
from confrere.data.pool import known_of, missing
from confrere.data.silo import part_number
from confrere.data.silos import Silos
from confrere.report import intervals
from confrere.report.contents import Group, Grouping
from confrere.report.metrics import number, within
from confrere.report.predictions import Predicted

SEX, AGE = ("sex", "gender"), ("age", "age_years", "years")
AGE_LIMITS = (18, 40, 65)
MOST_VALUES = 6  # numbers with more values are cut into bands
UNKNOWN = "unknown"


def columns_of_test_rows(silos: Silos, user: int) -> dict[str, np.ndarray]:
    """The columns of the user's test rows, as they were recorded."""
    pool = (silos.source or of_silos(silos)).pool()
    first = sum(len(s.y) for s in silos.silos[:user])
    chosen = first + np.flatnonzero(silos[user].part == part_number("test"))
    return {name: np.asarray(values)[chosen] for name, values in pool.columns.items()}


def meant(values: np.ndarray, meanings: Mapping[Any, str]) -> np.ndarray:
    """Codes replaced by what they mean; those without a meaning stay, as words.

    >>> meant(np.array([0.0, 1.0, np.nan]), {0: "women", 1: "men"}).tolist()
    ['women', 'men', None]
    """
    if not meanings:
        return values
    pairs = zip(values.tolist(), missing(values), strict=True)
    return np.array([None if gone else meanings.get(value, str(value)) for value, gone in pairs], object)


def chosen_columns(names: Sequence[str], asked: Sequence[str] | None) -> list[str]:
    """The columns that were asked for; by default sex and age, if they are there."""
    if asked is not None:
        unknown = [name for name in asked if name not in names]
        if unknown:
            raise ValueError(f"groups: there is no column {unknown[0]!r}; there are {', '.join(names)}")
        return list(dict.fromkeys(asked))
    by_name = {name.casefold(): name for name in names}
    found = [next((by_name[word] for word in words if word in by_name), None) for words in (SEX, AGE)]
    return [name for name in found if name is not None]


def labels_of(column: str, values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The group of every row, and the groups in order, the unknown last.

    >>> labels_of("age", np.array([3.0, 20, 25, 30, 70, 71, 72, np.nan]))[1]
    ['under 18', '18 to under 40', '65 and over', 'unknown']
    >>> labels_of("sex", np.array([1.0, 0.0]))[1]
    ['sex 0', 'sex 1']
    """
    gone = missing(values)
    known = known_of(values)
    labels = np.full(len(values), UNKNOWN, object)
    numeric = known.dtype.kind in "biuf"
    if numeric and len(np.unique(known)) > MOST_VALUES:
        limits = AGE_LIMITS if column.casefold() in AGE else thirds(known.astype(float))
        labels[~gone] = bands(known.astype(float), limits)
        order = bands(np.array([limits[0] - 1, *limits], float), limits)
    else:
        name = (lambda v: f"{column} {v:g}") if numeric else str  # a code says nothing by itself
        labels[~gone] = [name(v) for v in known.tolist()]
        order = [name(v) for v in np.unique(known).tolist()]
    present = set(labels)
    return labels, [name for name in dict.fromkeys((*order, UNKNOWN)) if name in present]


def thirds(values: np.ndarray) -> tuple[float, ...]:
    """Two limits that cut values into thirds, rounded to two digits so that they are nobody's own value.

    >>> thirds(np.arange(1, 301.0))
    (100.0, 200.0)
    """
    cuts = [float(f"{v:.1e}") for v in np.quantile(values, [1 / 3, 2 / 3])]
    return tuple(dict.fromkeys(cuts))


def bands(values: np.ndarray, limits: Sequence[float]) -> list[str]:
    """The band of every value.

    >>> bands(np.array([17, 18, 80]), (18, 40, 65))
    ['under 18', '18 to under 40', '65 and over']
    """
    names = [band(low, high) for low, high in pairwise(["", *(f"{limit:g}" for limit in limits), ""])]
    return [names[k] for k in np.searchsorted(np.asarray(limits, float), values, side="right")]


def large_enough(labels: np.ndarray, order: Sequence[str], least: int) -> list[tuple[str, np.ndarray]]:
    """Groups of at least so many rows: small ones are put together, and with the smallest other if need be.

    >>> labels = np.array(["a"] * 9 + ["b"] * 6 + ["c"] * 2)
    >>> [(name, int(rows.sum())) for name, rows in large_enough(labels, ["a", "b", "c"], 5)]
    [('a', 9), ('b or c', 8)]
    """
    counts = {name: int((labels == name).sum()) for name in order}
    small = [name for name in order if counts[name] < least]
    rest = [name for name in order if counts[name] >= least]
    if small and rest and sum(counts[name] for name in small) < least:
        small.append(rest.pop(rest.index(min(rest, key=lambda name: counts[name]))))
    groups = [[name] for name in rest]
    if sum(counts[name] for name in small) >= least:
        groups.append(sorted(small, key=order.index))
    groups.sort(key=lambda names: order.index(names[0]))
    return [(joined(names), np.isin(labels, names)) for names in groups]


def joined(names: Sequence[str]) -> str:
    """The name of groups that were put together, in their order; bands that touch become one.

    >>> joined(["18 to under 40", "40 to under 65", "unknown"]), joined(["under 18", "65 and over"])
    ('18 to under 65 or unknown', 'under 18 or 65 and over')
    """
    said: list[str] = []
    for name in names:
        before, now = ends_of(said[-1]) if said else None, ends_of(name)
        if before and now and before[1] and before[1] == now[0]:
            said[-1] = band(before[0], now[1])
        else:
            said.append(name)
    return " or ".join(said)


def ends_of(name: str) -> tuple[str, str] | None:
    """The ends of a band, blank where it is open; None of what is no band."""
    found = re.fullmatch(r"(?:(\S+) to )?under (\S+)|(\S+) and over", name)
    return (found[1] or found[3] or "", found[2] or "") if found else None


def band(low: str, high: str) -> str:
    """The name of a band; blank ends are open."""
    if not low or not high:
        return f"under {high}" if high else f"{low} and over" if low else "all"
    return f"{low} to under {high}"


def group_of(name: str, found: Predicted, rows: np.ndarray) -> Group:
    """A group's accuracy (or error), what was predicted for it and what happened."""
    right, observed, count = found.right[rows], found.observed[rows], int(rows.sum())
    if found.classes:
        shares = [intervals.share(int(values.sum()), count) for values in (right, observed)]
    else:
        shares = [intervals.mean(right), intervals.mean(observed)]
    return Group(name, count, shares[0], float(found.predicted[rows].mean()), shares[1])


def grouping(column: str, values: np.ndarray, found: Predicted, least: int, people: str) -> Grouping:
    """The groups of one column."""
    labels, order = labels_of(column, values)
    groups = tuple(group_of(name, found, rows) for name, rows in large_enough(labels, order, least))
    if len(groups) < 2:
        which = f"all test {people} are in one group" if len(order) < 2 else f"all groups but one are below {least}"
        return Grouping(column, (), (f"By {column} there is nothing to compare: {which}.",))
    return Grouping(column, groups, tuple(groups_in_words(column, groups, found.classes)))


def groups_in_words(column: str, groups: Sequence[Group], classes: bool) -> list[str]:
    """The best and the worst group, whether chance may explain it, and where predictions are off."""
    ordered = sorted(groups, key=lambda g: g.right.value, reverse=classes)
    best, worst = ordered[0], ordered[-1]
    what = "Accuracy" if classes else "The mean absolute error"
    said = [
        f"{what} by {column}: {within(best.right, classes)} for {best.name}, {within(worst.right, classes)} for "
        f"{worst.name}; {comparison(best, worst)}."
    ]
    for g in groups:
        side = out_of(g)
        if side:
            predicted, observed = told_of(g, classes)
            said.append(f"For {g.name} predictions are too {side}: {predicted} predicted, {observed} observed.")
    return said


def told_of(group: Group, classes: bool) -> tuple[str, str]:
    """What was predicted and what was observed, with as many digits as show whether one lies outside the other."""
    ends = {"high": group.observed.high, "low": group.observed.low, "": None}
    more = digits_apart(group.predicted, ends[out_of(group)], classes)
    predicted = f"{number(100 * group.predicted, more)} %" if classes else number(group.predicted, 2 + more)
    return predicted, within(group.observed, classes, more)


def digits_apart(predicted: float, end: float | None, classes: bool) -> int:
    """How many digits more than usual tell a prediction from the end of an interval, at most 3.

    >>> digits_apart(0.42, 0.444, True), digits_apart(0.436, 0.438, True)
    (0, 1)
    """
    shown = (lambda v, n: number(100 * v, n)) if classes else (lambda v, n: number(v, 2 + n))
    return next((n for n in range(3) if end is None or shown(predicted, n) != shown(end, n)), 3)


def comparison(best: Group, worst: Group) -> str:
    """Whether two intervals leave each other out."""
    ends = (best.right.low, best.right.high, worst.right.low, worst.right.high)
    if any(end is None for end in ends):
        return "too few rows for an interval"
    apart = max(ends[0], ends[2]) > min(ends[1], ends[3])  # type: ignore[type-var, operator]
    return "the intervals do not overlap" if apart else "the intervals overlap, so that chance may explain it"


def out_of(group: Group) -> Literal["high", "low", ""]:
    """Whether what was predicted on average lies outside the interval of what happened."""
    if group.observed.low is None or group.observed.high is None:
        return ""
    return "high" if group.predicted > group.observed.high else "low" if group.predicted < group.observed.low else ""
