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


def about_the_score(score: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Draws [..., B] of scores [...], moved so that their median is the score.

    Rows that are drawn several times take any two silos further apart than they are: a distance between them, or a
    largest difference, comes out too large in nearly all draws, and a likeness too small. Moved, they tell how far
    chance may take the score, and their interval has the score in it.
    """
    if not draws.shape[-1]:
        return draws
    return draws + (score - np.median(draws, axis=-1))[..., None]


def percentiles(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the 95 % interval over the last axis; NaN where there are no draws."""
    if values.shape[-1] == 0:
        nothing = np.full(values.shape[:-1], np.nan)
        return nothing, nothing.copy()
    low, high = np.percentile(values, [TAIL, 100 - TAIL], axis=-1)
    return low, high
