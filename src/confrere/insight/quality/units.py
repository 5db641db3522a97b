"""Slips of units: values that agree with the other silos' far better once they are converted.

For a conversion f(x) = factor x + shift the distance of the silo's own distribution from the others' bands is

    D(f) = W1(f(own), others) / (typical distance of the others' values from their mean)

with W1 the area between the two distributions (Wasserstein's distance of order 1). A whole column has slipped if
D(as recorded) is large and D(f) is a small part of it; how sure that is shows in how many resamples of the silo's rows
it is so again. A part of a column has slipped if a group of values lies where no other silo has any, and lies in the
middle of where they are once it is converted. Conversions that belong to the quantity (by the column's name) are tried;
of columns whose name says nothing only powers of ten are, and far better agreement is asked for.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from confrere.insight.quality.finding import Finding
from confrere.insight.quality.ranges import quantity_of
from confrere.insight.quality.telling import Numbers, pooled_bands
from confrere.plural import plural
from confrere.report.intervals import share

FAR, PART, NEAR = 1.0, 0.3, 0.75  # D as recorded at least; D converted at most a part of it, and at most so large
FAR_UNNAMED, PART_UNNAMED = 3.0, 0.1
RESAMPLES = 100
AGREED = 0.95  # part of the resamples that must show it again
LEAST_ROWS = 5
GRID = 100  # quantiles in which distributions are compared


class Conversion(NamedTuple):
    """meant = factor * written + shift."""

    written: str
    meant: str
    factor: float
    shift: float = 0.0

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return self.factor * values + self.shift

    def back(self) -> "Conversion":
        """The same the other way round."""
        return Conversion(self.meant, self.written, 1 / self.factor, -self.shift / self.factor)


def both(*given: Conversion) -> tuple[Conversion, ...]:
    """Conversions in both directions."""
    return (*given, *(conversion.back() for conversion in given))


PRESSURE = both(Conversion("kPa", "mmHg", 7.50062), Conversion("cmHg", "mmHg", 10))
MASS, AMOUNT = "mg/dL", "mmol/L"
CONVERSIONS: Mapping[str, tuple[Conversion, ...]] = {  # molar masses: g/mol, of which 10 mg/dL are 1/M mol/L
    "temperature": both(Conversion("°F", "°C", 5 / 9, -160 / 9), Conversion("K", "°C", 1, -273.15)),
    "weight": both(Conversion("pounds", "kg", 0.45359237), Conversion("g", "kg", 0.001)),
    "height": both(Conversion("inches", "cm", 2.54), Conversion("m", "cm", 100), Conversion("feet", "cm", 30.48)),
    "systolic pressure": PRESSURE, "diastolic pressure": PRESSURE,
    "cholesterol": both(Conversion(AMOUNT, MASS, 38.67)), "glucose": both(Conversion(AMOUNT, MASS, 18.016)),
    "creatinine": both(Conversion("µmol/L", MASS, 1 / 88.42)), "bilirubin": both(Conversion("µmol/L", MASS, 1 / 17.1)),
    "urea nitrogen": both(Conversion("mmol/L", MASS, 2.801)),
    "haemoglobin": both(Conversion("g/L", "g/dL", 0.1), Conversion(AMOUNT, "g/dL", 1.6114)),
    "albumin": both(Conversion("g/L", "g/dL", 0.1)), "calcium": both(Conversion(MASS, AMOUNT, 0.2495)),
    "lactate": both(Conversion(MASS, AMOUNT, 0.111)),
    "oxygen saturation": both(Conversion("a share", "%", 100)),
    "age": both(Conversion("months", "years", 1 / 12), Conversion("days", "years", 1 / 365.25)),
}  # fmt: skip
DECIMALS = both(*(Conversion(f"{k:g} times the unit", "the unit", 1 / k) for k in (10, 100, 1000)))


def quantiles(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The quantile function of weighted points, in the middle of GRID equal parts."""
    ends = np.cumsum(weights) / weights.sum()
    return points[np.minimum(np.searchsorted(ends, (np.arange(GRID) + 0.5) / GRID), len(points) - 1)]


class Elsewhere(NamedTuple):
    """The others' distribution: quantiles [GRID], and the typical distance from their mean."""

    quantiles: np.ndarray
    typical: float

    def distance(self, own: np.ndarray) -> np.ndarray:
        """D of quantiles [..., GRID] of the silo's own."""
        return np.abs(own - self.quantiles).mean(axis=-1) / self.typical


def elsewhere_of(others: Sequence[Numbers]) -> Elsewhere:
    """From the bands that the others told."""
    found = quantiles(*pooled_bands(others))
    return Elsewhere(found, float(np.abs(found - found.mean()).mean()) or 1.0)


