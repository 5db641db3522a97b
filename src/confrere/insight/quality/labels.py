"""Labels that may be wrong: rows whose label a model of the other rows finds hardly possible. Nothing leaves the silo.

Classes: with a share e of wrong labels, spread evenly over the other classes, a row's label y is seen with probability

    q = (1 - e) p_y(x) + e / (C - 1) (1 - p_y(x)),        P(wrong | x, y) = e / (C - 1) (1 - p_y(x)) / q

(Copas: Binary regression models for contaminated data, 1988). p is a logistic regression, fitted by the EM algorithm
with soft labels. Every row is judged by models of the silo's other rows, whose probabilities are tempered by one
power, since models of few rows are too sure of themselves; e and the power are those of `SHARES` and `TEMPERS` under
which held-out labels are most probable. By Markov's inequality the ratio of likelihoods with and without wrong labels
bounds the chance of it all: p <= (number of shares) / ratio. Suspects are rows more likely wrong than right, and the
sum of their P(wrong) says how many of them are. A wrong label near the border of two classes cannot be seen.

Amounts: a suspect is more than four robust standard deviations from what models of other rows predict, and how many are
expected by chance takes errors to be normal.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_softmax, ndtr, pdtrc

from confrere.borrowing.glm import Rows
from confrere.data.silos import Silos
from confrere.insight.quality.fits import FOLDS, foldings, optima
from confrere.insight.quality.own import Own, own_rows

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
ROUNDS = 20  # of the EM algorithm
TEMPERS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the logarithms of probabilities
AWAY = 4.0  # robust standard deviations
ALPHA = 0.05
RIDGE = 0.1  # in units of a row: wrong labels shrink coefficients enough


@dataclass(frozen=True)
class Suspect:
    """A row whose label is likely wrong: with which probability, and what is likely in its place."""

    row: int  # its place in the silo's own table
    label: str
    likely: str
    wrong: float | None  # None for amounts

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Suspects:
    """All suspects, the likeliest to be wrong first; how many of them are expected to be; and the chance of it all."""

    found: tuple[Suspect, ...]
    expected: float  # wrong labels among the suspects
    share: float | None  # of wrong labels in all rows, as estimated; None for amounts
    chance: float
    rows: int  # that were judged; 0: too few, or of one label only

    @property
    def clear(self) -> bool:
        """Whether there are wrong labels at all, beyond what chance explains."""
        return bool(self.found) and self.chance <= ALPHA

    def to_dict(self, rows: bool = True) -> dict[str, Any]:
        """As plain values; without `rows`, for others' eyes."""
        plain = {k: v for k, v in vars(self).items() if k != "found"} | {"suspects": len(self.found)}
        return plain | {"clear": self.clear} | ({"found": [s.to_dict() for s in self.found]} if rows else {})


def label_suspects(silos: Silos, user: int | str, *, l2: float | None = None, seed: int = 0) -> Suspects:
    """Training rows of the silo whose labels may be wrong. For their owner alone.

    >>> import numpy as np, confrere as cf
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> wrong = [x[:, 0].argmin(), x[:, 0].argmax()]  # far from the border of the classes, where it can be seen
    >>> y[wrong] = 1 - y[wrong]
    >>> found = label_suspects(cf.Silos.from_arrays([(x, y)]), 0)
    >>> found.clear, {s.row for s in found.found} == set(wrong)
    (True, True)
    """
    with jax.enable_x64(True):
        rows = max(1, silos.sizes("train")[silos.index(user)])
        own = own_rows(silos, user, RIDGE / rows if l2 is None else l2, "label_suspects")
        if len(own.y) < 2 * FOLDS or len(np.unique(own.y)) < 2:
            return Suspects((), 0.0, None, 1.0, 0)
        if own.task.task == "regression":
            return far_amounts(own, seed)
        y, classes = np.asarray(own.y, np.int64), max(2, silos.classes())
        p = held_out(own, y, classes, seed)
    names = silos.label_names or tuple(map(str, range(classes)))
    return likely_wrong(own, y, p, names)


def folds_of(own: Own, seed: int) -> np.ndarray:
    """A fold for every row; padding is in fold -1."""
    return foldings(own.y, own.rows.y.shape[0], seed, repeats=1)[0]


