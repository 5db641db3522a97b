"""Summary metrics: how good a model is within a budget of rounds, traffic or collaboration.

Grimberg: semester project report (2020), section 6. A budget names the last round that respects it; where none does,
that is round 0, the model before any collaboration.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from confrere.checks import check_numbers
from confrere.study.cell import Cell


class Budget(NamedTuple):
    """A budget, in words, and the round that a cell may be taken at."""

    words: str
    round: Callable[[Cell], int]
    best: bool = False  # whether the numbers are those chosen together with the round


def last_where(allowed: np.ndarray) -> int:
    """The last round (counted from 1) that is allowed, 0 if none is."""
    rounds = np.flatnonzero(allowed)
    return int(rounds[-1]) + 1 if len(rounds) else 0


def cross_validated() -> Budget:
    """The numbers and the round that cross-validation found best together."""
    return Budget("best by cross-validation", lambda cell: cell.round[-1], best=True)


def after_rounds(k: int | None) -> Budget:
    """k rounds at most; None: all."""
    if k is None:
        return Budget("last round", lambda cell: cell.partners.shape[1])
    return Budget(f"after {k} rounds", lambda cell: min(int(k), cell.partners.shape[1]))


def within_traffic(limit: float, each: bool) -> Budget:
    """At most so many bytes sent and received since the start, by all silos together, or by each."""

    def round_(cell: Cell) -> int:
        per_round = cell.bytes_each if each else cell.bytes_total
        return last_where(per_round * np.arange(1, cell.partners.shape[1] + 1) <= limit)

    return Budget(f"within {limit:g} bytes {'per silo' if each else 'in all'}", round_)


def within_silos(limit: int) -> Budget:
    """At most so many other silos with a weight above 0 in that round."""
    return Budget(
        f"within {limit} other silos", lambda cell: last_where((cell.partners[0] >= 0) & (cell.partners[0] <= limit))
    )


def within_weight(limit: float) -> Budget:
    """The other silos' share of the weight in that round at most so much."""
    return Budget(f"within {limit:g} of the weight", lambda cell: last_where(cell.borrowed[0] <= limit + 1e-6))


def budgets(
    rounds: Sequence[int],
    traffic: Sequence[float],
    traffic_each: Sequence[float],
    silos: Sequence[int],
    weight: Sequence[float],
) -> list[Budget]:
    """All budgets that were asked for, after the two that always are; what cannot be a budget is refused."""
    check_budgets(whole=True, rounds=rounds, silos=silos)
    check_budgets(whole=False, traffic=traffic, traffic_each=traffic_each, weight=weight)
    return [
        after_rounds(None), cross_validated(), *map(after_rounds, rounds),
        *(within_traffic(b, each=False) for b in traffic), *(within_traffic(b, each=True) for b in traffic_each),
        *map(within_silos, silos), *map(within_weight, weight),
    ]  # fmt: skip


def check_budgets(whole: bool, **given: Sequence[float]) -> None:
    """A budget is 0 or more, and whole where things are counted."""
    for name, values in given.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"{name} must be a list of numbers, not {values!r}")
        for value in values:
            check_numbers(**{name: value})
            if whole and value != int(value):
                raise ValueError(f"{name} must be whole numbers, not {value!r}")


def value_at(cell: Cell, metric: str, budget: Budget) -> tuple[float, int]:
    """A metric within a budget, and the round it was taken at."""
    round_ = budget.round(cell)
    return float(cell.curves[metric][cell.row("best" if budget.best else "last"), round_]), round_
