"""Inside a silo: what it tells of its rows, and how much that varies when its rows are drawn anew.

A silo draws its rows B times with replacement, with a secret of its own (in a simulation: from the seed and its name),
and says neither the draws nor what came of each, but their covariance: the factors F of

    V = what was told, draw by draw [B, K],   cov(V) = F'F,   F [r, K]

which keep 99.9 % of the variance of the standardised columns, blocks of columns counting alike. Others may then draw
v + u F with u normal.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

KEPT = 0.999  # of the variance
NUMBER = 8  # bytes


class Told(NamedTuple):
    """A silo's own words: a vector [K], and the factors [r, K] of how it varies."""

    vector: np.ndarray
    factors: np.ndarray

    def draws(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """By how much the vector may be off [count, K], drawn from what was told."""
        return rng.normal(size=(count, len(self.factors))) @ self.factors


def secret(seed: int, name: str, what: str = "") -> np.random.Generator:
    """Random numbers that belong to one silo, wherever it stands among the others."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), zlib.crc32(what.encode())])


def counts_of(rows: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """How often every row counts [1 + resamples, rows]: once, and then in draws with replacement."""
    drawn = rng.multinomial(rows, np.full(rows, 1 / rows), size=resamples) if resamples else np.zeros((0, rows))
    return np.concatenate([np.ones((1, rows)), drawn])


def told(values: np.ndarray, widths: Sequence[int] = ()) -> Told:
    """What is told of values [1 + B, K], the first row from all rows as they are; columns may be NaN throughout.

    `widths` are those of the blocks of columns; by default there is one.
    """
    vector, drawn = values[0], values[1:]
    if len(drawn) < 2:
        return Told(vector, np.zeros((0, len(vector))))
    off = np.nan_to_num(drawn - drawn.mean(axis=0))
    spread = off.std(axis=0)
    varies = spread > 1e-12 * max(1.0, float(np.abs(np.nan_to_num(vector)).max(initial=0)))
    scale = np.where(varies, spread, 0.0) * np.sqrt(np.repeat(widths, widths) if widths else 1.0)
    standard = np.divide(off, scale, out=np.zeros_like(off), where=scale > 0)
    energy, sides = np.linalg.eigh(standard @ standard.T)  # small, whatever K is
    energy, sides = np.maximum(energy[::-1], 0.0), sides[:, ::-1]
    share = np.cumsum(energy) / max(float(energy.sum()), 1e-300)
    kept = int(np.searchsorted(share, KEPT)) + 1 if share[-1] > 0 else 0
    short = np.sqrt(1 / share[kept - 1]) if kept else 1.0  # what is cut off is made up for
    return Told(vector, short * (sides[:, :kept].T @ standard) * scale / np.sqrt(len(drawn) - 1))
