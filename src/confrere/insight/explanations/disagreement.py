"""In which features two silos disagree: the squared distance of their gradients, part by part.

    |g_a - g_b|^2 = sum over parts j of |g_a,j - g_b,j|^2,       share_j = |g_a,j - g_b,j|^2 / |g_a - g_b|^2

with g the gradient of the mean loss over a silo's training rows, at one and the same model. Of a linear or logistic
model a part is a feature (its coefficients), or the intercept: exact. Of other models it is a layer. That is the
distance by which Weight Erosion judges (equation 4, relative to |g_a|); an l2 penalty is the same for both, and
cancels.

Intervals come from drawing the rows of both silos anew, with replacement. A squared difference is never 0 on samples,
also if both silos are draws from one population: `by_chance` is what would then be expected of it (the variances of
the two gradients), and a part counts as clear where a chi-square test finds more than that, at 5 %
for all parts together (Holm).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from confrere.checks import check_counts
from confrere.core import Tree
from confrere.data.silos import Silos
from confrere.insight.explanations.gradients import (
    LINEAR,
    draws_of,
    gradients,
    optimum_of_both,
    part_names,
    training_rows,
)
from confrere.insight.explanations.path import finite
from confrere.models import Model
from confrere.selection.resampling import percentiles
from confrere.simulation.inputs import check_params, check_types

if TYPE_CHECKING:
    import polars as pl


class Part(NamedTuple):
    """One feature or layer: its share of the squared distance, with a 95 % interval (NaN: none)."""

    name: str
    share: float
    low: float
    high: float
    squared: float  # |g_a,j - g_b,j|^2
    by_chance: float  # what is expected of it if both silos are draws from one population
    clear: bool  # more than chance explains
    difference: float | None  # g_b,j - g_a,j, where it is one number: of two classes, of the second's log-odds


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Which parts of the model two silos would move differently, the largest share first."""

    a: str
    b: str
    at: str  # at which model the gradients were taken, in words
    distance: float  # |g_a - g_b|
    relative: float  # divided by |g_a|; infinite where that is 0
    interval: tuple[float, float]  # of the distance; NaN: none
    parts: tuple[Part, ...]
    words: tuple[str, ...]

    @property
    def shares(self) -> Mapping[str, float]:
        """Shares by name; they sum to 1 (or are all 0 where the gradients are the same)."""
        return {part.name: part.share for part in self.parts}

    @property
    def table(self) -> "pl.DataFrame":
        """One row per part."""
        import polars as pl

        return pl.DataFrame([part._asdict() for part in self.parts], infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return finite({
            "a": self.a, "b": self.b, "at": self.at, "distance": self.distance, "relative": self.relative,
            "interval": list(self.interval), "parts": [part._asdict() for part in self.parts],
            "words": list(self.words),
        })  # fmt: skip

    def to_json(self) -> str:
        """As a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        return " ".join(self.words)


def disagreement(
    silos: Silos,
    a: int | str,
    b: int | str,
    model: Model | None = None,
    params: Tree = None,
    *,
    resamples: int = 200,
    seed: int = 0,
) -> Disagreement:
    """In which features (of a linear model) or layers (of another) the gradients of two silos differ, and how surely.

    Args:
        model: by default logistic regression for classes, linear regression for amounts.
        params: the model at which gradients are taken. By default, for a linear model, the ridge optimum of both silos
            together: there one silo pulls one way and the other back. Other models need one, such as
            `history.personal(user)`.
        resamples: draws of both silos' rows behind the intervals; 0: none.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> def hospital(slopes):
    ...     X = rng.normal(size=(400, 3))
    ...     return X, X @ slopes + rng.logistic(size=400) > 0
    >>> silos = cf.Silos.from_arrays([hospital([1, 1, 0]), hospital([1, -1, 0])], names=["north", "south"])
    >>> found = cf.insight.disagreement(silos, "north", "south")
    >>> found.parts[0].name, found.parts[0].share > 0.9, found.parts[0].clear
    ('x1', True, True)
    >>> round(sum(found.shares.values()), 6)
    1.0
    """
    from confrere.answers.personalise import fitting_model

    model = fitting_model(silos) if model is None else model
    check_types(model, silos)
    check_counts(0, resamples=resamples)
    places = silos.index(a), silos.index(b)
    rows = [training_rows(silos, place) for place in places]
    at = "the model given"
    if params is None:
        params, at = optimum_of_both(silos, places, model), "the ridge optimum of both together"
    params = check_params(params, model, silos)
    names = part_names(params, model, silos.feature_names)
    drawn = [gradients(model, params, *own, draws_of(len(own[1]), resamples, seed + k)) for k, own in enumerate(rows)]
    return assembled([silos.names[p] for p in places], at, names, drawn, model, resamples)


def assembled(
    names: Sequence[str], at: str, parts: Sequence[str], drawn: Sequence[list[np.ndarray]], model: Model, resamples: int
) -> Disagreement:
    """Shares, intervals and words from the gradients of both silos."""
    resampled = [len(g[0]) > 1 for g in drawn]
    same = names[0] == names[1]
    apart = [one[:1] - two[:1] for one, two in zip(*drawn, strict=True)]
    squares = np.array([np.square(d).sum() for d in apart])
    total = squares.sum()
    shares = squares / total if total > 0 else squares
    low = high = np.full(len(parts), np.nan)
    ends, chance, clear = (np.nan, np.nan), np.full(len(parts), np.nan), np.zeros(len(parts), bool)
    if all(resampled) and not same:
        again = np.stack([np.square(one[1:] - two[1:]).sum(axis=1) for one, two in zip(*drawn, strict=True)])
        whole = again.sum(axis=0)
        low, high = percentiles(again / np.where(whole > 0, whole, 1))
        ends = (float(percentiles(np.sqrt(whole))[0]), float(percentiles(np.sqrt(whole))[1]))
        chance, clear = chances(apart, drawn, model)
    own = float(np.sqrt(sum(np.square(g[:1]).sum() for g in drawn[0])))
    differences = [single(-d[0], model) for d in apart]
    found = [
        Part(
            name, float(shares[j]), float(low[j]), float(high[j]), float(squares[j]), float(chance[j]), bool(clear[j]),
            differences[j],
        )
        for j, name in enumerate(parts)
    ]  # fmt: skip
    found.sort(key=lambda part: -part.share)
    relative = float(np.sqrt(total)) / own if own > 0 else (0.0 if total == 0 else np.inf)
    drawn_anew = (ends[0] / own, ends[1] / own) if own > 0 else (np.inf, np.inf)
    words = in_words(names, found, relative, drawn_anew, all(resampled) and not same, resamples)
    return Disagreement(names[0], names[1], at, float(np.sqrt(total)), relative, ends, tuple(found), tuple(words))


def chances(apart: list[np.ndarray], drawn: Sequence[list[np.ndarray]], model: Model) -> tuple[np.ndarray, np.ndarray]:
    """What is expected of every squared difference by chance, and whether the one seen is more than chance explains.

    Under one population the difference has the sum of the variances of both gradients, told by the draws; its square
    over that is chi-square with as many degrees of freedom as the variance has equal parts (Satterthwaite).
    """
    from scipy.special import chdtrc

    from confrere.saved.drift import holm

    expected: list[float] = []
    chance: list[float] = []
    for j, d in enumerate(apart):
        variance = np.sum([np.var(g[j][1:], axis=0, ddof=1) for g in drawn], axis=0)
        mean, spread = float(variance.sum()), float(np.square(variance).sum())
        if model.name in LINEAR and d.shape[1] == 2:
            spread = mean**2  # of two classes both columns are the same number, with either sign
        freedom = mean**2 / spread if spread > 0 else 1.0
        p = chdtrc(freedom, freedom * float(np.square(d).sum()) / mean) if mean > 0 else float(not d.any())
        expected.append(mean)
        chance.append(float(p))
    return np.array(expected), np.array(holm(chance)) < 0.05


def single(difference: np.ndarray, model: Model) -> float | None:
    """A difference that is one number: of an amount, or of the log-odds of the second of two classes."""
    if model.name not in LINEAR or len(difference) > 2:
        return None
    return float(difference[-1])


def in_words(
    names: Sequence[str], parts: Sequence[Part], relative: float, drawn_anew: tuple[float, float], resampled: bool,
    resamples: int,
) -> list[str]:  # fmt: skip
    """What drives the disagreement, and how sure that is."""
    from confrere.answers.words import listing, percent

    a, b = names
    if parts[0].share == 0:
        return [f"The gradients of {a} and {b} are the same: there is no disagreement."]
    if not resampled:
        why = "none were asked for" if resamples == 0 else "a single row cannot be drawn anew"
        largest = [f"{p.name} {percent(p.share)}" for p in parts[:3] if p.share > 0]
        return [f"{a} and {b} disagree most about {listing(largest)}; there are no intervals, as {why}."]
    clear = [p for p in parts if p.clear]
    low, high = drawn_anew
    spread = f"{low:.2f} to {high:.2f} with rows drawn anew"
    far = f"the gradient of {b} is {relative:.2f} times that of {a} away from it, {spread}"
    if not clear:
        return [f"{a} and {b} do not clearly disagree: chance may explain all of it ({far})."]
    told = [f"{p.name} ({percent(p.share)}, 95 %: {percent(p.low)} to {percent(p.high)})" for p in clear[:4]]
    rest = len(parts) - len(clear)
    more = ", the share of the difference in brackets" if len(clear) <= 4 else f" and {len(clear) - 4} more"
    said = [f"{a} and {b} clearly disagree about {listing(told)}{more}: {far}."]
    said += [f"Of {rest} other parts of the model chance may explain the difference."] if rest else []
    if not parts[0].clear:
        said.append(f"Among these is {parts[0].name}, with the largest share ({percent(parts[0].share)}).")
    return said