def own_quantiles(values: np.ndarray, bands: int) -> np.ndarray:
    """The silo's own quantiles, as coarse as the others' bands make theirs [..., GRID]."""
    parts = np.array_split(np.sort(values, axis=-1), min(bands, values.shape[-1]), axis=-1)
    means = np.stack([part.mean(axis=-1) for part in parts], axis=-1)
    place = np.minimum(((np.arange(GRID) + 0.5) / GRID * means.shape[-1]).astype(int), means.shape[-1] - 1)
    return means[..., place]


def candidates(column: str) -> tuple[tuple[Conversion, ...], float, float]:
    """The conversions to try, how far apart distributions must be, and which part of that may be left."""
    named = CONVERSIONS.get(quantity_of(column) or "")
    return (DECIMALS, FAR_UNNAMED, PART_UNNAMED) if named is None else ((*named, *DECIMALS), FAR, PART)


def whole_slip(
    column: str, values: np.ndarray, others: Sequence[Numbers], chance: float, rng: np.random.Generator
) -> Finding | None:
    """Whether all of a column is in another unit; `chance` is that of its location."""
    there = elsewhere_of(others)
    tried, far, part = candidates(column)
    bands = max(len(n.bands) for n in others)
    before = float(there.distance(own_quantiles(values, bands)))
    if before < far or len(values) < LEAST_ROWS:
        return None
    after = {c: float(there.distance(turned(c, own_quantiles(values, bands)))) for c in tried}
    best = min(after, key=lambda c: after[c])
    if after[best] > min(part * before, NEAR):
        return None
    drawn = own_quantiles(rng.choice(values, (RESAMPLES, len(values))), bands)
    again, first = there.distance(turned(best, drawn)), there.distance(drawn)
    agreed = float(np.mean((first >= far) & (again <= np.minimum(part * first, NEAR))))
    low, high = np.percentile(again, [2.5, 97.5])
    return Finding(
        "unit", column, f"{column} seems to be recorded in {best.written}, elsewhere in {best.meant}",
        f"{before:.1f} typical deviations away from the others' distribution as recorded, {after[best]:.2f} once it is "
        f"converted (times {best.factor:.4g}{f', {best.shift:+.4g}' if best.shift else ''}); "
        f"seen again in {agreed:.0%} of {RESAMPLES} resamples",
        f"if so, convert it to {best.meant} before training",
        after[best], float(low), float(high), "typical deviations left after conversion", chance,
        notable=agreed >= AGREED,
    )  # fmt: skip


def turned(conversion: Conversion, quantiles_of: np.ndarray) -> np.ndarray:
    """Converted quantiles, in rising order again."""
    return np.sort(conversion(quantiles_of), axis=-1)


def part_slip(
    column: str, values: np.ndarray, others: Sequence[Numbers], places: np.ndarray
) -> tuple[Finding | None, np.ndarray]:
    """A group of values in another unit, and which they are [rows]; for columns whose name tells the quantity."""
    nobody = np.zeros(len(values), bool)
    named = CONVERSIONS.get(quantity_of(column) or "", ())
    points = elsewhere_of(others).quantiles
    low, high = points[0], points[-1]
    width = high - low
    outside = (values < low - width / 2) | (values > high + width / 2)
    known = int((~np.isnan(values)).sum())
    if not named or outside.sum() < LEAST_ROWS or 2 * outside.sum() > known or width <= 0:
        return None, nobody

    def fits(conversion: Conversion) -> np.ndarray:
        read = conversion(values)
        return outside & (read >= low - width / 4) & (read <= high + width / 4)

    best = max(named, key=lambda c: fits(c).sum())
    slipped = fits(best)
    middle = np.median(best(values[slipped])) if slipped.any() else np.inf
    inner = points[GRID // 5], points[-GRID // 5]
    if slipped.sum() < LEAST_ROWS or slipped.sum() < 0.8 * outside.sum() or not inner[0] <= middle <= inner[1]:
        return None, nobody
    found = share(int(slipped.sum()), known)
    return Finding(
        "unit", column,
        f"{column}: {plural(int(slipped.sum()), 'value')} of {known} seem to be in {best.written}, the rest in "
        f"{best.meant}",
        f"they lie beyond {low - width / 2:.4g} to {high + width / 2:.4g}, where no other value is to be expected, and "
        "in the middle of the others' values once they are converted (a rule, not a test)",
        f"if so, convert these rows to {best.meant}",
        found.value, found.low, found.high, "share of the known values", rows=tuple(places[slipped].tolist()),
    ), slipped  # fmt: skip
