"""Columns that are distributed otherwise than in the other silos: location, spread, shares of levels, missing values.

The silo has its own rows, and of the others what they told (`telling`). The question of each test is whether its rows
could be rows of the others, taken together:

    location   Welch's t test of means; effect (mean - others' mean) / others' standard deviation (Glass's delta)
    spread     Welch's t test of the absolute distances from the median (Brown, Forsythe 1974); effect: their ratio
    share      Fisher's exact test of each level, times the number of levels; effect: difference (Newcombe 1998)
    missing    Fisher's exact test; effect: difference of shares

That hospitals differ is no mistake: `usual` says by how much each of the others differs from the rest, at most.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from confrere.insight.quality.finding import Finding
from confrere.insight.quality.telling import Counts, Numbers
from confrere.report.intervals import share

LEAST_LOCATION, LEAST_RATIO, LEAST_SHARE = 0.2, 1.25, 0.1  # effects below are not worth a word


class Sample(NamedTuple):
    """Rows, mean and standard deviation; `error` is added to the mean's standard error (noise)."""

    rows: float
    mean: float
    std: float
    error: float = 0.0


class Welch(NamedTuple):
    """A difference of means, its 95 % interval and its chance without any."""

    difference: float
    reach: float
    chance: float


def welch(a: Sample, b: Sample) -> Welch:
    """Welch's test of two means.

    >>> found = welch(Sample(40, 1.0, 1.0), Sample(60, 0.0, 2.0))
    >>> round(found.difference, 2), round(found.reach, 3), round(found.chance, 4)
    (1.0, 0.601, 0.0014)
    """
    parts = [s.std**2 / s.rows + s.error**2 for s in (a, b)]
    squared = sum(parts)
    if squared == 0:
        return Welch(a.mean - b.mean, 0.0, 1.0 if a.mean == b.mean else 0.0)
    freedom = squared**2 / sum(part**2 / (s.rows - 1) for part, s in zip(parts, (a, b), strict=True))
    error = float(np.sqrt(squared))
    chance = 2 * float(stdtr(freedom, -abs(a.mean - b.mean) / error))
    return Welch(a.mean - b.mean, error * float(stdtrit(freedom, 0.975)), chance)


def together(samples: Sequence[Sample]) -> Sample:
    """Several samples as one, their differences being part of its spread."""
    rows = np.array([s.rows for s in samples])
    means, stds = np.array([s.mean for s in samples]), np.array([s.std for s in samples])
    mean = float(rows @ means / rows.sum())
    squares = ((rows - 1) * stds**2 + rows * (means - mean) ** 2).sum()
    error = float(np.sqrt(((rows * [s.error for s in samples]) ** 2).sum()) / rows.sum())
    return Sample(float(rows.sum()), mean, float(np.sqrt(squares / (rows.sum() - 1))), error)


def at(told: Numbers) -> Sample:
    """Where a silo's values are."""
    return Sample(max(told.known, 2.0), told.mean, told.std, told.noise * told.std)


def around(told: Numbers) -> Sample:
    """How far they are from their median."""
    return Sample(max(told.known, 2.0), told.deviation, told.deviation_std, told.noise * told.std)


def own_samples(values: np.ndarray) -> tuple[Sample, Sample]:
    """The same of the silo's own rows."""
    away = np.abs(values - np.median(values))
    return tuple(Sample(len(v), float(v.mean()), float(v.std(ddof=1))) for v in (values, away))  # type: ignore[return-value]


def most_usual(samples: Sequence[Sample], size: Callable[[Sample, Sample], float]) -> float | None:
    """The largest effect by which one of the others differs from the rest of them."""
    if len(samples) < 2:
        return None
    return max(size(s, together([o for o in samples if o is not s])) for s in samples)


def delta(a: Sample, b: Sample) -> float:
    """A difference of means in standard deviations of the second."""
    return abs(a.mean - b.mean) / b.std if b.std else np.inf


def log_ratio(a: Sample, b: Sample) -> float:
    """How different two spreads are."""
    return abs(float(np.log(a.mean / b.mean))) if min(a.mean, b.mean) > 0 else np.inf


def location(column: str, values: np.ndarray, others: Sequence[Numbers]) -> Finding:
    """Whether values are higher or lower than elsewhere."""
    own, samples = own_samples(values)[0], [at(n) for n in others]
    rest = together(samples)
    test = welch(own, rest)
    effect, reach = test.difference / rest.std, test.reach / rest.std
    way = "higher" if effect > 0 else "lower"
    means = sorted(n.mean for n in others)
    span = f"{means[0]:.4g}" if len(means) == 1 else f"{means[0]:.4g} to {means[-1]:.4g} from silo to silo"
    return Finding(
        "location", column, f"{column} is {way} than elsewhere: {own.mean:.4g} on average, against {rest.mean:.4g}",
        f"{len(values)} values against {rest.rows:.0f} (mean {span}; Welch's t test)",
        "other patients, or another way of measuring? If the latter, agree on one",
        effect, effect - reach, effect + reach, "standard deviations of the others", test.chance,
        usual=most_usual(samples, delta), notable=abs(effect) >= LEAST_LOCATION,
    )  # fmt: skip


