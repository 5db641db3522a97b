"""Schemes: how a budget is shared out among the silos that helped one user.

    equal       every silo that took part, the same
    rounds      by the rounds that it joined                                    Grimberg et al. 2020, section 3
    rows        by its training rows, which it says itself
    weight      by its weight, summed over the rounds                           Grimberg et al. 2020, section 3
    ndoye       by its rank: the best of k has k points, the last has 1         Grimberg 2020, section 4.3
    influence   by what the user would lose without it, less what chance may explain
    shapley     by what it adds on average over all orders of joining, less what chance may explain
    sure        by all of that, but only to those for whom the whole 95 % interval is above 0

Every scheme gives points; a silo is paid budget * points / (points of all), and nothing where nobody has any. The user
pays, and is not paid. What is paid never exceeds the budget, also in the last digit.

A value v is estimated on few rows, with a standard error e. Paid as it is, luck of silos that give nothing would share
out the whole budget wherever working together is worth little. So influence and Shapley pay

    budget * (v - e^2/v) / sum of max(v, 0)        if v > e, else nothing

the shrinkage of the non-negative garrotte (Breiman: Better subset regression using the nonnegative garrote, 1995): of
a value of one standard error nothing is paid, of two three quarters, of five 96 %. The rest of the budget is kept; with
many rows e is 0, and all of it is paid in proportion to the values.
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
    "influence": "by the user's loss without it, less what chance may explain",
    "shapley": "by what it adds, averaged over all orders of joining, less what chance may explain",
    "sure": "by Shapley's value, to those whose whole interval is above 0",
}


class Payout(NamedTuple):
    """What every silo is paid [n] by one scheme, and the 95 % interval of that; NaN: there is none."""

    amounts: np.ndarray
    low: np.ndarray
    high: np.ndarray


def shared_out(points: np.ndarray, budget: float, errors: np.ndarray | None = None) -> np.ndarray:
    """A budget in proportion to points [..., n]; points below 0, or that are no number, count as 0.

    With standard errors [n] of the points, only the part of a share that is beyond chance is paid.

    >>> shared_out(np.array([3.0, 1.0, -2.0]), 100.0).tolist()
    [75.0, 25.0, 0.0]
    >>> shared_out(np.array([3.0, 1.0, -2.0]), 100.0, np.array([1.5, 1.5, 0.0])).tolist()
    [56.25, 0.0, 0.0]
    """
    counted = np.maximum(np.nan_to_num(points, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
    largest = counted.max(axis=-1, keepdims=True, initial=0.0)
    part = 1.0 if errors is None else beyond_chance(counted, errors)
    counted = counted / np.where(largest > 0, largest, 1.0)  # so that no sum overflows
    total = counted.sum(axis=-1, keepdims=True)
    return within(budget * (part * (counted / np.where(total > 0, total, 1.0))), budget)


def beyond_chance(values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The part of values [..., n], none below 0, that chance does not explain: 1 - (error / value)^2, if above 0.

    >>> beyond_chance(np.array([0.0, 1.0, 2.0, 2.0]), np.array([1.0, 1.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 0.75, 1.0]
    """
    in_errors = np.divide(errors, values, out=np.ones_like(values), where=values > errors)
    return 1.0 - in_errors**2


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
    """What a scheme pays without an interval: for counts or ranks, or to those whom intervals have chosen already."""
    nothing = np.full(len(points), np.nan)
    return Payout(shared_out(points, budget), nothing, nothing.copy())


def estimated(points: np.ndarray, draws: np.ndarray, budget: float, errors: np.ndarray) -> Payout:
    """What a scheme pays whose points are estimates, with draws [n, B] of them, less what chance may explain."""
    low, high = percentiles(shared_out(draws.T, budget, errors).T)
    return Payout(shared_out(points, budget, errors), low, high)
