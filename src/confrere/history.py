"""What a simulated run leaves behind."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from confrere.core import Block, State, Tree
from confrere.data.silo import place_of
from confrere.program import Entry, Held, Scores


@dataclass(frozen=True, eq=False)
class History:
    """Every round of a run, its final state and the personal models.

    R rounds, n silos, r receivers (1, or n where every silo holds a model of its own). Rounds are rows 0..R-1; losses
    and metrics have one more row, the first being before round 1.
    """

    algorithm: str
    names: tuple[str, ...]
    user: int | None
    static: dict[str, Any]  # the settings of the algorithm
    hyper: dict[str, Any]  # its numbers
    rounds: int
    weights: np.ndarray | None  # [R, r, n] raw, as the rule gave them
    per_silo: bool  # whether row i of the weights is silo i's; else rows are models, which several silos may share
    mass: np.ndarray  # [R, r] total weight of those who took part
    arrived: np.ndarray  # [R, n] who took part, with a finite message
    distance: np.ndarray | None  # [R, 1, n] from the user's message (else the mean one) over its norm; 0: absent
    norm: np.ndarray | None  # [R, n] of each silo's message
    cone: np.ndarray | None  # [R] margin of the cone of messages; 0 or less: they fit in none
    loss: np.ndarray | None  # [R + 1] training loss of the personal model(s)
    metrics: dict[str, np.ndarray]  # name: [R + 1], the user's, or the mean over silos weighted by rows
    silo_metrics: dict[str, np.ndarray]  # name: [R + 1, n], where all silos were evaluated
    validation: dict[str, np.ndarray]  # name: [R + 1] on validation rows, to choose a round by; empty if there are none
    sizes: tuple[int, ...]  # training rows of every silo
    part: str  # the rows that the metrics were measured on
    bytes_up: np.ndarray  # [R, n]
    bytes_down: np.ndarray  # [R, n]; the last model, handed out after round R, is not in it
    stopped: bool  # by the stop rule or a budget, before the rounds asked for
    stopped_by: str  # why and when, in words; empty if it was not
    make_models: Callable[[], Tree] = field(repr=False)
    state: State = field(repr=False)
    key: jax.Array = field(repr=False)
    withdrawn: dict[str, str] = field(default_factory=dict)  # before round 1, as it would be diluted too little: why

    @functools.cached_property
    def models(self) -> Tree:
        """Everybody's personal model, stacked [n, ...]; made when first asked for."""
        return self.make_models()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: with the personal models made, in place of what makes them."""
        return {**self.__dict__, "make_models": functools.partial(as_made, jax.device_get(self.models))}

    def personal(self, silo: int | str) -> Tree:
        """The personal model of a silo, by name or place."""
        place = place_of(self.names, silo)
        return jax.tree.map(lambda a: a[place], self.models)

    @property
    def shares(self) -> np.ndarray | None:
        """The weights [R, r, n] as they counted: the absent at 0, each row summing to 1 (or 0 if nobody counted)."""
        if self.weights is None:
            return None
        counted = np.where(self.arrived[:, None, :] & (self.mass > 0)[:, :, None], self.weights, 0)
        total = counted.sum(axis=2, keepdims=True)
        return np.divide(counted, total, out=np.zeros_like(counted), where=total > 0)

    def summary(self) -> dict[str, Any]:
        """The last row of every metric, and what was sent."""
        last = {name: float(values[-1]) for name, values in self.metrics.items()}
        return {
            "algorithm": self.algorithm, "rounds": self.rounds, "part": self.part, "metrics": last,
            "bytes_up": int(self.bytes_up.sum()), "bytes_down": int(self.bytes_down.sum()),
            "stopped": self.stopped_by or None,
        }  # fmt: skip

    def then(self, later: "History") -> "History":
        """This run and the one that went on from it, as one."""
        per_round = ("weights", "mass", "arrived", "distance", "norm", "cone", "bytes_up", "bytes_down")
        joined: dict[str, Any] = {name: join(getattr(self, name), getattr(later, name)) for name in per_round}
        joined["loss"] = join(self.loss, later.loss, 1)
        for name in ("metrics", "silo_metrics", "validation"):
            one, two = getattr(self, name), getattr(later, name)
            joined[name] = {k: join(one[k], two[k], 1) for k in two}
        return replace(later, rounds=self.rounds + later.rounds, **joined)


def as_made(models: Tree) -> Tree:
    """Models that are made already."""
    return models


def row_for(weights: np.ndarray, user: int, per_silo: bool) -> np.ndarray:
    """Of weights [R, r, n], those behind the user's model [R, n]: its own row, where every silo has one.

    Else the row in which it counts most: the only one or, of several models, the one that it trained; in a round that
    it missed, the one that it trained before.
    """
    if per_silo:
        return weights[:, user]
    rounds, counts = np.arange(len(weights)), weights[:, :, user]
    took_part = np.maximum.accumulate(np.where(counts.max(axis=1) > 0, rounds, 0))  # the last time
    return weights[rounds, counts.argmax(axis=1)[took_part]]


def join(one: np.ndarray | None, two: np.ndarray | None, skip: int = 0) -> np.ndarray | None:
    """Two records in a row, leaving out the first `skip` rows of the second, which the first has already."""
    return None if one is None or two is None else np.concatenate([one, two[skip:]])


class Outcome(NamedTuple):
    """What running a program gave: its final state, the records of its rounds, the scores before them."""

    state: State
    entries: Entry
    before: Scores
    stopped: bool


def recorded(outcome: Outcome, train: Block, held: Held, everybody: bool) -> dict[str, Any]:
    """The fields of a `History` that the records of the rounds hold."""
    record = outcome.entries.record
    seen = record.observed
    distance = seen.get("distance")
    scores = jax.tree.map(
        lambda first, rest: np.concatenate([np.asarray(first)[None], rest]), outcome.before, outcome.entries.scores
    )
    evaluated = scores.loss.shape[1]
    return {
        "weights": record.weights,
        "mass": record.mass,
        "arrived": record.arrived,
        "distance": None if distance is None else distance[:, None, :],
        "norm": seen.get("norm"),
        "cone": seen.get("cone"),
        "loss": by_rows(scores.loss, train.size) if evaluated else None,
        "metrics": {name: by_rows(values, held.test.size) for name, values in scores.metrics.items()},
        "validation": {name: by_rows(values, held.validation.size) for name, values in scores.validation.items()},
        "silo_metrics": dict(scores.metrics) if everybody else {},
    }


def by_rows(values: np.ndarray, rows: Any) -> np.ndarray:
    """The mean over silos [R + 1, k], weighted by their rows; one silo's values as they are."""
    if values.shape[1] == 1:
        return values[:, 0]
    weight = np.asarray(rows, float)
    return values @ weight / max(weight.sum(), 1)
