"""What a silo tells of its columns: aggregates of at least `least` rows, with noise if wanted. Nothing else leaves it.

Of every column: how many values are known and missing. Of a numeric one: mean and standard deviation; the same of the
absolute distance from the silo's own median (for spread, as in the test of Brown and Forsythe, 1974); the share of
final digits 0 and 5; and `bands`, the means of ten equal parts of the sorted values (fewer where a part would have less
than `least`), which trace the distribution (microaggregation: Domingo-Ferrer, Mateo-Sanz, 2002). Of levels: the counts
that `overview` would show.

Nothing is told of a column that is constant, or whose few values would give a small group away (see `overview`). Codes
for gaps, and impossible values, are taken out first, inside the silo. Codes count as missing; an impossible value does
not, since something was written. Where those are a small group, nothing is told of what is missing: the difference from
the count of the other values would give it away.

Noise: a scale of s adds to each number a draw of Laplace's (or the normal) distribution of the size that s typical rows
make: s to a count, s * spread / rows to a mean. The receiver knows s and widens the intervals. It blurs; no
differential privacy is claimed, since sums are not clipped and spreads are not protected.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from confrere.data.overview import gaps_of, named, of_numbers
from confrere.data.source import Shared
from confrere.insight.quality.digits import digits_of
from confrere.insight.quality.recorded import Recorded

BANDS = 10
NoiseKind = Literal["laplace", "gaussian"]


class Numbers(NamedTuple):
    """What is told of a numeric column."""

    known: float
    mean: float
    std: float
    deviation: float  # mean absolute distance from the median
    deviation_std: float
    bands: tuple[float, ...]
    round_digits: float | None  # share of final digits 0 and 5
    noise: float  # standard error that noise adds to a mean, in standard deviations


class Counts(NamedTuple):
    """What is told of a column's levels, hidden ones left out."""

    known: float
    levels: Mapping[str, float]


class Told(NamedTuple):
    """All that one silo tells."""

    silo: str
    numbers: Mapping[str, Numbers]
    counts: Mapping[str, Counts]
    gaps: Mapping[str, tuple[float, float]]  # column -> known, missing; where neither is a small group

    def shared(self) -> list[Shared]:
        """What left the silo, for the record."""
        why = "to compare another silo's records with it"
        found = [
            Shared(self.silo, f"count, mean, spread and means of {len(n.bands)} bands of {name!r}",
                   5 + len(n.bands) + (n.round_digits is not None), why)
            for name, n in self.numbers.items()
        ]  # fmt: skip
        found += [
            Shared(self.silo, f"counts of levels of {n!r}", 1 + len(c.levels), why) for n, c in self.counts.items()
        ]
        return found + [Shared(self.silo, f"known and missing values of {name!r}", 2, why) for name in self.gaps]


class Noise:
    """Draws of a stated scale; none at scale 0."""

    def __init__(self, scale: float, kind: NoiseKind, rng: np.random.Generator):
        self.scale, self.kind, self.rng = scale, kind, rng

    def __call__(self, value: float, unit: float = 1.0) -> float:
        """The value with noise of scale * unit."""
        if self.scale == 0:
            return float(value)
        draw = self.rng.laplace if self.kind == "laplace" else self.rng.normal
        return float(value + draw(0.0, self.scale * unit))

    def error(self, rows: float) -> float:
        """The standard error of a mean of so many rows, in standard deviations, that noise alone makes."""
        return self.scale * (np.sqrt(2) if self.kind == "laplace" else 1.0) / rows


def tell(known: Recorded, own: Recorded, least: int, noise: Noise) -> Told:
    """Inside a silo: what may be told of its columns, of gaps by all that is `known`, else by what can be (`own`)."""
    numbers = {name: numbers_of(own.numbers[name], least, noise) for name in own.numbers}
    counts = {name: counts_of(values, least, noise) for name, values in own.levels.items()}
    counts |= {name: two for name, values in own.numbers.items() if (two := two_values(values, least, noise))}
    gaps = {
        name: gap
        for name in (*own.numbers, *own.levels)
        if not 0 < known.known(name) - own.known(name) < least and (gap := gap_of(known, name, least, noise))
    }
    return Told(own.silo, {n: v for n, v in numbers.items() if v}, {n: c for n, c in counts.items() if c.levels}, gaps)


def numbers_of(column: np.ndarray, least: int, noise: Noise) -> Numbers | None:
    """The aggregates of one numeric column, or None where nothing may be told."""
    values = np.sort(column[~np.isnan(column)])
    rows = len(values)
    if rows < 2 * least or values[0] == values[-1] or of_numbers(values, least)["mean"] is None:
        return None
    parts = np.array_split(values, min(BANDS, rows // least))
    spread, away = float(values.std(ddof=1)), np.abs(values - np.median(values))
    digits = digits_of(values)
    fives = 0 if digits is None else int(np.isin(digits, (0, 5)).sum())
    ended = 0 if digits is None else len(digits)
    return Numbers(
        noise(rows), noise(values.mean(), spread / rows), abs(noise(spread, spread / rows)),
        abs(noise(away.mean(), spread / rows)), abs(noise(away.std(ddof=1), spread / rows)),
        tuple(sorted(noise(part.mean(), spread / len(part)) for part in parts)),
        noise(fives / ended, 1 / ended) if min(fives, ended - fives) >= least else None, noise.error(rows),
    )  # fmt: skip


def gap_of(own: Recorded, name: str, least: int, noise: Noise) -> tuple[float, float] | None:
    """Known and missing values, if neither is a small group."""
    found = gaps_of(own.known(name), own.rows - own.known(name), least)
    if own.rows < least or found["known"] is None:
        return None
    return max(noise(float(found["known"])), 0.0), max(noise(float(found["missing"] or 0)), 0.0)


def counts_of(values: np.ndarray, least: int, noise: Noise) -> Counts:
    """The counts of levels that are no small groups."""
    known = [value for value in values.tolist() if value is not None]
    if len(known) < 2 * least:
        return Counts(0.0, {})
    levels, counts = np.unique(np.array(known, str), return_counts=True)
    shown = named(dict(zip(levels.tolist(), counts.tolist(), strict=True)), least)
    told = {level: max(noise(count), 0.0) for level, count in shown.items() if count is not None}
    return Counts(max(noise(len(known)), 1.0), told)


def two_values(column: np.ndarray, least: int, noise: Noise) -> Counts | None:
    """A numeric column of two values is one of two levels."""
    values = column[~np.isnan(column)]
    if len(np.unique(values)) != 2:
        return None
    return counts_of(np.array([f"{value:g}" for value in values], object), least, noise)


def pooled_bands(told: Sequence[Numbers]) -> tuple[np.ndarray, np.ndarray]:
    """The bands of several silos as points with weights: about the distribution of all their values."""
    points = np.concatenate([n.bands for n in told])
    weights = np.concatenate([np.full(len(n.bands), n.known / len(n.bands)) for n in told])
    order = np.argsort(points)
    return points[order], np.maximum(weights[order], 1e-9)
