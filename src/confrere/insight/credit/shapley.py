"""Shapley's value of every silo for one user: what it adds to the others, on average over all orders of joining.

    v(S) = mean loss of the user's judging rows when it learns alone - the same when it learns with the silos of S

so that v of nobody is 0, and the values of all silos add up to v of everybody: what learning together is worth to the
user, in loss a row. See `game` for the judging rows and the models, `coalitions` for the arithmetic. Beside it stands
the exact influence, v(everybody) - v(everybody but i): what the last to join would add.

Two intervals. Judging rows are few: their resampling gives the 95 % interval of a value, the models staying as they
are; where one row alone judges, nothing has an interval. With more than 12 other silos orders are drawn, and `error` is
half the 95 % interval of what that leaves open; the interval of a value then has both.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from confrere.checks import check_counts, check_numbers
from confrere.data.silo import place_of
from confrere.data.silos import Silos
from confrere.insight.credit.coalitions import (
    MOST_EXACT,
    beginnings,
    drawn_orders,
    every_coalition,
    exact_weights,
    marginals,
    without_each,
)
from confrere.insight.credit.game import Game, Progress, game_of, losses_by_chunks
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.selection.asking import Others, asked, start_with
from confrere.selection.resampling import RESAMPLES, means_of_resamples, percentiles
from confrere.selection.selection import finite
from confrere.study.statistics import interval

if TYPE_CHECKING:
    from rich.table import Table

ORDERS = 200
ONE_ROW = "none, as one row alone judges"
NORMAL = 1.959964  # half a 95 % interval, in standard errors


@dataclass(frozen=True, eq=False)
class Worth:
    """A number for every silo [n] with its 95 % interval, and the draws [n, B] behind it; NaN for the user.

    Where one row alone judges, there are no draws and no interval.
    """

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    draws: np.ndarray = field(repr=False)

    def of(self, place: int) -> dict[str, float | None]:
        """One silo's number and interval, for JSON."""
        return {name: finite(getattr(self, key)[place]) for name, key in KEYS.items()}


KEYS = {"value": "values", "low": "low", "high": "high"}


