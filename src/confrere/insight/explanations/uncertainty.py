"""How sure a model is of each prediction: replicas from rows and silos drawn anew, calibrated on held-out rows.

Amounts have a prediction interval for the label. Classes have an interval for the probability, in log-odds,

    log-odds of p +- z c s(x),    s(x) the standard deviation of the log-odds over replicas,

which says how firmly the probability itself is known, and the set of labels that are possible at the stated level. See
`calibration` for q and c. What could not be calibrated says so: then q is a normal quantile, and c is 1.
"""

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import numpy as np

from confrere.checks import check_numbers
from confrere.core import Tree
from confrere.insight.explanations.calibration import LEAST_ROWS, conformal, dispersion
from confrere.models import Model
from confrere.plural import plural
from confrere.study.cases import round_up

if TYPE_CHECKING:
    from confrere.answers.predictor import Predictor
    from confrere.answers.replicas import Replicas

Held = Literal["validation", "out of bag", "none"]
TINY = 1e-6  # of a probability
LEAST_LEFT_OUT = 5  # replicas that must have left a row out
LEAST_NOISE = 1e-9


class Interval(NamedTuple):
    """Intervals beside predictions: of amounts [rows], of the probability of every class [rows, classes]."""

    low: np.ndarray
    high: np.ndarray
    possible: np.ndarray | None  # [rows, classes] labels that are possible at that level; None for amounts
    level: float
    calibrated: bool  # whether held-out rows vouch for that level
    words: str


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Replicas of a model, and how they were calibrated."""

    members: tuple[Tree, ...] = field(repr=False)  # one per member of the model, stacked [B, ...]
    held: Held  # which rows it was calibrated on
    rows: int  # how many there were
    factor: float  # c
    noise: float  # standard deviation of residuals, of amounts
    scores: np.ndarray = field(repr=False)  # conformal scores, sorted

    @property
    def replicas(self) -> int:
        """How many times rows and silos were drawn."""
        return int(jax.tree.leaves(self.members[0])[0].shape[0])

    def in_words(self, level: float) -> str:
        """What an interval rests on."""
        made = f"{level:.0%} intervals from {plural(self.replicas, 'draw')} of rows and silos"
        if self.held == "none":
            return f"{made}, not calibrated: {self.rows} held-out rows are too few ({LEAST_ROWS} are needed)."
        which = "validation rows" if self.held == "validation" else "training rows, each by the draws that left it out"
        if not np.isfinite(conformal(self.scores, level)):
            return f"{made}; for this level {self.rows} {which} are too few to calibrate the label."
        return f"{made}, calibrated on {self.rows} {which}."

    def interval(self, predictor: "Predictor", rows: Any, level: float = 0.95) -> Interval:
        """Intervals beside the predictions of a model for some rows."""
        check_level(level)
        X = predictor.features(rows)
        again = replica_predictions(predictor, self.members, X)
        q = conformal(self.scores, level)
        sure = self.held != "none" and np.isfinite(q)
        if predictor.model.task == "regression":
            centre, reach = predictor.predict(X), spread_of_amounts(again, self.noise)
            reach = reach * (q if sure else normal_quantile(level))
            return Interval(centre - reach, centre + reach, None, level, sure, self.in_words(level))
        chance = predictor.predict_proba(X)
        reach = normal_quantile(level) * self.factor * log_odds(again).std(axis=0, ddof=1)
        low, high = (1 / (1 + np.exp(-(log_odds(chance) + sign * reach))) for sign in (-1, 1))
        possible = 1 - chance <= q if sure else np.ones(chance.shape, bool)
        possible |= chance >= chance.max(axis=1, keepdims=True)  # the prediction itself is always possible
        return Interval(np.minimum(low, chance), np.maximum(high, chance), possible, level, sure, self.in_words(level))


def check_level(level: float) -> None:
    """A level is a share between 0 and 1."""
    check_numbers(level=level)
    if not 0 < level < 1:
        raise ValueError(f"level is a share above 0 and below 1, such as 0.95, not {level!r}")


def normal_quantile(level: float) -> float:
    """Of the standard normal law, for a two-sided interval."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def log_odds(chance: np.ndarray) -> np.ndarray:
    """log p / (1 - p), kept finite."""
    p = np.clip(np.asarray(chance, float), TINY, 1 - TINY)
    return np.log(p / (1 - p))


