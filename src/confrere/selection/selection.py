"""What a method of selection returns: scores, their intervals, reasons, what crossed the border, and a prior."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from confrere.checks import check_counts, check_numbers
from confrere.data.silo import place_of
from confrere.plural import plural

if TYPE_CHECKING:
    from rich.table import Table

KEEP, LEAVE = "keep", "leave"
EQUAL = 1e-9  # scores that differ by less, relative to their range, are the same


class Crossing(NamedTuple):
    """What passed between the user and one silo: in words, and in bytes from it (up) and to it (down)."""

    silo: str
    what: str
    up: int
    down: int


class Rank(NamedTuple):
    """Which place a silo has in a ranking, 1 the best, and whether others with an equal score have it, too."""

    place: int
    shared: bool


@dataclass(frozen=True, eq=False)
class Selection:
    """Whom to learn with, for one user: how useful every silo looks, why, and who is to take part.

    Arrays are over silos [n]. `scores` are in the method's own units and sign (`lower_is_better`); the user's own
    entry, and that of a silo that did not answer, is NaN. `prior` is what training takes: 1 for the user and for
    whoever is kept, 0 for a silo that takes no part. Nothing is trained with it before the user has seen it, and every
    choice returns a new selection:

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4, 60, 2))
    >>> silos = cf.Silos.from_arrays([(x, (x[:, 0] > 0) ^ (i == 3)) for i, x in enumerate(X)], names=list("abcd"))
    >>> found = cf.selection.ndoye(silos, user="a")
    >>> found.ranking[-1], found.kept, found.best(1).override({"c": "keep", "b": "keep"}).kept
    ('d', ('b', 'c'), ('b', 'c'))
    """

    method: str
    names: tuple[str, ...]
    user: int
    scores: np.ndarray  # [n]
    low: np.ndarray  # [n] of the 95 % interval
    high: np.ndarray  # [n]
    lower_is_better: bool
    reasons: Mapping[str, str]
    crossings: tuple[Crossing, ...]
    resampled: str  # what was resampled for the intervals, and what was not
    unit: str  # of the scores, in words
    prior: np.ndarray  # [n]
    rule: str = "everybody who answered"  # how those who are kept were chosen, in words
    overridden: Mapping[str, str] = field(default_factory=dict)  # what the user decided by hand

    @property
    def ranking(self) -> list[str]:
        """The silos' names, the most useful first; equal scores in the order of the names."""
        sign = 1 if self.lower_is_better else -1
        known = [i for i in range(len(self.names)) if not math.isnan(self.scores[i])]
        return [self.names[i] for i in sorted(known, key=lambda i: (sign * self.scores[i], self.names[i]))]

    def rank(self, silo: int | str, among: Sequence[str] | None = None) -> Rank:
        """The rank of a silo that has a score, by default among all that have one; equal scores share the best."""
        sign = 1 if self.lower_is_better else -1
        values = sign * np.array([self.score(name) for name in (self.ranking if among is None else among)])
        apart = (values - sign * self.score(silo)) / max(1.0, np.abs(values).max())
        return Rank(1 + int((apart < -EQUAL).sum()), int((np.abs(apart) <= EQUAL).sum()) > 1)

    @property
    def silent(self) -> tuple[str, ...]:
        """Silos that were not asked, did not answer, or whose answer could not be used: `reasons` says which."""
        return tuple(n for i, n in enumerate(self.names) if i != self.user and math.isnan(self.scores[i]))

    @property
    def kept(self) -> tuple[str, ...]:
        """The silos that take part in training beside the user."""
        return tuple(n for i, n in enumerate(self.names) if i != self.user and self.prior[i] > 0)

    @property
    def intervals(self) -> np.ndarray:
        """The 95 % intervals [n, 2]."""
        return np.stack([self.low, self.high], axis=1)

    @property
    def bytes_up(self) -> np.ndarray:
        """Bytes that left every silo for the user [n]."""
        return np.array([sum(c.up for c in self.crossings if c.silo == name) for name in self.names])

    @property
    def bytes_down(self) -> np.ndarray:
        """Bytes that every silo received [n]."""
        return np.array([sum(c.down for c in self.crossings if c.silo == name) for name in self.names])

    def score(self, silo: int | str) -> float:
        """The score of one silo."""
        return float(self.scores[place_of(self.names, silo)])

    def best(self, k: int) -> "Selection":
        """Keep the k best alone."""
        check_counts(k=k)
        return self.keeping(self.ranking[:k], f"the {plural(k, 'best', 'best')}")

    def below(self, threshold: float) -> "Selection":
        """Keep those whose score is below a threshold, where lower is better."""
        check_numbers(-math.inf, threshold=threshold)
        if not self.lower_is_better:
            raise ValueError(f"higher is better for {self.method}: say above({threshold:g})")
        return self.keeping([n for n in self.ranking if self.score(n) < threshold], f"scores below {threshold:g}")

    def above(self, threshold: float) -> "Selection":
        """Keep those whose score is above a threshold, where higher is better."""
        check_numbers(-math.inf, threshold=threshold)
        if self.lower_is_better:
            raise ValueError(f"lower is better for {self.method}: say below({threshold:g})")
        return self.keeping([n for n in self.ranking if self.score(n) > threshold], f"scores above {threshold:g}")

    def drop(self) -> "Selection":
        """Keep those before the largest gap between neighbours in the ranking; all of them where scores are equal."""
        values = np.array([self.score(name) for name in self.ranking])
        gaps = np.abs(np.diff(values))
        if not len(gaps) or gaps.max() <= EQUAL * max(1.0, np.abs(values).max()):
            return self.keeping(self.ranking, "all, as no score stands apart")
        return self.keeping(self.ranking[: int(gaps.argmax()) + 1], "those before the largest gap between scores")

    def graded(self) -> "Selection":
        """A prior in proportion to the scores of those who are kept, the best (and the user) 1, where higher is better.

        What is not above 0 takes no part, unless it is kept by hand: the user has the last word. A silo that is kept by
        hand counts by its score if that is above 0, else as 1.
        """
        if self.lower_is_better:
            raise ValueError(f"the scores of {self.method} are no shares: choose with best, below or drop")
        largest = max([self.score(n) for n in self.ranking if n in self.kept], default=0.0)
        share = np.maximum(np.nan_to_num(self.scores, nan=largest), 0) / (largest if largest > 0 else 1.0)
        by_hand = np.array([self.overridden.get(name) == KEEP for name in self.names])
        prior = np.where(self.prior > 0, np.minimum(np.where(by_hand & (share == 0), 1.0, share), 1.0), 0.0)
        prior[self.user] = 1.0
        return replace(self, prior=prior, rule=f"{self.rule}, in proportion to their scores")

    def override(self, decisions: Mapping[str, str | bool]) -> "Selection":
        """Keep or leave silos by hand, whatever their scores: `{"north": "keep", "south": "leave"}`, or True and False.

        Also a silo that did not answer can be kept: training will wait for it as for any other.
        """
        prior, said = self.prior.copy(), dict(self.overridden)
        for name, decision in decisions.items():
            place = place_of(self.names, name)
            if decision not in (KEEP, LEAVE, True, False):
                raise ValueError(f"silo {name!r}: say 'keep' or 'leave', not {decision!r}")
            stays = decision in (KEEP, True)
            if place == self.user and not stays:
                raise ValueError(f"silo {name!r} is the user, for whom the model is made: it cannot be left out")
            prior[place] = (self.prior[place] or 1.0) if stays else 0.0
            said[self.names[place]] = KEEP if stays else LEAVE
        return replace(self, prior=prior, overridden=said)

    def keeping(self, names: Sequence[str], rule: str) -> "Selection":
        """The same scores with these silos kept; what was decided by hand stays as decided."""
        prior = np.array([1.0 if i == self.user or n in names else 0.0 for i, n in enumerate(self.names)])
        chosen = replace(self, prior=prior, rule=rule, overridden={})
        return chosen.override(self.overridden) if self.overridden else chosen

    def prior_for(self, names: Sequence[str]) -> np.ndarray:
        """The prior in the order of other silos' names; one that was never judged is refused."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise ValueError(
                f"silo {unknown[0]!r} is not in the selection by {self.method} ({', '.join(self.names)}): select again"
            )
        return np.array([self.prior[self.names.index(name)] for name in names])

    def to_dict(self) -> dict[str, Any]:
        """The selection as plain values, for JSON; silos without a score are in `silent`."""
        scored = {name: self.names.index(name) for name in self.ranking}
        return {
            "scores": {name: float(self.scores[i]) for name, i in scored.items()},
            "ranking": self.ranking,
            "intervals": {n: [finite(self.low[i]), finite(self.high[i])] for n, i in scored.items()},
            "resampled": self.resampled, "unit": self.unit, "lower_is_better": self.lower_is_better,
            "user": self.names[self.user], "kept": list(self.kept), "silent": list(self.silent), "rule": self.rule,
            "overridden": dict(self.overridden), "prior": dict(zip(self.names, self.prior.tolist(), strict=True)),
            "reasons": dict(self.reasons), "crossings": [c._asdict() for c in self.crossings],
        }  # fmt: skip

    def to_json(self) -> str:
        """The selection as a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def table(self) -> "Table":
        """A table for a terminal."""
        from confrere.selection.words import table_of

        return table_of(self)

    def __rich__(self) -> "Table":
        return self.table()

    def __str__(self) -> str:
        from confrere.selection.words import plain_text

        return plain_text(self)


def finite(value: float) -> float | None:
    """A number, or None where there is none."""
    return float(value) if math.isfinite(value) else None
