"""What the splits share: columns and their missing values, groups of labels, and rows dealt out at random.

Every split hands its rows out in random order, because halves, as the Weight Erosion paper takes them, are the first
rows and the rest.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from string import ascii_lowercase
from typing import ParamSpec

import numpy as np

from confrere.data.source import Hand, Pool, Split

P = ParamSpec("P")
MOST_CLASSES = 20  # whole numbers with more values than this are amounts, not classes


def named(maker: Callable[P, Split]) -> Callable[P, Split]:
    """Let the split that a function returns bear the function's name, which is then told as the silos' origin."""

    @wraps(maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> Split:
        how = maker(*args, **kwargs)
        how.__name__ = maker.__name__  # type: ignore[attr-defined]
        return how

    return make


def values_of(pool: Pool, column: str) -> np.ndarray:
    """A column by its name, or an error that names the columns there are."""
    if column not in pool.columns:
        known = list(pool.columns)
        more = f" and {len(known) - 20} more" if len(known) > 20 else ""
        raise ValueError(f"there is no column {column!r} to split by; there are {', '.join(known[:20])}{more}")
    return np.asarray(pool.columns[column])


def missing(values: np.ndarray) -> np.ndarray:
    """Which values are missing: NaN, None or an empty text.

    >>> missing(np.array([1.0, np.nan])), missing(np.array(["a", ""]))
    (array([False,  True]), array([False,  True]))
    """
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "OUS":
        return np.array([v is None or v != v or v in ("", b"") for v in values.tolist()], bool)
    return np.zeros(len(values), bool)


def known_of(values: np.ndarray) -> np.ndarray:
    """The values that are not missing, as numbers or words that can be put in order."""
    known = values[~missing(values)]
    return np.array(known.tolist()) if known.dtype.kind == "O" else known


def numbers_of(pool: Pool, column: str) -> np.ndarray:
    """A column of numbers; what is missing is NaN."""
    values = values_of(pool, column)
    gone = missing(values)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~gone] = values[~gone].astype(np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"column {column!r} must hold numbers to be split by limits: {problem}") from problem
    return numbers


def ranks(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The place of every value when put in order, ties in random order, missing values last."""
    gone = missing(values)
    level = np.full(len(values), len(values))
    level[~gone] = np.unique(known_of(values), return_inverse=True)[1]
    place = np.empty(len(values), np.int64)
    place[np.lexsort((rng.random(len(values)), level))] = np.arange(len(values))
    return place


def are_classes(y: np.ndarray) -> bool:
    """Whether labels are classes: few whole numbers. Others are amounts, as in a regression."""
    return bool((y == np.floor(y)).all()) and len(np.unique(y)) <= MOST_CLASSES


def label_groups(y: np.ndarray, groups: int) -> np.ndarray:
    """The class of every row, counted from 0; for amounts, as many groups of equal size in order of the label.

    >>> label_groups(np.array([5, 3, 3]), 2), label_groups(np.array([0.1, 0.9, 0.4, 0.2]), 2)
    (array([1, 0, 0]), array([0, 1, 1, 0]))
    """
    if are_classes(y):
        return np.unique(y, return_inverse=True)[1]
    place = np.argsort(np.argsort(y, kind="stable"), kind="stable")
    return place * min(groups, len(y)) // len(y)


def letters(count: int) -> list[str]:
    """Names for silos: a, b, ..., z, aa, ab, ...

    >>> letters(28)[-3:]
    ['z', 'aa', 'ab']
    """

    def name(number: int) -> str:
        return (name(number // 26 - 1) if number >= 26 else "") + ascii_lowercase[number % 26]

    return [name(i) for i in range(count)]


def check_count(k: int, rows: int) -> None:
    """There must be a silo at least, and a row for each."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k, the number of silos, must be a whole number of 1 or more, not {k!r}")
    if k > rows:
        raise ValueError(f"{rows} rows cannot be dealt out to {k} silos: some would be empty")


def check_share(**shares: float) -> None:
    """Shares lie between 0 and 1."""
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be between 0 and 1, not {share!r}")


def apportion(total: int, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Whole numbers that sum to `total`, each within 1 of its share (the largest remainders are rounded up).

    >>> apportion(10, [1, 1, 1]).tolist()
    [4, 3, 3]
    """
    ideal = total * np.asarray(weights, np.float64) / np.sum(weights)
    counts = np.floor(ideal).astype(np.int64)
    rest = np.argsort(counts - ideal, kind="stable")[: total - counts.sum()]
    counts[rest] += 1
    return counts


def cut(rows: np.ndarray, counts: np.ndarray) -> list[np.ndarray]:
    """Consecutive pieces of the given lengths."""
    ends = [0, *np.cumsum(counts).tolist()]
    return [rows[start:end] for start, end in pairwise(ends)]


def dealt_evenly(rows: np.ndarray, silos: Sequence[int], k: int, first: int = 0) -> list[np.ndarray]:
    """Rows dealt out in turn to some of k silos, beginning with the one at `first`."""
    turn = np.roll(np.asarray(silos), -(first % len(silos)))[np.arange(len(rows)) % len(silos)]
    return [rows[turn == i] for i in range(k)]


def joined(pieces: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """What each silo got in several rounds of dealing, put together."""
    return [np.concatenate(own) for own in zip(*pieces, strict=True)]


def hands(names: Sequence[str], groups: Sequence[np.ndarray], rng: np.random.Generator) -> list[Hand]:
    """A hand per group of rows, in random order; an empty group is an error that names it."""
    empty = [name for name, rows in zip(names, groups, strict=True) if len(rows) == 0]
    if empty:
        raise ValueError(f"this split leaves silo {empty[0]!r} without rows: choose other limits or fewer silos")
    return [Hand(name, rng.permutation(rows)) for name, rows in zip(names, groups, strict=True)]
