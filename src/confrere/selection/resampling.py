"""Intervals from resampling the user's own rows: nothing more has to cross a border for them."""

import numpy as np

RESAMPLES = 1000
TAIL = 2.5  # per cent on either side of a 95 % interval


def means_of_resamples(rows: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Means [k, B] of values [k, m] over B draws of m rows with replacement, the same draws for all k.

    One row drawn anew is itself, which says nothing: then there are no draws.
    """
    m = rows.shape[1]
    if m < 2:
        return np.zeros((len(rows), 0))
    counts = np.random.default_rng(seed).multinomial(m, np.full(m, 1 / m), size=resamples)
    return rows @ counts.T / m


def percentiles(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the 95 % interval over the last axis; NaN where there are no draws."""
    if values.shape[-1] == 0:
        nothing = np.full(values.shape[:-1], np.nan)
        return nothing, nothing.copy()
    low, high = np.percentile(values, [TAIL, 100 - TAIL], axis=-1)
    return low, high
