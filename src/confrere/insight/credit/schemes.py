"""Schemes: how a budget is shared out among the silos that helped one user.

    equal       every silo that took part, the same
    rounds      by the rounds that it joined                                    Grimberg et al. 2020, section 3
    rows        by its training rows, which it says itself
    weight      by its weight, summed over the rounds                           Grimberg et al. 2020, section 3
    ndoye       by its rank: the best of k has k points, the last has 1         Grimberg 2020, section 4.3
    influence   by what the user would lose without it, if that is above 0
    shapley     by what it adds on average over all orders of joining, if that is above 0
    sure        the same, but only to those for whom the whole 95 % interval is above 0

Every scheme gives points; a silo is paid budget * points / (points of all), and nothing where nobody has any. The user
pays, and is not paid. What is paid never exceeds the budget, also in the last digit.
"""

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from confrere.selection.resampling import percentiles
from confrere.selection.selection import EQUAL

Scheme = Literal["equal", "rounds", "rows", "weight", "ndoye", "influence", "shapley", "sure"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
MEANINGS: dict[str, str] = {
    "equal": "the same for all who took part",
    "rounds": "by rounds joined",
    "rows": "by training rows, as each silo says",
    "weight": "by weight in the model, summed over the rounds",
    "ndoye": "by rank of how well its own model carries over",
    "influence": "by the user's loss without it",
    "shapley": "by what it adds, averaged over all orders of joining",
    "sure": "by Shapley's value, to those whose whole interval is above 0",
}


class Payout(NamedTuple):
    """What every silo is paid [n] by one scheme, and the 95 % interval of that; NaN: there is none."""

    amounts: np.ndarray
    low: np.ndarray
    high: np.ndarray


def shared_out(points: np.ndarray, budget: float) -> np.ndarray:
    """A budget in proportion to points [..., n]; points below 0, or that are no number, count as 0.

    >>> shared_out(np.array([3.0, 1.0, -2.0]), 100.0).tolist()
    [75.0, 25.0, 0.0]
    """
    counted = np.maximum(np.nan_to_num(points, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
    largest = counted.max(axis=-1, keepdims=True, initial=0.0)
    counted = counted / np.where(largest > 0, largest, 1.0)  # so that no sum overflows
    total = counted.sum(axis=-1, keepdims=True)
    return within(budget * (counted / np.where(total > 0, total, 1.0)), budget)


def within(amounts: np.ndarray, budget: float) -> np.ndarray:
    """Amounts [..., n], of which those of one payout do not add up to more than the budget: rounding may have added a
    last digit to each, which is taken off again."""
    while amounts.ndim == 1 and math.fsum([*amounts, -budget]) > 0:  # fsum is exact, so that its sign is right
        amounts = np.nextafter(amounts, 0.0)
    return amounts


def rank_points(scores: np.ndarray, lower_is_better: bool) -> np.ndarray:
    """Points by rank [n]: of k silos with a score the best has k, the last 1, equal ones the mean of theirs; else 0.

    >>> rank_points(np.array([np.nan, 0.2, 0.1, 0.2]), lower_is_better=True).tolist()
    [0.0, 1.5, 3.0, 1.5]
    """
    from scipy.stats import rankdata

    points, known = np.zeros(len(scores)), np.flatnonzero(np.isfinite(scores))
    if not len(known):
        return points
    better = -scores[known] if lower_is_better else scores[known]
    size = EQUAL * max(1.0, float(np.abs(better).max()))
    points[known] = rankdata(np.round(better / size), method="average")
    return points


def settled(points: np.ndarray, budget: float) -> Payout:
    """What a scheme pays whose points are counts, or ranks, without an interval."""
    nothing = np.full(len(points), np.nan)
    return Payout(shared_out(points, budget), nothing, nothing.copy())


def estimated(points: np.ndarray, draws: np.ndarray, budget: float) -> Payout:
    """What a scheme pays whose points are estimates, with draws [n, B] of them."""
    low, high = percentiles(shared_out(draws.T, budget).T)
    return Payout(shared_out(points, budget), low, high)
