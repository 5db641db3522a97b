"""Means and intervals over seeds.

Seeds that split the same rows anew overlap, so that their results are not independent and the usual standard error is
too small. Nadeau and Bengio: Inference for the generalization error, Machine Learning 52 (2003), section 6.1, replace
the variance of the mean s^2 / J by s^2 (1/J + n_test / n_train), J being the number of splits. Both use Student's t
with J - 1 degrees of freedom.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95
SEEDS_FOR_INTERVAL = 3  # fewer say next to nothing of a spread


class Interval(NamedTuple):
    """A mean difference, its standard error, and its 95 % confidence interval; None: unknown, from too few seeds."""

    mean: float
    se: float | None
    low: float | None
    high: float | None


def spread(values: Sequence[float] | np.ndarray) -> float | None:
    """The sample standard deviation; unknown (None) for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def interval(differences: np.ndarray, test_per_train: float | None) -> Interval:
    """The mean of differences over seeds and its interval; `test_per_train` is given where seeds split rows anew.

    Two seeds have a standard error, but no interval.
    """
    from scipy.special import stdtrit

    mean, count = float(np.mean(differences)), len(differences)
    deviation = spread(differences)
    if deviation is None:
        return Interval(mean, None, None, None)
    se = deviation * math.sqrt(1 / count + (test_per_train or 0.0))
    if count < SEEDS_FOR_INTERVAL:
        return Interval(mean, se, None, None)
    reach = se * float(stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    return Interval(mean, se, mean - reach, mean + reach)


def tally(one: np.ndarray, two: np.ndarray, larger: bool) -> tuple[int, int, int]:
    """How often the first is better, equal, worse; what is not a number is worse than any number."""
    worst = -np.inf if larger else np.inf
    one, two = (np.where(np.isnan(v), worst, v) for v in (one, two))
    better = one > two if larger else one < two
    equal = one == two
    return int(better.sum()), int(equal.sum()), int((~better & ~equal).sum())
