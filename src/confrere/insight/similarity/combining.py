"""The combined view: all dissimilarities as one, each in units of what chance alone explains.

    combined_ij = root mean over measures of (d_ij / c)^2,   c = root mean square over pairs of what chance explains

so that 1 is about as far apart as silos of these sizes may seem by chance, and a measure that tells silos apart well
says more than one that hardly does. Where measures are Euclidean distances, so is this, in the space of all that was
told. Without draws, c is the root mean square of the distances.
"""

from collections.abc import Sequence

import numpy as np

from confrere.insight.similarity.measured import Measured, around, upper
from confrere.plural import plural

COMBINED = "combined"


def unit_of(measured: Measured) -> float:
    """What the distances of a measure are divided by; 0: they are all 0."""
    assert measured.dissimilarity is not None
    pairs = np.triu_indices(len(measured.matrix), 1)
    for values in (measured.chance[pairs], measured.dissimilarity[pairs]):
        known = values[np.isfinite(values)]
        size = float(np.sqrt(np.mean(known**2))) if len(known) else 0.0
        if size > 1e-12:
            return size
    return 0.0


def root_mean_square(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The root mean square over measures, of those that are defined; NaN where none is."""
    stacked = np.square(np.stack(parts))
    known = ~np.isnan(stacked)
    count = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.sqrt(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))


def combined(measures: Sequence[Measured]) -> Measured | None:
    """All dissimilarities as one; None if there is none."""
    some = [m for m in measures if m.dissimilarity is not None]
    if not some:
        return None
    units = [unit_of(m) or 1.0 for m in some]
    scaled = lambda values: root_mean_square([v / u for v, u in zip(values, units, strict=True)])  # noqa: E731
    matrix = scaled([m.dissimilarity for m in some])
    draws, noise = scaled([m.draws for m in some]), scaled([m.noise for m in some])
    low, high = around(matrix, upper(noise))
    unit = "times what chance explains" if len(noise) else "times the typical distance"
    return Measured(
        COMBINED, "All of these together", f"{unit}, root mean over {plural(len(some), 'measure')}", matrix, low, high,
        True, matrix, draws, noise, "nothing beyond what the measures reveal", some[0].resampled,
    )  # fmt: skip
