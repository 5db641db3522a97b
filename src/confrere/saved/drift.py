"""Drift: do later rows look like those a model was trained on, and is it still right about them?

Features are compared by their population stability index, sum (q - p) log(q/p) over the parts in which training rows
were counted (.1 is some movement, .25 is much), and only believed where chance does not explain them: the chi-square
test of the two counts, with Holm's correction for the number of features. Where labels are known, so are the rate of
each class, calibration (observed against predicted), and the log-loss against what the model itself expected.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr

from confrere.saved.folder import Saved
from confrere.saved.reference import counts_like, reference_counts

SOME, MUCH = 0.1, 0.25
CHANCE = 0.01  # below, chance is no explanation
FEWEST = 20  # rows from which anything can be said
Verdict = Literal["retrain", "watch", "fine", "too few rows"]


class Moved(NamedTuple):
    """How far one feature has moved."""

    feature: str
    index: float  # population stability index
    chance: float  # how probable so much movement is without any, corrected for the number of features
    movement: Literal["none", "some", "much"]


class Told(NamedTuple):
    """What the labels say: by class (or for the number), predicted and observed, and how surprising that is."""

    name: str
    before: float  # in training
    predicted: float  # mean over the new rows
    observed: float
    z: float  # observed minus predicted, in standard errors


class Drift(NamedTuple):
    """What `confrere monitor` says."""

    rows: int
    features: tuple[Moved, ...]
    labelled: int  # rows with a label, without those that `predict` refuses
    labels: tuple[Told, ...]  # () if labels are not known
    loss: float | None  # log-loss, or RMSE
    expected: float | None  # log-loss by the model's own probabilities, or the RMSE on its test rows
    verdict: Verdict
    reason: str
    refused: tuple[int, ...] = ()  # rows, counted from 0, that `predict` refuses

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        plain = {**self._asdict(), "features": [f._asdict() for f in self.features]}
        return plain | {"labels": [t._asdict() for t in self.labels]}


def drift(
    saved: Saved, X: np.ndarray, y: np.ndarray | None = None, news: Mapping[str, Sequence[int]] | None = None
) -> Drift:
    """Compare new rows (features as the model takes them; class numbers or amounts) with the training rows.

    Where a label is not known yet `y` is NaN: the row counts for features only.
    `news` says in which of the new rows there is what no training row had, such as an unknown level: each counts as a
    feature of its own. Such rows `predict` refuses: the model is not judged by them, whatever their label.
    """
    news = news or {}
    refused = sorted({int(row) for rows in news.values() for row in rows})
    reference = saved.manifest["reference"]
    counts = {name: len(rows) for name, rows in news.items()}
    moved = moved_features(reference["features"], saved.model.feature_names, X, counts)
    known = np.zeros(len(X), bool) if y is None else ~np.isnan(np.asarray(y, float))
    more = (*about_refused(refused), *about_gaps(len(X), int(known.sum())))
    known[refused] = False
    labels, loss, expected, surprise = (), None, None, 0.0
    if y is not None and known.any():
        labels, loss, expected, surprise = told_by_labels(saved, X[known], np.asarray(y)[known])
    judging = int(known.sum())
    verdict, reason = judged(len(X), moved, judging, labels, surprise, more)
    return Drift(len(X), moved, judging, labels, loss, expected, verdict, reason, tuple(refused))


def moved_features(
    references: Mapping[str, Any], names: Sequence[str], X: np.ndarray, news: Mapping[str, int]
) -> tuple[Moved, ...]:
    """Every feature, and everything new, those that moved most first."""
    found = []
    for j, name in enumerate(names):
        before, now = reference_counts(references[name]), counts_like(references[name], X[:, j])
        found.append((name, stability_index(before, now), chance_of(before, now)))
    trained = int(sum(references[names[0]]["counts"]))
    for name, count in news.items():
        before, now = np.array([trained, 0]), np.array([len(X) - count, count])
        found.append((name, stability_index(before, now), chance_of(before, now)))
    adjusted = holm([chance for _, _, chance in found])

    def movement(index: float, chance: float) -> Literal["none", "some", "much"]:
        if chance >= CHANCE or index < SOME:
            return "none"
        return "much" if index >= MUCH else "some"

    moved = [Moved(name, index, p, movement(index, p)) for (name, index, _), p in zip(found, adjusted, strict=True)]
    return tuple(sorted(moved, key=lambda m: -m.index))


def stability_index(before: np.ndarray, now: np.ndarray) -> float:
    """Population stability index of two counts in the same parts; half a row is added to each part.

    >>> import numpy as np
    >>> round(stability_index(np.array([50, 50]), np.array([50, 50])), 3)
    0.0
    """
    there = (before + now) > 0
    p, q = ((counts[there] + 0.5) / (counts[there] + 0.5).sum() for counts in (before, now))
    return float(((q - p) * np.log(q / p)).sum())


def chance_of(before: np.ndarray, now: np.ndarray) -> float:
    """The chance of so large a difference between two counts if both are draws from one population."""
    table = np.stack([before, now]).astype(float)
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(chdtrc(table.shape[1] - 1, (np.square(table - expected) / expected).sum()))


def holm(chances: Sequence[float]) -> list[float]:
    """Holm's correction: the chance that any of so many is so surprising."""
    order = np.argsort(chances)
    scaled = np.asarray(chances)[order] * np.arange(len(chances), 0, -1)
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected.tolist()


