"""Feedback to the other silos after a selection: their rank, whether they were chosen, and where their model differs.

Grimberg: semester project report (2020), section 4.3, proposes this feedback: the ranking, whether a silo was included,
and which of its model's weights are particularly different from those of f_0, the user's model. Both are trained alike,
and the difference f_i - f_0 has a 95 % interval from resampling the rows on both sides, each silo its own: a silo sends
its model and, beyond what `ndoye` needs, one standard error for each weight. Chances are corrected for the number of
weights (Benjamini and Hochberg). A weight of a column that one of the two silos hardly records is not compared.

A silo with fewer training rows than `min_count` sends nothing, and is told no more than that. Where the user itself has
fewer, nobody sends or is told anything, as every message would be about its few rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy.special import ndtr

from confrere.checks import check_counts
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.insight.quality.finding import false_discovery_rates
from confrere.insight.quality.fits import Task, optima
from confrere.insight.quality.own import model_for
from confrere.insight.quality.recorded import features_of, recorded
from confrere.selection.asking import LEAST, too_few
from confrere.selection.linear import Linear, linear_rows
from confrere.selection.ndoye import ndoye
from confrere.selection.selection import Selection

RESAMPLES = 100
ALPHA = 0.05


@dataclass(frozen=True)
class Difference:
    """A weight of a silo's own model less the user's, with its 95 % interval."""

    feature: str
    difference: float
    low: float
    high: float
    discovery: float

    @property
    def clear(self) -> bool:
        """Whether chance does not explain it."""
        return self.discovery <= ALPHA and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class ToOther:
    """What one silo is told: its rank, which others of an equal score may share (None: it was left out, `why`),
    whether it was chosen, and what differs most."""

    silo: str
    rank: int | None
    of: int
    chosen: bool
    score: float | None
    low: float | None
    high: float | None
    differences: tuple[Difference, ...]  # the clearest first
    why: str | None = None
    shared: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"differences": [{**vars(d), "clear": d.clear} for d in self.differences]}


def to_others(
    silos: Silos,
    user: int | str,
    selection: Selection | None = None,
    *,
    l2: float = 0.01,
    min_count: int = LEAST,
    seed: int = 0,
) -> tuple[tuple[ToOther, ...], tuple[Shared, ...]]:
    """What every other silo is told, the best first, and what left it for that; by default after `ndoye`.

    >>> import confrere as cf
    >>> told, _ = to_others(cf.data.titanic("age-some"), "0-35 a")
    >>> [(t.silo, t.rank, t.chosen) for t in told]
    [('0-35 b', 1, True), ('36+', 2, False), ('unknown', 3, False)]
    """
    check_counts(min_count=min_count)
    seen, place = silos.for_user(user), silos.index(user)
    chosen = ndoye(silos, user, min_count=min_count, seed=seed) if selection is None else selection
    check_selection(chosen, silos.names[place])
    few = with_few_rows(seen, place, min_count)
    ranking = [name for name in chosen.ranking if name not in few]
    with jax.enable_x64(True):
        data = linear_rows(seen, model_for(silos), l2, "to_others")
        rng = np.random.default_rng(seed)
        own, own_draws = resampled(data, place, rng)
        told = []
        for name in (*ranking, *(n for n in (*chosen.ranking, *chosen.silent) if n not in ranking)):
            apart = ()
            if name in ranking:
                theta, draws = resampled(data, silos.index(name), rng)
                error = draws.std(axis=0, ddof=1)  # what the silo sends beside its model
                drawn = theta + error * rng.normal(size=own_draws.shape) - own_draws
                apart = differences(seen, data, theta - own, drawn, compared(silos, place, silos.index(name)))
            told.append(about(chosen, name, ranking, few, apart))
    sent = tuple(
        Shared(
            t.silo,
            "its model's weights with standard errors, and its loss",
            2 * len(data.penalty) + 1,
            "to rank it, and to tell it where its model differs",
        )
        for t in told
        if t.rank is not None
    )
    return tuple(told), sent


def check_selection(selection: Any, user: str) -> None:
    """Refuse what is no selection, and one for somebody else, whose ranks mean nothing here."""
    if not isinstance(selection, Selection):
        raise TypeError(
            f"selection must be what e.g. confrere.selection.ndoye(silos, {user!r}) returns, not {selection!r}"
        )
    whose = selection.names[selection.user]
    if whose != user:
        raise ValueError(f"the selection was made for {whose!r}, but the feedback is for {user!r}: select again")


def with_few_rows(silos: Silos, user: int, least: int) -> dict[str, str]:
    """The silos that neither send nor are judged, with the reason: too few rows, there or at the user."""
    sizes = dict(zip(silos.names, silos.sizes("train"), strict=True))
    own = sizes.pop(silos.names[user])
    few = {name: too_few(rows, least) for name, rows in sizes.items() if rows < least}
    return few if own >= least else dict.fromkeys(sizes, too_few(own, least, silos.names[user])) | few


def resampled(data: Linear, silo: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inside a silo: its model [D], and those of resampled rows [B, D]."""
    rows = data.of(silo)
    weight = np.asarray(rows.weight)
    count = int(weight.sum())
    drawn = rng.multinomial(count, weight / count, size=RESAMPLES)
    weights = np.concatenate([weight[None], drawn])
    theta = optima(rows, weights, np.ones((len(weights), rows.X.shape[1])), Task(data.task, data.penalty))
    return theta[0], theta[1:]


