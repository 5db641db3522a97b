"""A cell: what a study found for one algorithm, one user and one seed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

When = Literal["last", "best"]
WHEN: tuple[When, When] = ("last", "best")


@dataclass(frozen=True, eq=False)
class Cell:
    """One algorithm for one user and one seed, on the user's test rows.

    Curves have one row per choice: the numbers that cross-validation found best after the last round ("last"), and
    those that it found best together with a round ("best"). Where nothing was tuned there is one row for both.
    """

    algorithm: str
    user: str
    seed: int
    train_rows: int
    test_rows: int
    hyper: tuple[Mapping[str, float], ...]  # per choice
    round: tuple[int, ...]  # per choice, the round that is reported
    score: tuple[float, ...]  # per choice, its cross-validated criterion; NaN where nothing was tuned
    curves: Mapping[str, np.ndarray]  # metric -> [choices, R + 1]
    partners: np.ndarray  # [choices, R] other silos with a weight above 0; -1: the rule gives no weights
    borrowed: np.ndarray  # [choices, R] the others' share of the weight; NaN: the rule gives no weights
    bytes_each: int  # sent and received by one silo in a round
    bytes_total: int  # by all silos
    tried: np.ndarray  # [candidates, R + 1] the cross-validated criterion, or [0, 0]

    def row(self, when: When) -> int:
        """The row of the curves that belongs to a choice."""
        return min(WHEN.index(when), len(self.round) - 1)

    def value(self, metric: str, when: When = "last") -> float:
        """A metric of the reported model."""
        row = self.row(when)
        return float(self.curves[metric][row, self.round[row]])

    def plain(self) -> dict[str, Any]:
        """The cell as numbers, words and lists."""
        return {k: listed(v) for k, v in asdict(self).items()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Cell":
        """The cell from what `plain` gave."""
        numbers = lambda values: np.array(values, float)  # noqa: E731
        read: dict[str, Any] = {
            "hyper": tuple({k: float(v) for k, v in one.items()} for one in plain["hyper"]),
            "round": tuple(plain["round"]),
            "score": tuple(float(v) for v in plain["score"]),
            "curves": {name: numbers(values) for name, values in plain["curves"].items()},
            "partners": np.array(plain["partners"], np.int64),
            "borrowed": numbers(plain["borrowed"]),
            "tried": numbers(plain["tried"]) if plain["tried"] else np.zeros((0, 0)),
        }
        return cls(**{**plain, **read})


def listed(value: Any) -> Any:
    """Arrays as lists, and numbers that JSON does not know as words that `float` does."""
    if isinstance(value, Mapping):
        return {k: listed(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return listed(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [listed(v) for v in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
