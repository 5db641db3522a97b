"""What a measure found: a number for every pair of silos, how sure it is, and what crossed the border for it.

Rows are the silo that asks, columns the one that is asked about. A measure is a dissimilarity if 0 means alike; then

    chance_ij = 95 % quantile of |e_i - e_j|        what silos that are alike would show, given their rows
    interval  = d_ij - chance_ij .. d_ij + chance_ij

where e_i is by how much what silo i told varies when its rows are drawn anew. By the triangle inequality the interval
holds the distance of the populations in 95 % of the cases or more, and 0 exactly where chance explains the distance.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from confrere.selection.selection import Crossing

SURE = 95  # per cent


@dataclass(frozen=True, eq=False)
class Measured:
    """One measure of all pairs [n, n], NaN where it is not defined. B draws are behind its intervals."""

    name: str
    title: str  # in a clinician's words
    unit: str
    matrix: np.ndarray  # [n, n]
    low: np.ndarray  # [n, n]
    high: np.ndarray  # [n, n]
    symmetric: bool
    dissimilarity: np.ndarray | None  # [n, n] symmetric, 0: alike; None: the measure says nothing of being alike
    draws: np.ndarray  # [B, n, n] the dissimilarity when rows are drawn anew
    noise: np.ndarray  # [B, n, n] the dissimilarity that chance alone would give
    reveals: str  # what crosses the border, in words
    resampled: str  # what the intervals rest on
    crossings: tuple[Crossing, ...] = ()
    features: np.ndarray | None = None  # [n, n] which feature differs most; -1: none
    without: Mapping[str, str] = field(default_factory=dict)  # silo -> why the measure says nothing of it

    @property
    def chance(self) -> np.ndarray:
        """How large the dissimilarity may be by chance alone [n, n]; NaN without draws."""
        return upper(self.noise)

    @property
    def bytes_up(self) -> int:
        """What left all silos together."""
        return sum(c.up for c in self.crossings)

    @property
    def bytes_down(self) -> int:
        """What all silos received."""
        return sum(c.down for c in self.crossings)


def upper(noise: np.ndarray) -> np.ndarray:
    """The 95 % quantile over draws [B, n, n]; NaN where there are none."""
    return np.percentile(noise, SURE, axis=0) if len(noise) else np.full(noise.shape[1:], np.nan)


def around(distance: np.ndarray, chance: np.ndarray, most: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the interval of a distance, which lies between 0 and `most`; a silo is at 0 from itself."""
    low, high = np.maximum(distance - chance, 0.0), np.minimum(distance + chance, most)
    for end in (low, high):
        np.fill_diagonal(end, np.diag(distance))
    return low, high


Norm = Callable[[np.ndarray], np.ndarray]  # differences [n, n, K] -> lengths [n, n]


def pairwise(vectors: np.ndarray, norm: Norm) -> np.ndarray:
    """The length of all differences of vectors [n, K], NaN for silos that told nothing; exactly 0 from oneself."""
    found = np.asarray(norm(vectors[:, None] - vectors[None]), float)
    alone = np.isnan(vectors).all(axis=1)
    found[alone] = found[:, alone] = np.nan
    found[np.diag_indices(len(found))] = np.where(alone, np.nan, 0.0)
    return found


def both_ways(matrix: np.ndarray) -> np.ndarray:
    """The mean of both directions [..., n, n], 0 or more."""
    return np.maximum((matrix + np.swapaxes(matrix, -1, -2)) / 2, 0.0)
