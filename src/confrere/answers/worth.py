"""Whether an answer is better than knowing nothing of a row, and than training alone: if not, it is said.

Of the first a warning is given, too; the second is often a matter of few rows.
"""

import math
from typing import NamedTuple

import numpy as np

from confrere.models.model import Task

CLEARLY_WORSE = 0.01  # than training alone, in log-loss, or in parts of the RMSE
CONSIDER_ALONE = "consider training alone (--algorithm ridge_local)"


class Doubts(NamedTuple):
    """Sentences about what a guess reaches, which deserve a warning, and about what training alone does."""

    guess: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


def log_loss_by_guessing(y: np.ndarray) -> float:
    """The log-loss of always telling the shares of the classes that occur, counting one row more of each.

    >>> round(log_loss_by_guessing(np.array([0, 0, 1, 1])), 3)
    0.693
    """
    _, place, count = np.unique(y, return_inverse=True, return_counts=True)
    return float(-np.log((count[place] + 1) / (len(y) + len(count))).mean())


def doubts_about(task: Task, user: str, y: np.ndarray, score: float, alone: float) -> Doubts:
    """What a reader must know of a score on held-out rows that a guess reaches, or training alone.

    The score is a log-loss or, of amounts, an RMSE.
    """
    return (doubts_about_classes if task == "classification" else doubts_about_amounts)(user, y, score, alone)


def doubts_about_classes(user: str, y: np.ndarray, score: float, alone: float) -> Doubts:
    """The doubts about a log-loss, whose guess is the shares of the classes.

    >>> doubts_about_classes("a", np.array([0, 1]), 0.5, 0.505)
    Doubts(guess=(), alone=())
    >>> doubts_about_classes("a", np.array([0, 1]), 0.6, 0.5).alone[0]
    'On held-out rows it is worse than training alone (log-loss 0.600 against 0.500): consider training alone (--algorithm ridge_local).'
    """  # noqa: E501
    guess = log_loss_by_guessing(y) if len(y) else math.inf
    said = (
        f"{user}: on held-out rows the model is no better than always telling the shares of the user's own classes "
        f"(log-loss {score:.3f} against {guess:.3f})."
    )
    advice = worse_than_alone("log-loss", score, alone)
    return Doubts((said,) * bool(score >= guess), (advice,) * bool(score > alone + CLEARLY_WORSE))


def doubts_about_amounts(user: str, y: np.ndarray, score: float, alone: float) -> Doubts:
    """The doubts about an RMSE, whose guess is the mean.

    >>> doubts_about_amounts("a", np.array([1.0, 3.0]), 1.2, 1.2)
    Doubts(guess=('a: on held-out rows the model tells the label no better than its mean does.',), alone=())
    """
    said = f"{user}: on held-out rows the model tells the label no better than its mean does."
    advice = worse_than_alone("RMSE", score, alone)
    no_better = bool(len(y)) and bool(score >= np.std(y))
    return Doubts((said,) * no_better, (advice,) * bool(score > alone * (1 + CLEARLY_WORSE)))


def worse_than_alone(what: str, score: float, alone: float) -> str:
    """That training alone is better, and what to do."""
    against = f"{what} {score:.3f} against {alone:.3f}"
    return f"On held-out rows it is worse than training alone ({against}): {CONSIDER_ALONE}."
