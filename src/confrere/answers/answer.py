"""What `personalise` returns."""

import functools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confrere.answers.predictor import Predictor
from confrere.data.source import Shared
from confrere.history import History

if TYPE_CHECKING:
    import polars as pl

RELEVANT = 0.3  # a silo below is said to look unrelated


class NoHistory(ValueError):
    """The rounds that led to a model are not at hand, as where it came from another machine."""


class AnswerWarning(UserWarning):
    """Something about an answer that its reader should know before trusting it."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The model for one silo, whose data it listened to, and why.

    `weights`: every silo's share of the information behind the model, the user's own included; with `prior`, the share
    of what was assumed before any row was seen, they sum to 1. Of a named algorithm they are the shares of its average,
    which for `fine_tuned` and `ditto` is the common model. `relevance`: how probable it is, judged by the user's
    own rows, that a silo has something to say to it at all; below 0.3 it is flagged. `advice`: what else `personalise`
    could be told, apart from what was found, as not everyone who shows an answer can tell it.
    """

    user: str
    algorithm: str
    model: Predictor = field(repr=False)
    weights: Mapping[str, float]
    prior: float
    relevance: Mapping[str, float]
    candidates: Mapping[str, float]  # how much each candidate counted
    scores: Mapping[str, float]  # cross-validated loss on the user's own rows, by candidate and for training alone
    rows: int  # of the user, for training
    refused: tuple[str, ...]  # silos whose message could not be true
    silent: tuple[str, ...]  # silos with too few rows to be heard, whose messages were empty
    shared: tuple[Shared, ...] = field(repr=False)  # what left each silo, to make the data agree and for this answer
    findings: str = field(repr=False)  # in words, without advice
    notes: tuple[str, ...]
    make_history: Callable[[], History] = field(repr=False)
    compare: Callable[[], "pl.DataFrame"] = field(repr=False)
    cautions: tuple[str, ...] = ()  # the notes of which a warning is given
    advice: tuple[str, ...] = ()
    withdrawn: Mapping[str, str] = field(default_factory=dict)  # silos that left before training, and why
    key: int | tuple[int, ...] = 0  # the seed, or the key, from which all JAX keys are derived

    @property
    def reason(self) -> str:
        """What was found, and what to do about it, in words."""
        return with_advice(self.findings, self.advice)

    @functools.cached_property
    def comparison(self) -> "pl.DataFrame":
        """This answer beside the named algorithms, each tuned: their cross-validated loss on the user's own training
        rows and, if there are test rows, what they reach there. Computed when first asked for: it takes minutes, mostly
        of compilation; the messages of all these runs are not in `shared`."""
        return self.compare()

    @functools.cached_property
    def history(self) -> History:
        """The rounds of exchange behind the answer; made when first asked for."""
        return self.make_history()

    @property
    def unrelated(self) -> tuple[str, ...]:
        """Silos whose relevance is below 0.3; those that sent nothing could not be judged."""
        return tuple(n for n, value in self.relevance.items() if value < RELEVANT and n not in self.silent)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, for JSON."""
        return {
            "user": self.user, "algorithm": self.algorithm, "reason": self.reason, "notes": list(self.notes),
            "advice": list(self.advice),
            "weights": dict(self.weights), "prior": self.prior, "relevance": dict(self.relevance),
            "unrelated": list(self.unrelated), "refused": list(self.refused), "silent": list(self.silent),
            "withdrawn": dict(self.withdrawn),
            "candidates": dict(self.candidates), "rows": self.rows,
            "scores": {name: value if math.isfinite(value) else None for name, value in self.scores.items()},
            "bytes": {
                "up": self.history.bytes_up.sum(axis=0).tolist(), "down": self.history.bytes_down.sum(axis=0).tolist()
            },
            "shared": [entry._asdict() for entry in self.shared],
        }  # fmt: skip


def with_advice(said: str, advice: Sequence[str]) -> str:
    """A text with advice after it."""
    return " ".join([said, *advice])


def warn_of(answer: Answer) -> None:
    """Say the cautions of an answer, with its advice, to whoever called the caller."""
    for caution in answer.cautions:
        warnings.warn(with_advice(caution, answer.advice), AnswerWarning, stacklevel=3)