def told_by_labels(saved: Saved, X: np.ndarray, y: np.ndarray) -> tuple[tuple[Told, ...], float, float | None, float]:
    """By class or for the amount; the loss, what was expected of it, and the loss's surprise in standard errors."""
    if saved.model.model.task == "regression":
        return told_by_amounts(saved, X, y)
    chance = saved.model.predict_proba(X)
    counts = np.asarray(saved.manifest["reference"]["label"]["counts"], float)
    names = saved.manifest["labels"] or [str(c) for c in range(len(counts))]
    told = []
    for c, name in enumerate(names):
        error = np.sqrt(max((chance[:, c] * (1 - chance[:, c])).sum(), 1e-12))
        z = ((y == c).sum() - chance[:, c].sum()) / error
        told.append(Told(name, counts[c] / counts.sum(), float(chance[:, c].mean()), float((y == c).mean()), float(z)))
    logs = -np.log(np.clip(chance, 1e-12, 1))
    entropy = (chance * logs).sum(axis=1)
    spread = np.sqrt(max(((chance * np.square(logs)).sum(axis=1) - np.square(entropy)).sum(), 1e-12))
    losses = logs[np.arange(len(y)), y.astype(int)]
    return tuple(told), float(losses.mean()), float(entropy.mean()), float((losses - entropy).sum() / spread)


def told_by_amounts(saved: Saved, X: np.ndarray, y: np.ndarray) -> tuple[tuple[Told, ...], float, float | None, float]:
    """The same for amounts; what was expected is the RMSE on test rows, if there were any."""
    predicted, before = saved.model.predict(X), saved.manifest["reference"]["label"]
    residual = y - predicted
    rmse = float(np.sqrt(np.square(residual).mean()))
    error = max(float(residual.std(ddof=1)) / np.sqrt(len(y)), 1e-12) if len(y) > 1 else np.inf
    name = (saved.manifest["encoding"] or {}).get("label", "label")
    told = Told(name, before["mean"], float(predicted.mean()), float(y.mean()), float(residual.mean() / error))
    test = saved.manifest["test"]
    if test is None:
        return (told,), rmse, None, 0.0
    squares = np.square(residual)
    error = max(float(squares.std(ddof=1)) / np.sqrt(len(y)), 1e-12) if len(y) > 1 else np.inf
    return (told,), rmse, test["rmse"], float((squares.mean() - test["rmse"] ** 2) / error)


def judged(
    rows: int, moved: Sequence[Moved], labelled: int, labels: Sequence[Told], surprise: float, more: Sequence[str]
) -> tuple[Verdict, str]:
    """Whether to train anew, and why, in words."""
    if rows < FEWEST:
        few = "1 row is" if rows == 1 else f"{rows} rows are"
        return "too few rows", f"{few} too few to tell anything; {FEWEST} or more are needed."
    verdict, said = judged_by(moved, labels if labelled >= FEWEST else (), surprise)
    return verdict, " ".join([*said, *more])


def about_refused(rows: Sequence[int]) -> list[str]:
    """Which rows the model is not judged by, as nothing would be predicted for them.

    >>> about_refused([3, 8])
    ['`predict` refuses rows 3, 8 (counted from 0): left out where predictions are compared with labels.']
    """
    if not rows:
        return []
    which = f"{'row' if len(rows) == 1 else 'rows'} {listed(list(map(str, rows)))} (counted from 0)"
    return [f"`predict` refuses {which}: left out where predictions are compared with labels."]


def about_gaps(rows: int, labelled: int) -> list[str]:
    """How many rows have no label, where others have one."""
    if labelled in (0, rows):
        return []
    rest = f"the other {labelled}" if labelled >= FEWEST else f"the other {labelled}, too few to tell anything"
    have = "has" if rows - labelled == 1 else "have"
    return [f"{rows - labelled} of {rows} rows {have} no label: predictions were compared with it in {rest}."]


def judged_by(moved: Sequence[Moved], labels: Sequence[Told], surprise: float) -> tuple[Verdict, list[str]]:
    """The same of enough rows, sentence by sentence."""
    wrong = [t for t in labels if 2 * ndtr(-abs(t.z)) * len(labels) < CHANCE]
    much = [m.feature for m in moved if m.movement == "much"]
    some = [m.feature for m in moved if m.movement == "some"]
    worse = labels and ndtr(-surprise) < CHANCE
    said = [f"{t.name}: {t.observed:.3g} observed, {t.predicted:.3g} predicted." for t in wrong]
    if worse:
        said.append("The model is wrong more often than it expects to be.")
    if much:
        said.append(f"{listed(much)} moved much since training.")
    if some:
        said.append(f"{listed(some)} moved somewhat.")
    if wrong or worse:
        return "retrain", [*said, "Train anew with the new rows."]
    if much or some:
        known = "The model is still right about the labels." if labels else "Collect labels, and look again."
        return "watch", [*said, known]
    right = ", and the model is right about them" if labels else ""
    return "fine", [f"The new rows look like those of training{right}."]


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a row; the rest as a count."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
