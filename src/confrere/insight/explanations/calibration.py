"""Calibration: how wide intervals must be, told by rows that took no part in training.

Amounts. With s(x)^2 = noise^2 + variance over replicas, the scores |y - f(x)| / s(x) of n held-out rows give

    f(x) +- q s(x),    q = the ceil((n + 1) level)-th smallest score,

which covers a new row of the same population with at least the stated chance (split conformal prediction: Lei, G'Sell,
Rinaldo, Tibshirani, Wasserman: Distribution-free predictive inference for regression, JASA 2018). For classes the
same with 1 - p(y) as score gives the set of labels that are possible at that level (Sadinle, Lei, Wasserman 2019).

Probabilities. Nobody sees a true probability, but groups of rows show shares. In k groups of equal size, in the order
of the predictions, the observed share o differs from the mean prediction p by chance, p (1 - p) / m, and by what the
model does not know, whose variance v the replicas tell. If they differ by more than chance explains (at 5 %), v is
too small: it is multiplied by c^2 with

    sum over groups (o - p)^2 / (p (1 - p) / m + c^2 v) = k.

Where there are no validation rows, rows of the user that a replica did not draw are held out from it (jackknife+ after
bootstrap: Kim, Xu, Barber: Predictive inference is free with the jackknife+-after-bootstrap, NeurIPS 2020).
"""

import math

import numpy as np

GROUP_ROWS, MOST_GROUPS = 20, 6
LEAST_ROWS = 20  # fewer held-out rows calibrate nothing
MOST_FACTOR = 10.0
CHANCE = 0.05


def conformal(scores: np.ndarray, level: float) -> float:
    """The quantile of n sorted scores that a new one stays below with at least this chance; infinite if n is too small.

    >>> conformal(np.arange(1.0, 20.0), 0.95), conformal(np.arange(1.0, 19.0), 0.95)
    (19.0, inf)
    """
    place = math.ceil((len(scores) + 1) * level - 1e-9)
    return float(scores[place - 1]) if 1 <= place <= len(scores) else math.inf


def groups_of(predicted: np.ndarray) -> list[np.ndarray]:
    """Places of rows in the order of what was predicted, in groups of 20 rows or more."""
    count = max(1, min(MOST_GROUPS, len(predicted) // GROUP_ROWS))
    return np.array_split(np.argsort(predicted, kind="stable"), count)


def dispersion(predicted: np.ndarray, observed: np.ndarray, replicas: np.ndarray) -> float:
    """The factor c by which the spread of replicas must be multiplied; 1 where chance explains what is seen.

    predicted, observed: [rows], of one class; replicas: [B, rows] of its probability.
    """
    gaps: list[float] = []
    chance: list[float] = []
    known: list[float] = []
    for places in groups_of(predicted):
        p, o = predicted[places].mean(), observed[places].mean()
        gaps.append((o - p) ** 2)
        chance.append(max((predicted[places] * (1 - predicted[places])).mean() / len(places), 1e-12))
        known.append(replicas[:, places].mean(axis=1).var(ddof=1))
    square, by_chance, v = map(np.array, (gaps, chance, known))

    def excess(c: float) -> float:
        return float((square / (by_chance + c * c * v)).sum()) - len(square)

    from scipy.special import chdtri

    if excess(1.0) + len(square) <= float(chdtri(len(square), CHANCE)):
        return 1.0
    if excess(MOST_FACTOR) >= 0:
        return MOST_FACTOR
    low, high = 1.0, MOST_FACTOR
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2
