"""Splits: the ways to deal the rows of a data set out to silos, each a function that returns a `Split`.

A split is a function of the pooled rows and a random generator, `silos.divide(splits.iid(4), seed=0)` applies it. They
emulate what differs between hospitals: their size, what is recorded, p(x), p(y), p(x|y) and p(y|x) (Kairouz et al.,
Advances and open problems in federated learning, 2019, section 3.1). Every row is dealt out exactly once, no silo is
empty, and the same seed gives the same silos.

Here are the splits by a column and the plain ones; those that skew a distribution are in `confrere.data.skews`.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from confrere.data.pool import (
    apportion,
    check_count,
    cut,
    dealt_evenly,
    hands,
    joined,
    known_of,
    letters,
    missing,
    named,
    numbers_of,
    values_of,
)
from confrere.data.skews import (
    concept_shift,
    dirichlet,
    feature_skew,
    label_skew,
    shards,
    unequal_missingness,
    unequal_sizes,
)
from confrere.data.source import Hand, Pool, Split

__all__ = [
    "age_some",
    "age_strict",
    "age_strict_share_na",
    "by",
    "concept_shift",
    "dirichlet",
    "feature_skew",
    "iid",
    "label_skew",
    "shards",
    "unequal_missingness",
    "unequal_sizes",
]


@named
def iid(k: int = 4) -> Split:
    """k silos of equal size (to one row), rows at random: the same distribution everywhere.

    >>> import confrere as cf
    >>> cf.data.titanic(split=cf.data.splits.iid(5)).names
    ('a', 'b', 'c', 'd', 'e')
    """

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        return hands(letters(k), dealt_evenly(rng.permutation(len(pool.y)), range(k), k), rng)

    return split


@named
def by(column: str) -> Split:
    """One silo per value of a column, in order; rows where it is missing are the last silo, "unknown".

    >>> import confrere as cf
    >>> cf.data.titanic(split=cf.data.splits.by("sex")).names
    ('female', 'male')
    """

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        values = values_of(pool, column)
        gone = missing(values)
        kinds, kind = np.unique(known_of(values), return_inverse=True)
        if 2 * len(kinds) > max(len(values), 40):
            raise ValueError(
                f"column {column!r} has {len(kinds)} values in {len(values)} rows, and each would be a silo: "
                "choose a column with fewer values, or age_strict(limits, column) to cut it into groups"
            )
        known = np.flatnonzero(~gone)
        groups = [known[kind == i] for i in range(len(kinds))]
        return hands_and_unknown([word(v) for v in kinds], groups, np.flatnonzero(gone), rng)

    return split


@named
def age_strict(limits: Sequence[float] = (20, 35), column: str = "age") -> Split:
    """Groups of age, each a silo: up to and including the first limit, ..., over the last; then the unknown.

    AGE_STRICT of the Weight Erosion paper (limits 20 and 35) and of its Ebola case study (20 and 40). It skews the
    features that go with age, and through them p(y|x). Any column of numbers can take the place of age.

    >>> import confrere as cf
    >>> cf.data.titanic(split=cf.data.splits.age_strict((30, 50))).names
    ('0-30', '31-50', '51+', 'unknown')
    """
    check_limits(limits)

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        groups, unknown = age_groups(pool, limits, column)
        return hands_and_unknown(group_names(limits), groups, unknown, rng)

    return split


@named
def age_some(limits: Sequence[float] = (20, 35), column: str = "age") -> Split:
    """All groups of age up to the last limit shuffled together and shared evenly; those over it and the unknown apart.

    AGE_SOME of the Weight Erosion paper: with two limits the first two silos are twins, drawn from one population.

    >>> import confrere as cf
    >>> cf.data.titanic(split=cf.data.splits.age_some((30, 50))).names
    ('0-50 a', '0-50 b', '51+', 'unknown')
    """
    check_limits(limits)

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        (*young, old), unknown = age_groups(pool, limits, column)
        together, over = group_names(limits[-1:])
        twins = dealt_evenly(rng.permutation(np.concatenate(young)), range(len(young)), len(young))
        names = [*(f"{together} {letter}" for letter in letters(len(twins))), over]
        return hands_and_unknown(names, [*twins, old], unknown, rng)

    return split


@named
def age_strict_share_na(limits: Sequence[float] = (20, 35), column: str = "age") -> Split:
    """As `age_strict`, but rows of unknown age are shared out at random, in proportion to the sizes of the groups.

    AGE_STRICT_SHARE_NA of the Weight Erosion authors' program.

    >>> import confrere as cf
    >>> silos = cf.data.titanic(split=cf.data.splits.age_strict_share_na())
    >>> silos.names, tuple(len(s.y) for s in silos.silos)
    (('0-20', '21-35', '36+'), (310, 596, 403))
    """
    check_limits(limits)

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        groups, unknown = age_groups(pool, limits, column)
        if all(len(rows) == 0 for rows in groups):
            raise ValueError(f"column {column!r} is missing in every row: there are no groups to share them among")
        shares = cut(rng.permutation(unknown), apportion(len(unknown), [len(rows) for rows in groups]))
        return hands(group_names(limits), joined([groups, shares]), rng)

    return split


def hands_and_unknown(
    names: list[str], groups: list[np.ndarray], unknown: np.ndarray, rng: np.random.Generator
) -> list[Hand]:
    """A hand per group, and one more for the rows of which nothing is known, if there are any."""
    if len(unknown) == 0:
        return hands(names, groups, rng)
    return hands([*names, "missing" if "unknown" in names else "unknown"], [*groups, unknown], rng)


def check_limits(limits: Sequence[float]) -> None:
    """Limits rise, and there is at least one."""
    if len(limits) == 0 or any(low >= high for low, high in pairwise(limits)):
        raise ValueError(f"limits must be one number or more, each larger than the one before, not {tuple(limits)!r}")


def age_groups(pool: Pool, limits: Sequence[float], column: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Row numbers of every group between the limits (the upper one included), and those of the unknown."""
    age = numbers_of(pool, column)
    known = np.flatnonzero(~np.isnan(age))
    group = np.searchsorted(np.asarray(limits, np.float64), age[known], side="left")
    return [known[group == i] for i in range(len(limits) + 1)], np.flatnonzero(np.isnan(age))


def group_names(limits: Sequence[float]) -> list[str]:
    """Names of the groups: 0-20, 21-35, 36+ for whole numbers, in words for others.

    >>> group_names((20, 35)), group_names((-0.5,))
    (['0-20', '21-35', '36+'], ['up to -0.5', 'over -0.5'])
    """
    if all(float(limit).is_integer() for limit in limits) and limits[0] > 0:
        whole = [-1, *(int(limit) for limit in limits)]
        return [*(f"{low + 1}-{high}" for low, high in pairwise(whole)), f"{whole[-1] + 1}+"]
    middle = [f"{low:g} to {high:g}" for low, high in pairwise(limits)]
    return [f"up to {limits[0]:g}", *middle, f"over {limits[-1]:g}"]


def word(value: object) -> str:
    """A value as a silo's name: whole numbers without a point."""
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