def held_out(own: Own, y: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """Probabilities [SHARES, n, classes] of the true class of every row, by models of other folds for each share."""
    fold, length = folds_of(own, seed), len(y)
    parts = int(fold.max()) + 1
    kept = np.asarray(own.rows.weight)[:length] * (fold[:length] != np.arange(parts)[:, None])
    live = jax.tree.map(lambda a: jnp.asarray(a)[:length], own.rows)
    copies = Rows(  # every row once with each class, to be weighted by how likely that is
        jnp.tile(live.X, (classes, 1)), jnp.repeat(jnp.arange(classes, dtype=jnp.int32), length),
        jnp.ones(classes * length, live.X.dtype),
    )  # fmt: skip
    e = np.repeat(np.array(SHARES), parts)[:, None, None]
    truth = np.where(np.eye(classes)[y].T == 1, 1 - e, e / (classes - 1))  # [B, classes, n]: of the label
    believed = np.tile(np.eye(classes)[y].T, (len(e), 1, 1))
    kept = np.tile(kept, (len(SHARES), 1))[:, None]
    masks, theta = np.ones((len(e), live.X.shape[1])), None
    p = np.zeros_like(believed)
    for _ in range(ROUNDS):
        theta = optima(copies, (believed * kept).reshape(len(e), -1), masks, own.task, theta)
        p = probabilities(np.asarray(live.X), theta, classes)
        believed = p * truth / np.maximum((p * truth).sum(axis=1, keepdims=True), 1e-300)
    every = p.reshape(len(SHARES), parts, classes, length)
    return np.moveaxis(every[:, fold[:length], :, np.arange(length)], 0, 1)


def probabilities(X: np.ndarray, theta: np.ndarray, classes: int) -> np.ndarray:
    """The classes' probabilities [B, classes, n] under parameters [B, D]."""
    scores = np.moveaxis(X @ theta.reshape(len(theta), X.shape[1], -1), 2, 1)
    if scores.shape[1] < classes:
        scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
    return np.exp(log_softmax(scores, axis=1))


def likely_wrong(own: Own, y: np.ndarray, p: np.ndarray, names: tuple[str, ...]) -> Suspects:
    """Rows more likely wrong than right, under the share that explains held-out labels best."""
    shares, classes = np.array(SHARES)[:, None, None], p.shape[2]
    logs = np.log(np.maximum(p, 1e-300))[:, None] * np.array(TEMPERS)[:, None, None]  # [shares, tempers, n, classes]
    cool = np.exp(log_softmax(logs, axis=3))
    given = cool[:, :, np.arange(len(y)), y]
    other = shares / (classes - 1) * (1 - given)
    seen = np.maximum((1 - shares) * given + other, 1e-12)
    totals = np.log(seen).sum(axis=2)
    best, temper = np.unravel_index(int(totals.argmax()), totals.shape)
    if best == 0:
        return Suspects((), 0.0, 0.0, 1.0, len(y))
    wrong = other[best, temper] / seen[best, temper]
    rows = [r for r in np.argsort(-wrong, kind="stable") if wrong[r] > 0.5]
    instead = np.where(np.arange(classes) == y[:, None], -1.0, p[best]).argmax(axis=1)
    found = tuple(Suspect(int(own.places[r]), names[y[r]], names[instead[r]], float(wrong[r])) for r in rows)
    chance = min(1.0, (len(SHARES) - 1) * float(np.exp(totals[0].max() - totals[best, temper])))
    return Suspects(found, float(wrong[rows].sum()), SHARES[best], chance, len(y))


def far_amounts(own: Own, seed: int) -> Suspects:
    """Rows far from what models of other folds predict for them."""
    fold, length = folds_of(own, seed), len(own.y)
    parts = np.arange(int(fold.max()) + 1)
    weights = np.asarray(own.rows.weight) * (fold != parts[:, None])
    theta = optima(own.rows, weights, np.ones((len(parts), own.rows.X.shape[1])), own.task)
    predicted = np.einsum("mj,mj->m", np.asarray(own.rows.X)[:length], theta[fold[:length]])
    error = np.asarray(own.y, float) - predicted
    scale = float(1.4826 * np.median(np.abs(error - np.median(error)))) or 1e-300
    away = np.abs(error - np.median(error)) / scale
    rows = [r for r in np.argsort(-away, kind="stable") if away[r] > AWAY]
    found = tuple(Suspect(int(own.places[r]), f"{own.y[r]:g}", f"{predicted[r]:.4g}", None) for r in rows)
    usual = float(2 * ndtr(-AWAY) * length)
    chance = float(pdtrc(len(found) - 1, usual)) if found else 1.0
    return Suspects(found, max(0.0, len(found) - usual), None, chance, length)
