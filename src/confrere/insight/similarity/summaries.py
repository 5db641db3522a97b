"""Inside a silo: how common each outcome is, and where its features lie, with a minimum group size.

What fewer than `least` rows have (a class, a level, a value that is known at all) is told as if no row had it: of a
number that fewer rows know nothing is said, and a share that rests on fewer rows is told as 0 (or as 1, if fewer do not
have it). Missing numbers, which became the mean when tables became features, are left out of means and spreads.
"""

from typing import NamedTuple

import numpy as np

from confrere.data.silos import Silos


class Layout(NamedTuple):
    """Of every feature: whether it is 0 or 1 in all rows, and which other feature says that it is missing (-1: no)."""

    binary: np.ndarray  # [d] bool
    missing: np.ndarray  # [d] int


def layout_of(silos: Silos) -> Layout:
    """What the encoding says of the features; without one, whether all values are 0 or 1."""
    d = len(silos.feature_names)
    values = [s.rows("train")[0] for s in silos.silos]
    binary = np.array([all(np.isin(X[:, j], (0, 1)).all() for X in values) for j in range(d)])
    missing = np.full(d, -1)
    if silos.encoding is not None:
        names = silos.feature_names
        for column in silos.encoding.columns:
            flags = [f for f in column.features if f in names]
            if column.missing and flags[1:] and flags[-1] == column.features[-1]:
                missing[[names.index(f) for f in flags[:-1]]] = names.index(flags[-1])
    return Layout(binary, missing)


def hidden(count: float, rows: float, least: int) -> float | None:
    """What is told of a share that too few rows have, or too few have not: 0 or 1; None: the share itself.

    >>> hidden(3, 100, 5), hidden(98, 100, 5), hidden(50, 100, 5)
    (0.0, 1.0, None)
    """
    return 0.0 if count < least else 1.0 if rows - count < least else None


def class_shares(y: np.ndarray, counts: np.ndarray, classes: int, least: int) -> np.ndarray:
    """The share of every class [1 + B, classes] among the rows of those that are told; NaN if none is."""
    has = y[:, None] == np.arange(classes)
    shown = has & (has.sum(axis=0) >= least)
    if not shown.any():
        return np.full((len(counts), classes), np.nan)
    often = counts @ shown
    rows = often.sum(axis=1, keepdims=True)
    return np.divide(often, rows, out=np.tile(shown.mean(axis=0), (len(counts), 1)), where=rows > 0)


def mean_and_spread(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mean and standard deviation of values [m], draw by draw [1 + B, 2]; a draw without rows is as all rows are."""
    rows = counts.sum(axis=1)
    weight = np.where(rows[:, None] > 0, counts, 1.0)
    total = weight.sum(axis=1)
    mean = weight @ values / total
    spread = np.sqrt(np.maximum((weight * np.square(values[None] - mean[:, None])).sum(axis=1) / total, 0))
    return np.stack([mean, spread if np.ptp(values) > 0 else np.zeros_like(mean)], axis=1)


def feature_summaries(X: np.ndarray, counts: np.ndarray, layout: Layout, least: int) -> np.ndarray:
    """Mean and standard deviation of every feature where it is known [1 + B, 2 d]; NaN where too few rows know it."""
    found = np.full((len(counts), X.shape[1], 2), np.nan)
    for j in range(X.shape[1]):
        flag = layout.missing[j]
        known = np.ones(len(X), bool) if flag < 0 else X[:, flag] == 0
        if known.sum() < least:
            continue
        values = X[known, j].astype(float)
        said = hidden(float(values.sum()), len(values), least) if layout.binary[j] else None
        found[:, j] = mean_and_spread(values, counts[:, known]) if said is None else (said, 0.0)
    return found.reshape(len(counts), -1)


def pooled(vectors: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The common mean and standard deviation of every feature [d] from summaries [n, 2 d] and rows that know it [n, d].

    A feature that nobody tells of, or that does not vary, has the scale 1.
    """
    mean, spread = vectors.reshape(len(vectors), -1, 2).transpose(2, 0, 1)
    weight = np.where(np.isnan(mean), 0.0, known)
    rows = np.maximum(weight.sum(axis=0), 1e-300)
    centre = (weight * np.nan_to_num(mean)).sum(axis=0) / rows
    variance = (weight * (np.nan_to_num(spread) ** 2 + np.nan_to_num(mean - centre) ** 2)).sum(axis=0) / rows
    scale = np.sqrt(variance)
    return centre, np.where(scale > 1e-12 * np.maximum(1.0, np.abs(centre)), scale, 1.0)
