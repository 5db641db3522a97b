"""Whether an answer is better than knowing nothing of a row, and than training alone: if not, it is said aloud."""

import math
import warnings

import numpy as np

from confrere.answers.answer import AnswerWarning

CLEARLY_WORSE = 0.01  # than training alone, in log-loss, or in parts of the RMSE
ALONE = "consider training alone (--algorithm ridge_local)"


def log_loss_by_guessing(y: np.ndarray) -> float:
    """The log-loss of always telling the shares of the classes that occur, counting one row more of each.

    >>> round(log_loss_by_guessing(np.array([0, 0, 1, 1])), 3)
    0.693
    """
    _, place, count = np.unique(y, return_inverse=True, return_counts=True)
    return float(-np.log((count[place] + 1) / (len(y) + len(count))).mean())


def doubts_about_classes(user: str, y: np.ndarray, score: float, alone: float) -> tuple[str, ...]:
    """What a reader must know of a cross-validated log-loss that a guess reaches, or training alone.

    >>> doubts_about_classes("a", np.array([0, 1]), 0.5, 0.505)
    ()
    >>> doubts_about_classes("a", np.array([0, 1]), 0.6, 0.5)
    ('a: on held-out rows it is worse than training alone (log-loss 0.600 against 0.500): consider training alone (--algorithm ridge_local).',)
    """  # noqa: E501
    said = []
    guess = log_loss_by_guessing(y) if len(y) else math.inf
    if score >= guess:
        said.append(
            f"{user}: on held-out rows the model is no better than always telling the shares of the user's own classes "
            f"(log-loss {score:.3f} against {guess:.3f})."
        )
    if score > alone + CLEARLY_WORSE:
        said.append(worse_than_alone(user, "log-loss", score, alone))
    return tuple(said)


def doubts_about_amounts(user: str, y: np.ndarray, score: float, alone: float) -> tuple[str, ...]:
    """The same of a cross-validated RMSE, whose guess is the mean.

    >>> doubts_about_amounts("a", np.array([1.0, 3.0]), 1.2, 1.2)
    ('a: on held-out rows the model tells the label no better than its mean does.',)
    """
    said = []
    if len(y) and score >= np.std(y):
        said.append(f"{user}: on held-out rows the model tells the label no better than its mean does.")
    if score > alone * (1 + CLEARLY_WORSE):
        said.append(worse_than_alone(user, "RMSE", score, alone))
    return tuple(said)


def worse_than_alone(user: str, what: str, score: float, alone: float) -> str:
    """That training alone is better, and what to do."""
    against = f"{what} {score:.3f} against {alone:.3f}"
    return f"{user}: on held-out rows it is worse than training alone ({against}): {ALONE}."


def warn_of(doubts: tuple[str, ...], stacklevel: int) -> tuple[str, ...]:
    """The same, said as warnings; `stacklevel` as for a warning of the caller's own."""
    for text in doubts:
        warnings.warn(text, AnswerWarning, stacklevel=stacklevel + 1)
    return doubts
