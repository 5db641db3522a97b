"""Final digits: where 0 and 5 are too many, values were rounded or guessed.

Final digits of values that spread over several tens of the last place are about uniform. Pearson's chi-square over the
ten digits gives the chance; the effect is by how much the share of 0 and 5 exceeds the 20 % that are expected, or of
0, 2, 4, 6 and 8 the 50 % (a scale with marks at every second unit). Values of 0 are left out: often they say "none".
"""

import numpy as np
from scipy.special import chdtrc

from confrere.insight.quality.finding import Finding
from confrere.report.intervals import share

PLACES = 3  # decimals that are looked at
LEAST_SPREAD = 5.0  # standard deviation in units of the last place; below it digits are not uniform by themselves
LEAST_ROWS = 30
USUAL = 0.9  # part of the values that a place must suffice for
LEAST_EXCESS = 0.1
PATTERNS = {"0 or 5": ((0, 5), 0.2), "an even digit": ((0, 2, 4, 6, 8), 0.5)}


def digits_of(values: np.ndarray) -> np.ndarray | None:
    """The last digit of known values, in the last place that is used by most; None where that means nothing.

    Values with more decimals than nine in ten others, such as the 0.5 years of an infant, are left out.

    >>> digits_of(np.array([36.5, 37.0, 80.25] * 10)).tolist()[:3]
    [0, 0, 5]
    >>> digits_of(np.array([1.0, 2.0] * 20)) is None
    True
    """
    values = values[values != 0]
    if len(values) < LEAST_ROWS or np.abs(values).max() > 1e9:
        return None
    for places in range(PLACES + 1):
        scaled = values * 10**places
        whole = np.round(scaled)
        usual = np.isclose(scaled, whole, rtol=0, atol=1e-6)
        if usual.mean() >= USUAL:
            return None if whole[usual].std() < LEAST_SPREAD else np.abs(whole[usual]).astype(np.int64) % 10
    return None


def digit_preference(column: str, values: np.ndarray, elsewhere: list[float]) -> Finding | None:
    """A test of one column of the silo's own; `elsewhere`: the shares of 0 and 5 that others told."""
    digits = digits_of(values)
    if digits is None:
        return None
    rows = len(digits)
    counts = np.bincount(digits, minlength=10)
    chance = float(chdtrc(9, ((counts - rows / 10) ** 2 / (rows / 10)).sum()))
    excess = {name: counts[list(which)].sum() / rows - expected for name, (which, expected) in PATTERNS.items()}
    pattern = "0 or 5" if excess["0 or 5"] >= LEAST_EXCESS else max(excess, key=lambda name: excess[name])
    which, expected = PATTERNS[pattern]
    found = share(int(counts[list(which)].sum()), rows)
    low, high = (0.0 if end is None else end - expected for end in (found.low, found.high))
    others = f"; elsewhere {min(elsewhere):.0%} to {max(elsewhere):.0%}" if elsewhere and pattern == "0 or 5" else ""
    return Finding(
        "digits", column, f"{column}: {found.value:.0%} of the values end in {pattern}, where {expected:.0%} would",
        f"final digits of {rows} values (Pearson's chi-square, 9 degrees of freedom){others}",
        "values may be rounded or estimated: record what the instrument shows",
        found.value - expected, low, high, "share above what is expected", chance,
        notable=found.value - expected >= LEAST_EXCESS,
    )  # fmt: skip
