"""Intervals for shares and means of few rows.

Wilson's interval for a share: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
JASA 22 (1927). It stays within 0 and 1 and is honest for small counts. Student's t for a mean.
"""

import math

import numpy as np

from confrere.report.contents import Estimate

Z = 1.959963984540054  # 97.5 % of the normal distribution


def share(hits: int, rows: int) -> Estimate:
    """A share with Wilson's 95 % interval.

    >>> [round(v, 3) for v in share(8, 10)]
    [0.8, 0.49, 0.943]
    """
    if rows == 0:
        return Estimate(math.nan)
    p, square = hits / rows, Z * Z
    centre = (p + square / (2 * rows)) / (1 + square / rows)
    reach = Z * math.sqrt(p * (1 - p) / rows + square / (4 * rows * rows)) / (1 + square / rows)
    low = 0.0 if hits == 0 else max(0.0, centre - reach)
    high = 1.0 if hits == rows else min(1.0, centre + reach)
    return Estimate(p, low, high)


def mean(values: np.ndarray) -> Estimate:
    """A mean with Student's 95 % interval; none for a single value.

    >>> [round(v, 2) for v in mean(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.48, 4.48]
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return Estimate(float(values[0]) if count else math.nan)
    centre = float(np.mean(values))
    reach = float(np.std(values, ddof=1)) / math.sqrt(count) * float(stdtrit(count - 1, 0.975))
    return Estimate(centre, centre - reach, centre + reach)