@dataclass(frozen=True, eq=False)
class Shapley:
    """What every silo is worth to one user, in loss a row; the user's own entries are NaN, as it pays and judges."""

    names: tuple[str, ...]
    user: int
    value: Worth
    influence: Worth
    error: np.ndarray  # [n] half the 95 % interval of drawing orders; 0 where all coalitions were tried
    alone: float  # the user's loss by itself
    together: float  # and with everybody
    total_interval: tuple[float, float]  # the 95 % interval of what learning with everybody is worth
    coalitions: int  # that were tried
    orders: int  # that were drawn; 0: all coalitions were tried
    judged: str
    made: str

    @property
    def values(self) -> np.ndarray:
        """The Shapley values [n]."""
        return self.value.values

    @property
    def exact(self) -> bool:
        """Whether all coalitions were tried."""
        return self.orders == 0

    @property
    def total(self) -> float:
        """What learning with everybody is worth: the sum of all values."""
        return self.alone - self.together

    @property
    def resampled(self) -> str:
        """What the intervals rest on, in words."""
        if not self.value.draws.shape[1]:
            return ONE_ROW
        drawn = "" if self.exact else f", and the error of {self.orders} drawn orders added"
        return f"{self.judged} resampled, the models as they were{drawn}"

    def of(self, silo: int | str) -> float:
        """The value of one silo."""
        return float(self.values[place_of(self.names, silo)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        others = [(i, n) for i, n in enumerate(self.names) if i != self.user]
        return {
            "user": self.names[self.user], "alone": self.alone, "together": self.together, "total": self.total,
            "total_interval": [finite(end) for end in self.total_interval],
            "shapley": {n: self.value.of(i) | {"error": finite(self.error[i])} for i, n in others},
            "influence": {n: self.influence.of(i) for i, n in others},
            "exact": self.exact, "orders": self.orders, "coalitions": self.coalitions, "judged": self.judged,
            "made": self.made, "resampled": self.resampled, "unit": "fall of the user's loss a row",
        }  # fmt: skip

    def to_json(self) -> str:
        """The values as a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def table(self) -> "Table":
        """A table for a terminal."""
        from confrere.insight.credit.tables import shapley_table

        return shapley_table(self)

    def __rich__(self) -> "Table":
        return self.table()


def shapley(
    silos: Silos,
    user: int | str,
    model: Model | None = None,
    recipe: Recipe | None = None,
    *,
    rounds: int = 30,
    orders: int = ORDERS,
    most_exact: int = MOST_EXACT,
    every: int = 3,
    l2: float = 0.01,
    others: Others = "train",
    silent: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Shapley:
    """What every other silo is worth to one user, by Shapley's value of what it adds to the rest.

    Args:
        model: by default logistic regression for classes, linear regression for amounts.
        recipe: by which coalitions train, for `rounds` rounds each; by default they go to the optimum of their pooled
            rows, which is for linear models.
        orders: that are drawn where there are more than `most_exact` other silos (at most 12).
        every: one training row of the user in so many judges, unless there are test or validation rows: then those do.
        l2: of the objective mean loss + l2/2 |w|^2 of the optimum.
        others: "train": the other silos use their training rows only; "all": all their rows.
        silent: silos that take no part.
        resamples: draws of the judging rows behind the intervals.
        progress: called with (coalitions done, coalitions).

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4, 60, 2))
    >>> silos = cf.Silos.from_arrays([(x, (x[:, 0] > 0) ^ (i == 3)) for i, x in enumerate(X)], names=list("abcd"))
    >>> found = cf.insight.shapley(silos, user="a")
    >>> found.of("b") > 0 > found.of("d"), found.coalitions
    (True, 8)
    """
    check_counts(rounds=rounds, orders=orders, resamples=resamples)
    check_numbers(most_exact=most_exact)
    silos, place, model = start_with(silos, user, model, others)
    asked(silos, place, silent)  # refuse names that are none
    left = [name for name in silos.names if name not in {silos.names[silos.index(n)] for n in silent}]
    game = game_of(silos, place, model, recipe, rounds, l2, every, seed)
    keep = [k for k, p in enumerate(game.players) if silos.names[p] in left]
    return played(game, keep, orders, min(most_exact, MOST_EXACT), resamples, seed, progress)


def played(
    game: Game, keep: Sequence[int], orders: int, most_exact: int, resamples: int, seed: int, progress: Progress | None
) -> Shapley:
    """The values of the players that take part; the rest are never there."""
    whole = np.zeros((len(keep), len(game.players)), bool)
    whole[np.arange(len(keep)), keep] = True

    def losses(coalitions: np.ndarray) -> np.ndarray:
        return losses_by_chunks(game, coalitions @ whole, progress)

    few = len(keep) <= most_exact
    find = by_all_coalitions if few else by_orders
    rows, error, influence, ends, tried = find(losses, len(keep), orders, seed)
    places = np.array(game.players)[list(keep)]
    low, high = percentiles(means_of_resamples((ends[0] - ends[1])[None], resamples, seed))
    noise = np.random.default_rng(seed + 1).normal(size=(len(keep), resamples)) * error[:, None] / NORMAL
    return Shapley(
        game.silos.names, game.user,
        worth(rows, places, len(game.silos), resamples, seed, noise),
        worth(influence, places, len(game.silos), resamples, seed, np.zeros_like(noise)),
        scattered(error, places, len(game.silos)),
        float(ends[0].mean()), float(ends[1].mean()), (float(low[0]), float(high[0])), tried,
        0 if few else orders + orders % 2, game.judged, game.made,
    )  # fmt: skip


Found = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray], int]
# values by judging row [k, t], sampling errors [k], influences [k, t], losses alone and together [t], coalitions tried


def by_all_coalitions(losses: Any, players: int, orders: int, seed: int) -> Found:
    """Exact values: every coalition is tried."""
    coalitions = every_coalition(players)
    lost = losses(coalitions)
    missing = lost[(2**players - 1) - (1 << np.arange(players))]
    return -exact_weights(players) @ lost, np.zeros(players), missing - lost[-1], (lost[0], lost[-1]), len(coalitions)


def by_orders(losses: Any, players: int, orders: int, seed: int) -> Found:
    """Values over drawn orders, with the error that drawing leaves."""
    drawn = drawn_orders(players, orders + orders % 2, np.random.default_rng(seed))
    growing = np.concatenate([beginnings(order) for order in drawn])
    wanted = np.concatenate([growing, without_each(players)])
    lost = losses(wanted)
    path = lost[: len(growing)].reshape(len(drawn), players + 1, -1)
    added = -marginals(drawn, path)
    pairs = added.mean(axis=2).reshape(-1, 2, players).mean(axis=1)  # an order and its reverse are one draw
    ends = [interval(pairs[:, i], None) for i in range(players)]
    error = np.array([np.nan if e.high is None else e.high - e.mean for e in ends])
    tried = len(np.unique(wanted, axis=0))
    return added.mean(axis=0), error, lost[len(growing) :] - path[0, -1], (path[0, 0], path[0, -1]), tried


def worth(rows: np.ndarray, places: np.ndarray, n: int, resamples: int, seed: int, noise: np.ndarray) -> Worth:
    """Means over judging rows [k, t] as numbers for all silos, with their intervals; of one row there are none."""
    draws = means_of_resamples(rows, resamples, seed)
    draws = draws + noise[:, : draws.shape[1]]
    low, high = percentiles(draws)
    everywhere = np.full((n, draws.shape[1]), np.nan)
    everywhere[places] = draws
    return Worth(
        scattered(rows.mean(axis=1), places, n), scattered(low, places, n), scattered(high, places, n), everywhere
    )


def scattered(values: np.ndarray, places: np.ndarray, n: int) -> np.ndarray:
    """Numbers of some silos as numbers of all [n], NaN elsewhere."""
    found = np.full(n, np.nan)
    found[places] = values
    return found
