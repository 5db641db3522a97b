"""Which feature to record next: the gain in the user's own validated loss that a column promises which others have.

In every silo i that records the column, inside that silo:

    d_r = (held-out loss of row r without the column) - (with it)      models with the user's features, cross-validated
    gain_i = sum_r w_r d_r / sum_r w_r

with weights w under which the silo's rows have the means of the user's features and of its labels (`balancing`): the
user's case mix. Over silos gains are put together as random effects (DerSimonian, Laird 1986).

The assumption: given the user's features and the label, the column is distributed in those silos as it would be with
the user. It cannot be checked before it is recorded. The gain is that of a model of as many rows as the silo has;
intervals rest on its held-out rows, the models being as they were.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from confrere.borrowing.glm import Rows
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.insight.quality.balancing import balanced, effective_rows
from confrere.insight.quality.fits import FOLDS, Task, foldings, losses_out_of_fold
from confrere.insight.quality.own import model_for
from confrere.insight.quality.recorded import Recorded, features_of, recorded
from confrere.selection.linear import Linear, linear_rows

RARELY = 0.5  # known in a smaller share of the rows: worth recording
LEAST_ROWS = 30  # effective rows of a silo from which it can be told
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0)  # tried one after the other
Z = 1.959963984540054


class Gain(NamedTuple):
    """A gain with its 95 % interval, and the effective rows behind it."""

    value: float
    low: float
    high: float
    rows: float


@dataclass(frozen=True)
class Next:
    """A column that might be recorded, and by how much the user's loss a row would fall."""

    column: str
    gain: float
    low: float
    high: float
    loss: float  # the user's validated loss without it
    silos: Mapping[str, Gain]  # on whose rows it rests
    known: float  # share of the user's rows that know it already

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return vars(self) | {"silos": {name: gain._asdict() for name, gain in self.silos.items()}}


def record_next(
    silos: Silos, user: int | str, *, l2: float = 0.01, min_count: int = 5, seed: int = 0
) -> tuple[tuple[Next, ...], tuple[Shared, ...]]:
    """Columns that the user lacks or rarely records, by the gain that they promise, and what crossed for it.

    >>> import confrere as cf
    >>> found, _ = record_next(cf.data.titanic("age-strict"), "unknown")
    >>> [n.column for n in found]
    ['age']
    """
    place, every = silos.index(user), recorded(silos)
    features = {name: where for name, where in features_of(silos).items() if where}
    lacking = rarely_recorded(silos, place)
    if not lacking or silos.sizes("train")[place] < max(2 * FOLDS, min_count):
        return (), ()
    base = np.ones(len(silos.feature_names) + 1)
    base[[j for name in lacking for j in features[name]]] = 0
    seen = silos.for_user(place)
    with jax.enable_x64(True):
        data = linear_rows(seen, model_for(silos), l2, "record_next")
        means = aims(data, place, base)
        loss = own_loss(data, place, base, seed)
        gains = {
            name: {
                own.silo: found
                for i, own in enumerate(every)
                if i != place and (found := gain_in(data, i, own, name, base, features[name], means, min_count, seed))
            }
            for name in lacking
        }
    sent = [
        Shared(silos.names[place], "means of its features and labels", len(means), "to weigh others' rows as its own")
    ]
    sent += [Shared(silo, f"the gain by {name!r} and its interval", 4, "to tell what to record next")
             for name, found in gains.items() for silo in found]  # fmt: skip
    nexts = [
        Next(name, *together(list(found.values())), loss, found, known_share(every[place], name))
        for name, found in gains.items()
        if found
    ]
    return tuple(sorted(nexts, key=lambda n: -n.gain)), tuple(sent)


def rarely_recorded(silos: Silos, user: int) -> list[str]:
    """The columns among the features that a silo lacks, or knows in less than half of its rows."""
    own = recorded(silos)[user]
    return [name for name, where in features_of(silos).items() if where and known_share(own, name) < RARELY]


def known_share(own: Recorded, column: str) -> float:
    """The share of a silo's rows that know a column."""
    return own.known(column) / own.rows


