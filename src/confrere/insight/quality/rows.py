"""Rows of one's own that hurt: without them the loss on rows that were held out would fall. Nothing leaves the silo.

The silo's rows are parted in folds; each fold judges the model of the others, to first order (Koh, Liang 2017):

    phi[t, r] = <grad loss_t, H^-1 grad loss_r> / n      rise of row t's loss if row r counted no more

(`selection.row_influence` also counts that the penalty weighs more without a row, which is the same for all rows.) The
influence of row r is the mean over the rows t that judged it; over them go its standard error, the interval and the
chance (one-sided, normal), which is corrected for the number of rows (Benjamini and Hochberg).
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from confrere.borrowing.glm import Rows
from confrere.checks import check_counts
from confrere.data.silos import Silos
from confrere.insight.quality.finding import false_discovery_rates
from confrere.insight.quality.fits import FOLDS, foldings
from confrere.insight.quality.own import own_rows
from confrere.selection.arrivals import row_gradients
from confrere.selection.pool import Pool

MOST, ALPHA = 10, 0.05


@dataclass(frozen=True)
class HarmfulRow:
    """A row without which the silo's validated loss would fall by `fall` (95 % interval)."""

    row: int  # its place in the silo's own table
    fall: float
    low: float
    high: float
    discovery: float

    @property
    def clear(self) -> bool:
        """Whether chance does not explain it."""
        return self.discovery <= ALPHA

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {**vars(self), "clear": self.clear}


def harmful_rows(
    silos: Silos, user: int | str, *, most: int = MOST, l2: float = 0.01, seed: int = 0
) -> tuple[HarmfulRow, ...]:
    """The training rows that hurt the silo's own linear model most, the worst first; see whether they are `clear`.

    For their owner alone: rows, and what is said of them, stay in the silo.

    >>> import numpy as np, confrere as cf
    >>> x = np.linspace(-3, 3, 80)[:, None]
    >>> y = (x[:, 0] + np.sin(9 * x[:, 0]) > 0).astype(int)
    >>> y[79] = 0  # wrong
    >>> harmful_rows(cf.Silos.from_arrays([(x, y)]), 0)[0].row
    79
    """
    check_counts(most=most)
    with jax.enable_x64(True):
        own = own_rows(silos, user, l2, "harmful_rows")
        if len(own.y) < 2 * FOLDS:
            return ()
        phi = influences(own.rows, own.y, own.task.penalty, own.task.task, seed)
    judged = ~np.isnan(phi)
    count = judged.sum(axis=0)
    mean = np.where(judged, phi, 0).sum(axis=0) / count
    error = np.sqrt(np.where(judged, (phi - mean) ** 2, 0).sum(axis=0) / (count - 1) / count)
    rates = false_discovery_rates(ndtr(mean / np.maximum(error, 1e-300)))
    worst = [r for r in np.argsort(mean)[:most] if mean[r] < 0]
    reach = 1.96 * error
    return tuple(
        HarmfulRow(
            int(own.places[r]), -float(mean[r]), *map(float, (-mean[r] - reach[r], -mean[r] + reach[r], rates[r]))
        )
        for r in worst
    )


def influences(rows: Rows, y: np.ndarray, penalty: np.ndarray, task: str, seed: int) -> np.ndarray:
    """phi [t, r] over all pairs of rows in different folds; NaN within a fold."""
    length = len(y)
    fold = foldings(y, rows.y.shape[0], seed, repeats=1)[0]
    found = np.full((length, length), np.nan)
    for k in range(int(fold.max()) + 1):
        kept = jnp.asarray(fold != k) * rows.weight
        pool = Pool({"own": rows._replace(weight=kept)}, penalty, task, "own")
        theta, told = pool.optimum(["own"], np.zeros_like(penalty))
        gradients = np.asarray(row_gradients(rows, theta, task))[:length]
        tested = fold[:length] == k
        pulled = np.linalg.solve(pool.curvature(told.values()), gradients[~tested].T)
        found[np.ix_(tested, ~tested)] = gradients[tested] @ pulled / told["own"].rows
    return found
