"""What an explanation of weights is: a table of rounds whose terms add up, and sentences."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from confrere.data.silo import place_of
from confrere.history import History, row_for

if TYPE_CHECKING:
    import polars as pl

EXACT = (
    "These numbers are exact for this run, so they have no interval; other rows, or another seed, would give others."
)
AGREES = 1e-4  # how far terms may be from a recorded weight, relative to the largest: rounding, in single precision


@dataclass(frozen=True, eq=False)
class Why:
    """Why a silo had the weight it had, in the eyes of one user.

    `columns` has one value per round. With `adds_up="change"` the terms sum to the change of the weight in a round,
    with "weight" to the weight itself; with "" there are none. None stands where nothing was weighed.
    """

    algorithm: str
    user: str
    silo: str
    adds_up: Literal["change", "weight", ""]
    terms: Mapping[str, str]  # name: meaning, in words
    columns: Mapping[str, list[Any]] = field(repr=False)  # round, what was seen, the terms, weight and share
    words: tuple[str, ...]  # the first says it in one sentence

    @property
    def sentence(self) -> str:
        """It in one sentence."""
        return self.words[0]

    @property
    def table(self) -> "pl.DataFrame":
        """The rounds, one row each."""
        import polars as pl

        return pl.DataFrame(dict(self.columns), strict=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "algorithm": self.algorithm, "user": self.user, "silo": self.silo, "adds_up": self.adds_up,
            "terms": dict(self.terms), "rounds": {name: list(values) for name, values in self.columns.items()},
            "words": list(self.words),
        }  # fmt: skip

    def to_json(self) -> str:
        """As a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        return " ".join(self.words)


class Seen(NamedTuple):
    """What a run recorded about one silo and one user."""

    user: int
    silo: int
    weights: np.ndarray  # [R, n] raw, behind the user's model
    shares: np.ndarray  # [R, n] as they counted
    distance: np.ndarray | None  # [R, n]
    here: np.ndarray  # [R, n]


def seen_in(history: History, silo: int | str, user: int | str | None) -> Seen:
    """The records of a run as one user's model saw them; `user` is needed where the algorithm has none."""
    whose = history.hyper.get("user", history.user) if user is None else place_of(history.names, user)
    if whose is None:
        raise ValueError(f"{history.algorithm} makes a model for everybody: say for whom, user='{history.names[0]}'")
    place, shares = place_of(history.names, silo), history.shares
    if not history.rounds:
        raise ValueError("the run has no rounds: there are no weights to explain")
    if history.weights is None or shares is None:
        raise ValueError("the run did not record weights: run simulate with record=('weights', 'distance', 'norm')")
    raw, counted = (row_for(w, int(whose), history.per_silo).astype(float) for w in (history.weights, shares))
    distance = None if history.distance is None else history.distance[:, 0].astype(float)
    return Seen(int(whose), place, raw, counted, distance, history.arrived)


def distances_from(seen: Seen, history: History) -> np.ndarray:
    """The recorded distances [R, n] from the user's messages, or why there are none."""
    if seen.distance is None:
        raise ValueError("the run did not record distances: run simulate with record=('weights', 'distance', 'norm')")
    if history.user != seen.user:
        measured = "the mean message" if history.user is None else f"{history.names[history.user]}'s message"
        raise ValueError(
            f"distances were measured from {measured}, but {history.algorithm} weighs by those from "
            f"{history.names[seen.user]}'s: run simulate without user="
        )
    return seen.distance


def check_agreement(told: np.ndarray, seen: Seen) -> None:
    """Refuse terms that do not give the recorded weights: a run that went on with other numbers, say."""
    scale = max(1.0, float(np.abs(seen.weights).max()))
    there = np.isfinite(told)
    off = np.abs(np.where(there, told - seen.weights[:, seen.silo], 0)) > AGREES * scale
    if off.any():
        raise ValueError(
            f"the weight recorded in round {int(off.argmax()) + 1} does not follow from the algorithm's numbers: if "
            "the run was resumed with others, explain its parts one by one"
        )


def plain(values: np.ndarray) -> list[Any]:
    """A column as JSON can hold it."""
    if values.dtype == bool:
        return [bool(v) for v in values]
    return [None if not math.isfinite(v) else (int(v) if values.dtype.kind in "iu" else float(v)) for v in values]


def columns_of(seen: Seen, **more: np.ndarray) -> dict[str, list[Any]]:
    """The table: the round, whether the silo was there, what is given, the weight as the rule gave it, the share."""
    count, i = len(seen.weights), seen.silo
    every = {
        "round": np.arange(1, count + 1), "here": seen.here[:, i], **more, "weight": seen.weights[:, i],
        "share": seen.shares[:, i],
    }  # fmt: skip
    return {name: plain(np.asarray(values)) for name, values in every.items()}


def finite(value: Any) -> Any:
    """Plain values in which None stands for what is no finite number."""
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