def spread(column: str, values: np.ndarray, others: Sequence[Numbers]) -> Finding | None:
    """Whether values vary more or less than elsewhere."""
    own, samples = own_samples(values)[1], [around(n) for n in others]
    rest = together(samples)
    if min(own.mean, rest.mean) <= 0:
        return None
    ratio = own.mean / rest.mean
    error = np.sqrt(sum((s.std / s.mean) ** 2 / s.rows + (s.error / s.mean) ** 2 for s in (own, rest)))
    way = "more" if ratio > 1 else "less"
    return Finding(
        "spread", column, f"{column} varies {way} than elsewhere: {ratio:.2f} times as much",
        f"typical distance from the median {own.mean:.3g}, against {rest.mean:.3g} (Brown and Forsythe's test)",
        "a mixture of patients, units or instruments?" if ratio > 1
        else "are some values copied, or filled in by default?",
        ratio, float(ratio * np.exp(-1.96 * error)), float(ratio * np.exp(1.96 * error)), "times the others' spread",
        welch(own, rest).chance, usual=most_usual(samples, log_ratio),
        notable=abs(np.log(ratio)) >= np.log(LEAST_RATIO),
    )  # fmt: skip


class Two(NamedTuple):
    """Hits and rows in the silo and elsewhere, as whole numbers."""

    hits: int
    rows: int
    other_hits: int
    other_rows: int

    def difference(self) -> tuple[float, float, float]:
        """The difference of shares with Newcombe's 95 % interval."""
        a, b = share(self.hits, self.rows), share(self.other_hits, self.other_rows)
        low, high = ((f.low or 0.0, 1.0 if f.high is None else f.high) for f in (a, b))
        down = np.hypot(a.value - low[0], high[1] - b.value)
        up = np.hypot(low[1] - a.value, b.value - high[0])
        gap = a.value - b.value
        return gap, float(gap - down), float(gap + up)

    def chance(self) -> float:
        """Fisher's exact test."""
        from scipy.stats import fisher_exact

        table = [[self.hits, self.rows - self.hits], [self.other_hits, self.other_rows - self.other_hits]]
        return float(fisher_exact(table).pvalue)


def share_difference(column: str, values: Sequence[str], others: Sequence[Counts]) -> Finding | None:
    """The level whose share differs most surely from the others' that tell of it."""
    tests: dict[str, Two] = {}
    for level in sorted({level for c in others for level in c.levels}):
        telling = [c for c in others if level in c.levels]
        rows = max(1, round(sum(c.known for c in telling)))
        hits = min(rows, max(0, round(sum(c.levels[level] for c in telling))))
        tests[level] = Two(sum(value == level for value in values), len(values), hits, rows)
    if not tests:
        return None
    chances = {level: test.chance() for level, test in tests.items()}
    level = min(chances, key=lambda name: chances[name])
    gap, low, high = tests[level].difference()
    shares = [c.levels[level] / c.known for c in others if level in c.levels]
    usual = max(shares) - min(shares) if len(shares) > 1 else None
    two = tests[level]
    return Finding(
        "share", column, f"{column} is {level} {'more' if gap > 0 else 'less'} often than elsewhere: "
        f"{two.hits / two.rows:.0%}, against {two.other_hits / two.other_rows:.0%}",
        f"{two.hits} of {two.rows} against {two.other_hits} of {two.other_rows} (Fisher's exact test"
        f"{f', {len(tests)} levels' if len(tests) > 2 else ''})",
        "other patients, or another meaning of the word? If the latter, agree on one",
        gap, low, high, "difference of shares", min(1.0, chances[level] * (len(tests) if len(tests) > 2 else 1)),
        usual=usual, notable=abs(gap) >= LEAST_SHARE,
    )  # fmt: skip


def missingness(column: str, known: int, missing: int, others: Sequence[tuple[float, float]]) -> Finding:
    """Whether a column is missing more often than elsewhere; that it is missing less often is nothing to mend."""
    gone, there = round(sum(g for _, g in others)), round(sum(k for k, _ in others))
    two = Two(missing, known + missing, max(gone, 0), max(gone + there, 1))
    gap, low, high = two.difference()
    shares = [g / (k + g) for k, g in others if k + g > 0]
    return Finding(
        "missing", column, f"{column} is missing more often than elsewhere: "
        f"{two.hits / two.rows:.0%}, against {two.other_hits / two.other_rows:.0%}",
        f"{two.hits} of {two.rows} rows against {two.other_hits} of {two.other_rows} (Fisher's exact test)",
        "a test that is not done, or not written down?",
        gap, low, high, "difference of shares", two.chance(),
        usual=max(shares) - min(shares) if len(shares) > 1 else None, notable=gap >= LEAST_SHARE,
    )  # fmt: skip
