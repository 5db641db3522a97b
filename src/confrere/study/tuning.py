"""Tuning: from cross-validation curves to the candidate and the round to take.

Only the user's training rows are looked at. A score that is not finite counts as the worst: a candidate that diverged
is taken only if all did. Of equal ones the first is taken: the earlier candidate, the earlier round.
"""

from typing import NamedTuple

import numpy as np

LARGER_IS_BETTER = ("accuracy", "balanced_accuracy", "auroc")


class Choice(NamedTuple):
    """The candidate that is best after the last round, and the candidate and round that are best of all."""

    last: int
    best: int
    round: int


def larger_is_better(metric: str) -> bool:
    """Whether more of a metric is better."""
    return metric in LARGER_IS_BETTER


def fold_scores(curves: np.ndarray, count: np.ndarray, criterion: str) -> np.ndarray:
    """The cross-validated criterion of every candidate and round [P, R + 1] from that of the folds [F, P, R + 1].

    Folds count by the rows they held out; squared errors are averaged, not their roots. Not finite: NaN.
    """
    there = count > 0
    curves, share = np.asarray(curves, float)[there], count[there] / max(count.sum(), 1)
    power = 2 if criterion == "rmse" else 1
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.tensordot(share, curves**power, 1) ** (1 / power)
    return np.where(np.isfinite(curves).all(axis=0), mean, np.nan)


def choose(scores: np.ndarray, criterion: str) -> Choice:
    """The choices from cross-validated scores [P, R + 1]; the start, before any round, is no choice."""
    badness = np.where(np.isfinite(scores), -scores if larger_is_better(criterion) else scores, np.inf)
    last = int(badness[:, -1].argmin())
    after = badness[:, 1:]
    if not np.isfinite(after).any():
        return Choice(last, last, scores.shape[1] - 1)
    best, round_ = np.unravel_index(int(after.argmin()), after.shape)
    return Choice(last, int(best), int(round_) + 1)
