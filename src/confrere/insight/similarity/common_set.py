"""A common set: rows that belong to nobody, on which silos let their models predict.

By default they are drawn from the pooled summaries of the features, each column by itself: numbers are normal, a column
of levels has one level, and some values are missing. Correlations between columns are therefore not in them.
"""

from typing import Any

import numpy as np

from confrere.data.columns import columns_of
from confrere.data.silos import Silos
from confrere.insight.similarity.summaries import Layout

ROWS = 100


def given_rows(silos: Silos, common: Any) -> np.ndarray:
    """Rows that the user gives, as features [c, d]: numbers, or a table that the silos' encoding can read."""
    width = len(silos.feature_names)
    if isinstance(common, (np.ndarray, list, tuple)):
        rows = np.array(common, float)
        if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
            raise ValueError(f"common must be rows of {width} features [c, {width}], not of shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("common has values that are not finite: fill or drop them")
        return rows
    if silos.encoding is None:
        raise ValueError(f"common is a {type(common).__name__}, but these silos are no tables: give rows of features")
    return np.asarray(silos.encoding.transform(common), float)


def synthetic_rows(
    silos: Silos, layout: Layout, mean: np.ndarray, spread: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows [count, d] drawn from pooled means and standard deviations [d]."""
    rows = np.zeros((count, len(mean)))
    chance = np.clip(mean, 0.0, 1.0)
    for places in columns_of(silos).values():
        flags = [j for j in places if j in layout.missing]
        levels = [j for j in places if layout.binary[j] and j not in flags]
        for j in places:
            if not layout.binary[j]:
                rows[:, j] = rng.normal(mean[j], spread[j], count)
        if levels:
            share = np.cumsum([chance[j] for j in levels])
            ends = np.concatenate([[0.0], share / max(1.0, share[-1])])
            at = rng.random(count)
            for k, j in enumerate(levels):
                rows[:, j] = (ends[k] <= at) & (at < ends[k + 1])
        for flag in flags:
            gone = rng.random(count) < chance[flag]
            for j in (j for j in places if layout.missing[j] == flag):
                rows[gone, j] = 0.0 if layout.binary[j] else mean[j]  # as the encoding fills gaps
            rows[:, flag] = gone
    return rows