def known_rows(own: Recorded, column: str) -> np.ndarray:
    """Which rows know a column."""
    if column in own.numbers:
        return ~np.isnan(own.numbers[column])
    values = own.levels.get(column)
    return np.zeros(own.rows, bool) if values is None else np.array([v is not None for v in values.tolist()])


def matched(data: Linear, silo: int, base: np.ndarray) -> np.ndarray:
    """What is to have the user's means: its features, and the labels (all classes but one, or the amount)."""
    rows = data.of(silo)
    X, y = np.asarray(rows.X)[:, :-1][:, base[:-1] > 0], np.asarray(rows.y)
    if data.task == "regression":
        return np.column_stack([X, y])
    classes = int(np.asarray(data.rows.y).max()) + 1
    return np.column_stack([X, *(y == c for c in range(1, classes))])


def aims(data: Linear, user: int, base: np.ndarray) -> np.ndarray:
    """The user's means: all that it tells."""
    return matched(data, user, base)[np.asarray(data.of(user).weight) > 0].mean(axis=0)


def own_loss(data: Linear, user: int, base: np.ndarray, seed: int) -> float:
    """The user's cross-validated loss with the features that it has."""
    rows = data.of(user)
    weight = np.asarray(rows.weight)
    fold = foldings(np.asarray(rows.y)[weight > 0], len(weight), seed)
    return float(np.nanmean(losses_out_of_fold(rows, weight, fold, base[None], Task(data.task, data.penalty))[0]))


def gain_in(
    data: Linear, silo: int, own: Recorded, column: str, base: np.ndarray, features: list[int], means: np.ndarray,
    least: int, seed: int,
) -> Gain | None:  # fmt: skip
    """Inside a silo: the gain by a column in the user's case mix; None where too few rows are like the user's."""
    rows = data.of(silo)
    known = np.zeros(len(rows.y), bool)
    known[: own.rows] = known_rows(own, column)
    if known.sum() < max(LEAST_ROWS, least) or known_share(own, column) < RARELY:
        return None
    weight = np.zeros(len(known))
    weight[known] = weights_like(matched(data, silo, base)[known], means)
    return weighted_gain(rows, weight, base, features, Task(data.task, data.penalty), seed)


def weights_like(rows: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The closest balance that leaves enough rows: the ridge grows until it does."""
    for ridge in RIDGES:
        weight = balanced(rows, means, ridge)
        if effective_rows(weight) >= LEAST_ROWS:
            break
    return weight


def weighted_gain(
    rows: Rows, weight: np.ndarray, base: np.ndarray, features: list[int], task: Task, seed: int
) -> Gain | None:
    """The fall of the held-out loss by some features, rows being weighted; None if they are worth too few."""
    known = weight > 0
    effective = effective_rows(weight[known])
    if effective < LEAST_ROWS:
        return None
    more = base.copy()
    more[features] = 1
    y = np.asarray(rows.y)
    fold = np.full((3, len(y)), -1)
    fold[:, known] = foldings(y[known], int(known.sum()), seed)
    without, with_it = losses_out_of_fold(rows, weight, fold, np.stack([base, more]), task)[:, known]
    share = weight[known] / weight[known].sum()
    fall = without - with_it
    value = float(share @ fall)
    reach = Z * float(np.sqrt((share**2 * (fall - value) ** 2).sum()))
    return Gain(value, value - reach, value + reach, effective)


def together(gains: list[Gain]) -> tuple[float, float, float]:
    """Gains of several silos as random effects: mean and 95 % interval.

    >>> together([Gain(0.1, 0.0, 0.2, 50), Gain(0.1, 0.0, 0.2, 50)])[0]
    0.1
    """
    values = np.array([g.value for g in gains])
    variances = np.maximum(np.array([(g.high - g.low) / (2 * Z) for g in gains]) ** 2, 1e-12)
    fixed = 1 / variances
    centre = fixed @ values / fixed.sum()
    spread = fixed @ (values - centre) ** 2 - (len(values) - 1)
    between = max(0.0, spread / (fixed.sum() - (fixed**2).sum() / fixed.sum())) if len(values) > 1 else 0.0
    weight = 1 / (variances + between)
    mean, reach = float(weight @ values / weight.sum()), Z / float(np.sqrt(weight.sum()))
    return mean, mean - reach, mean + reach
