"""The measures: what each asks, how it is written, and what has to cross the border for it.

    models        |theta_i - theta_j|                                        coefficients of the silos' own models
    gradients     sum_r |g_i - g_j| / sum_r (|g_i| + |g_j|)/2                over the rounds r of a short common run
    transfer      loss of j's model on i's rows - its loss at home           Ndoye; not the same both ways
    influence     rise of i's loss without j                                 not the same both ways; no distance
    outcomes      1/2 sum_c |share_i(c) - share_j(c)|                        of amounts: see features
    features      root mean over features of (mean_i - mean_j)^2 + (sd_i - sd_j)^2,   in pooled standard deviations
    predictions   mean over the common set of the total variation between the predictions of i's and j's models

The distance of outcomes that are amounts, and of a feature, is the 2-Wasserstein distance of two normal laws.
"""

from typing import NamedTuple

import numpy as np

from confrere.insight.similarity.measured import Norm


class Measure(NamedTuple):
    """A measure in words."""

    title: str
    asks: str
    unit: str
    reveals: str
    most: float = np.inf  # no two silos are farther apart


RESAMPLED = "every silo's training rows drawn anew, inside the silo"
MEASURES = {
    "models": Measure(
        "What their own models learnt", "do our models weigh features alike?", "distance between coefficients",
        "the coefficients of a model that each silo trains alone",
    ),
    "gradients": Measure(
        "Where they pull a common model", "do we pull a common model the same way?",
        "distance between gradients over their mean length (0 to 2)",
        "one gradient for each round of a short common run", 2.0,
    ),
    "transfer": Measure(
        "How well a model carries over", "does your model carry over to my patients?",
        "loss a row on the user's rows, less that at home (of the column's model, on the row's patients)",
        "each silo's own model and its cross-validated loss to all others, and how those did there",
    ),
    "influence": Measure(
        "Who would be missed", "would I miss you?", "rise of the user's loss a row without the other",
        "rows, loss, gradient and curvature of each silo around the common model",
    ),
    "outcomes": Measure(
        "How common the outcome is", "is the outcome as common with you?", "difference between shares (0 to 1)",
        "the number of rows of every class that enough rows have", 1.0,
    ),
    "features": Measure(
        "What their patients are like", "are your patients like mine?", "standard deviations, root mean over features",
        "rows, mean and standard deviation of every feature that enough rows know",
    ),
    "predictions": Measure(
        "What they would predict for the same patients", "would we predict the same?",
        "mean difference between predicted probabilities (0 to 1)",
        "predictions for rows that belong to nobody", 1.0,
    ),
}  # fmt: skip
AMOUNTS = {  # what is otherwise where labels are amounts
    "outcomes": MEASURES["outcomes"]._replace(
        title="How large the outcome is", unit="standard deviations of the outcome", most=np.inf,
        reveals="rows, mean and standard deviation of the outcome",
    ),
    "predictions": MEASURES["predictions"]._replace(
        unit="mean difference between predictions, in standard deviations of the outcome", most=np.inf
    ),
}  # fmt: skip


def measure_of(name: str, task: str) -> Measure:
    """A measure in words, for classes or for amounts."""
    return AMOUNTS.get(name, MEASURES[name]) if task == "regression" else MEASURES[name]


def euclidean(difference: np.ndarray) -> np.ndarray:
    """The length of differences [n, n, K]."""
    return np.linalg.norm(difference, axis=-1)


def variation(difference: np.ndarray) -> np.ndarray:
    """Half the sum of absolute differences of shares [n, n, K]."""
    return np.abs(difference).sum(axis=-1) / 2


def mean_variation(outputs: int, both: bool) -> Norm:
    """The mean over rows of the total variation of predictions [n, n, c * outputs]; one probability stands for both."""
    share = 1.0 if both else 0.5 * outputs
    return lambda difference: share * np.abs(difference).mean(axis=-1)


def rounds_over(vectors: np.ndarray, rounds: int) -> Norm:
    """The sum over rounds of lengths of gradient differences, over the mean length of both [n, n, rounds * D]."""
    lengths = np.linalg.norm(vectors.reshape(len(vectors), rounds, -1), axis=2).sum(axis=1)
    size = (lengths[:, None] + lengths[None]) / 2

    def norm(difference: np.ndarray) -> np.ndarray:
        apart = np.linalg.norm(difference.reshape(*difference.shape[:2], rounds, -1), axis=3).sum(axis=2)
        return np.divide(apart, size, out=np.zeros_like(apart), where=size > 0)

    return norm


def spreads_over(scale: np.ndarray) -> Norm:
    """The root mean over features that both know of squared differences [n, n, 2 d], in units of scale [d]."""

    def norm(difference: np.ndarray) -> np.ndarray:
        squares = np.square(difference.reshape(*difference.shape[:2], -1, 2) / scale[:, None]).sum(axis=-1)
        known = ~np.isnan(squares)
        count = known.sum(axis=-1)
        total = np.where(known, squares, 0.0).sum(axis=-1)
        return np.sqrt(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))

    return norm