def compared(silos: Silos, user: int, other: int) -> np.ndarray:
    """Features of columns that both silos record in most rows, and that vary in both [features]."""
    every, use = recorded(silos), np.ones(len(silos.feature_names), bool)
    for column, features in features_of(silos).items():
        use[features] = all(every[i].known(column) >= every[i].rows / 2 for i in (user, other))
    vary = [np.ptp(silos.silos[i].X, axis=0) > 0 for i in (user, other)]
    return use & vary[0] & vary[1]


def differences(
    silos: Silos, data: Linear, apart: np.ndarray, drawn: np.ndarray, features: np.ndarray
) -> tuple[Difference, ...]:
    """The differences of weights with intervals, the clearest first; intercepts are left out."""
    scores = len(apart) // (len(features) + 1)
    names = score_names(silos, scores)
    places = [(j * scores + c, f"{silos.feature_names[j]}{names[c]}") for j in np.flatnonzero(features)
              for c in range(scores)]  # fmt: skip
    if not places:
        return ()
    at = np.array([place for place, _ in places])
    low, high = np.percentile(drawn[:, at], [2.5, 97.5], axis=0)
    z = np.abs(apart[at]) / np.maximum(drawn[:, at].std(axis=0, ddof=1), 1e-12)
    rates = false_discovery_rates(2 * ndtr(-z))
    return tuple(
        Difference(places[k][1], float(apart[at[k]]), float(low[k]), float(high[k]), float(rates[k]))
        for k in np.argsort(-z)
    )


def score_names(silos: Silos, scores: int) -> Sequence[str]:
    """What tells the scores of several classes apart."""
    if scores == 1:
        return ("",)
    names = silos.label_names or tuple(map(str, range(scores)))
    return tuple(f" for {name}" for name in names)


def about(
    selection: Selection, name: str, ranking: Sequence[str], few: Mapping[str, str], apart: tuple[Difference, ...]
) -> ToOther:
    """What one silo is told: of those who are not in the ranking, why."""
    if name not in ranking:
        why = few.get(name) or selection.reasons[name]
        return ToOther(name, None, len(ranking), name in selection.kept, None, None, None, (), why)
    place, (rank, shared) = selection.names.index(name), selection.rank(name, ranking)
    score, low, high = (float(values[place]) for values in (selection.scores, selection.low, selection.high))
    return ToOther(name, rank, len(ranking), name in selection.kept, score, low, high, apart, shared=shared)