def spread_of_amounts(again: np.ndarray, noise: float) -> np.ndarray:
    """s(x) [rows]: noise and what replicas disagree about, from their predictions [B, rows]."""
    return np.sqrt(noise**2 + again.var(axis=0, ddof=1))


def replica_predictions(predictor: "Predictor", members: tuple[Tree, ...], X: np.ndarray) -> np.ndarray:
    """What every replica predicts: amounts [B, rows], or probabilities [B, rows, classes]."""
    padded = np.zeros((round_up(len(X)), X.shape[1]), X.dtype)
    padded[: len(X)] = X
    amounts = predictor.model.task == "regression"
    found = 0.0
    for (weight, _), stacked in zip(predictor.members, members, strict=True):
        told = np.asarray(_replica_outputs(predictor.model, stacked, padded), float)[:, : len(X)]
        found = found + weight * (predictor.units.back(told[:, :, 0]) if amounts else told)
    return np.asarray(found)


@functools.partial(jax.jit, static_argnums=0)
def _replica_outputs(model: Model, stacked: Tree, X: jax.Array) -> jax.Array:
    scores = jax.lax.map(lambda params: model.apply(params, X), stacked)
    return scores if model.task == "regression" else jax.nn.softmax(scores, axis=-1)


def calibrated(
    predictor: "Predictor", replicas: "Replicas", train: tuple[np.ndarray, np.ndarray],
    validation: tuple[np.ndarray, np.ndarray],
) -> Uncertainty:  # fmt: skip
    """Uncertainty from replicas, calibrated on validation rows or, if they are too few, on rows left out of draws."""
    members = replicas.members
    noise = residual_noise(predictor, *train)
    if len(validation[1]) >= LEAST_ROWS:
        X, y = validation
        again = replica_predictions(predictor, members, X)
        centre = predictor.predict(X) if again.ndim == 2 else predictor.predict_proba(X)
        return judged(members, "validation", centre, again, np.asarray(y), noise)
    X, y = train
    left_out = replicas.counts[:, : len(y)] == 0
    usable = left_out.sum(axis=0) >= LEAST_LEFT_OUT
    if usable.sum() < LEAST_ROWS:
        return Uncertainty(members, "none", max(int(usable.sum()), len(validation[1])), 1.0, noise, np.zeros(0))
    again = replica_predictions(predictor, members, X[usable])
    mask = left_out[:, usable].reshape(*again.shape[:2], *(1,) * (again.ndim - 2))
    centre = (again * mask).sum(axis=0) / mask.sum(axis=0)
    return judged(members, "out of bag", centre, again, np.asarray(y)[usable], noise)


def residual_noise(predictor: "Predictor", X: np.ndarray, y: np.ndarray) -> float:
    """The standard deviation of an amount's residuals on training rows; 0 for classes."""
    if predictor.model.task != "regression":
        return 0.0
    return max(float(np.sqrt(np.square(predictor.predict(X) - y).mean())) if len(y) else 1.0, LEAST_NOISE)


def judged(
    members: tuple[Tree, ...], held: Held, centre: np.ndarray, again: np.ndarray, y: np.ndarray, noise: float
) -> Uncertainty:
    """Scores and factor from what was predicted for held-out rows."""
    if again.ndim == 2:
        scores = np.abs(y - centre) / spread_of_amounts(again, noise)
        return Uncertainty(members, held, len(y), 1.0, noise, np.sort(scores))
    label = y.astype(int)
    scores = np.sort(1 - centre[np.arange(len(y)), label])
    classes = range(1, 2) if centre.shape[1] == 2 else range(centre.shape[1])
    factor = max(dispersion(centre[:, c], (label == c).astype(float), again[:, :, c]) for c in classes)
    return Uncertainty(members, held, len(y), float(factor), noise, scores)
