"""The ledger: what every silo did in one run, what it was worth to the user, and what each scheme would pay it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from confrere.data.silo import place_of
from confrere.insight.credit.schemes import MEANINGS, Payout, Scheme, estimated, rank_points, settled
from confrere.insight.credit.shapley import Shapley, Worth
from confrere.selection.selection import Selection, finite

if TYPE_CHECKING:
    from rich.table import Table

NO_INTERVAL = "rows, rounds, weights and bytes are counted, and have no interval"


class Joined(NamedTuple):
    """What is counted of one run [n]: rounds joined, weight in the user's model summed over rounds, bytes given."""

    algorithm: str
    rounds: int  # of the run
    joined: np.ndarray
    weight: np.ndarray  # NaN: not known silo by silo
    bytes_up: np.ndarray
    once: bool = False  # whether silos were weighed once, not in every round
    copies: tuple[int, ...] = ()  # who said what the user said, in every round


@dataclass(frozen=True, eq=False)
class Ledger:
    """One line per silo and one column per scheme; arrays are over silos [n], the user's own entries are not paid."""

    names: tuple[str, ...]
    user: int
    budget: float
    rows: np.ndarray
    run: Joined
    ndoye: Selection
    shapley: Shapley
    payouts: Mapping[Scheme, Payout]

    @property
    def others(self) -> tuple[str, ...]:
        """Everybody but the user, in order."""
        return tuple(n for i, n in enumerate(self.names) if i != self.user)

    @property
    def ranks(self) -> np.ndarray:
        """Ranks by `ndoye` [n], 1 the best, equal scores the mean of theirs; NaN without a score."""
        points = rank_points(self.ndoye.scores, self.ndoye.lower_is_better)
        return np.where(points > 0, (points > 0).sum() + 1 - points, np.nan)

    def paid(self, silo: int | str, scheme: Scheme = "shapley") -> float:
        """What a scheme pays a silo."""
        return float(self.payouts[scheme].amounts[place_of(self.names, silo)])

    def left(self, scheme: Scheme) -> float:
        """What a scheme leaves of the budget: all of it where nobody earned anything, else what chance may explain."""
        return max(0.0, self.budget - math.fsum(self.payouts[scheme].amounts))

    def account(self, silo: int | str) -> dict[str, Any]:
        """One silo's line as plain values."""
        i = place_of(self.names, silo)
        ends = {scheme: (p.amounts[i], p.low[i], p.high[i]) for scheme, p in self.payouts.items()}
        return {
            "rows": int(self.rows[i]), "rounds": int(self.run.joined[i]), "weight": finite(self.run.weight[i]),
            "bytes": int(self.run.bytes_up[i]), "copies_the_user": i in self.run.copies,
            "ndoye": {"rank": finite(self.ranks[i]), "value": finite(self.ndoye.scores[i]),
                      "low": finite(self.ndoye.low[i]), "high": finite(self.ndoye.high[i])},
            "influence": self.shapley.influence.of(i),
            "shapley": self.shapley.value.of(i) | {"error": finite(self.shapley.error[i])},
            "paid": {s: {"amount": float(a), "low": finite(low), "high": finite(high)}
                     for s, (a, low, high) in ends.items()},
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The ledger as plain values, for JSON."""
        found = self.shapley.to_dict()
        of_game = ("alone", "together", "total", "total_interval", "exact", "orders", "coalitions", "judged", "made")
        game = {k: found[k] for k in of_game}
        return {
            "user": self.names[self.user], "budget": self.budget,
            "run": {"algorithm": self.run.algorithm, "rounds": self.run.rounds, "weighed_once": self.run.once},
            "accounts": {name: self.account(name) for name in self.others},
            "schemes": {s: {"meaning": MEANINGS[s], "left": self.left(s)} for s in self.payouts},
            "game": game, "intervals": {"influence, shapley": found["resampled"], "ndoye": self.ndoye.resampled,
                                        "counts": NO_INTERVAL},
        }  # fmt: skip

    def to_json(self) -> str:
        """The ledger as a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def table(self) -> "Table":
        """What every silo did and was worth, for a terminal."""
        from confrere.insight.credit.tables import ledger_table

        return ledger_table(self)

    def payments(self) -> "Table":
        """What every scheme pays, for a terminal."""
        from confrere.insight.credit.tables import payment_table

        return payment_table(self)

    def __rich__(self) -> "Table":
        return self.table()


def made_ledger(
    names: tuple[str, ...], user: int, budget: float, rows: np.ndarray, run: Joined, ndoye: Selection, found: Shapley
) -> Ledger:
    """The ledger with what every scheme pays; who never joined earns nothing, and the user pays.

    What the user said itself is worth nothing to it, however much it may profit by hearing it twice: who says no more
    than that earns nothing where worth is paid.
    """
    took_part = (run.joined > 0) & (np.arange(len(names)) != user)
    new = took_part & ~np.isin(np.arange(len(names)), run.copies)
    value, influence, shown = found.value, found.influence, new & (found.value.low > 0)
    only = lambda points: np.where(took_part, points, 0.0)  # noqa: E731
    payouts: dict[Scheme, Payout] = {
        "equal": settled(only(np.ones(len(names))), budget),
        "rounds": settled(only(run.joined), budget),
        "rows": settled(only(rows), budget),
        "weight": settled(only(run.weight), budget),
        "ndoye": settled(only(rank_points(ndoye.scores, ndoye.lower_is_better)), budget),
        "influence": by_worth(influence, new, budget),
        "shapley": by_worth(value, new, budget),
        "sure": settled(np.where(shown, value.values, 0.0), budget),
    }
    return Ledger(names, user, budget, rows, run, ndoye, found, payouts)


def by_worth(worth: Worth, here: np.ndarray, budget: float) -> Payout:
    """What is paid for worth, less what chance may explain, to those who are in it [n]; the rest have no share.

    Without draws (one row alone judged) chance may explain anything, and nothing is paid.
    """
    draws = np.where(here[:, None], worth.draws, 0.0)
    errors = draws.std(axis=1) if draws.shape[1] else np.full(len(draws), np.inf)
    return estimated(np.where(here, worth.values, 0.0), draws, budget, errors)
