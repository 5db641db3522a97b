"""Groups of silos, suggested only if they are more than chance and come back when rows are drawn anew.

Silos are joined by average linkage. Of all cuts into 2 .. n - 1 groups the one is looked at in which groups are best
apart by the index of Dunn (Journal of Cybernetics 4, 1974):

    apart = smallest distance between silos of different groups / largest distance within a group

It is suggested if both hold:

    more than chance   silos that are all alike, with as many rows, would be as well apart in at most 5 % of draws,
                       whatever their best cut (the noise matrices of `measured`)
    stable             in at least 90 % of the draws every two silos are together, or apart, as they were
                       (consensus: Monti et al., Machine Learning 52, 2003)
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

STABLE = 0.9
CHANCE = 0.05
FEWEST = 20  # draws on which something can be said


class Groups(NamedTuple):
    """Groups of silos by name; none if no grouping is stable, and in words why."""

    groups: tuple[tuple[str, ...], ...]  # the largest first; empty: none is suggested
    words: str
    considered: tuple[tuple[str, ...], ...]  # the best cut, suggested or not
    consensus: float  # the share of draws in which it came back, for the pair that changed most
    chance: float  # the share of draws in which silos that are alike would be as well apart


def grouped(names: tuple[str, ...], distances: np.ndarray, draws: np.ndarray, noise: np.ndarray) -> Groups:
    """The groups that distances [n, n] suggest, given draws [B, n, n] of them and of what chance alone gives."""
    known = [i for i in range(len(names)) if not np.isnan(distances[i]).all()]
    square = np.ix_(known, known)
    D = distances[square]
    nothing = Groups((), "", (), np.nan, np.nan)
    if len(known) < 3:
        return nothing._replace(words=f"no grouping: {len(known)} silos cannot be grouped, it takes 3 or more")
    if np.isnan(D).any():
        return nothing._replace(words="no grouping: some distances are not known")
    if not D.any():
        return nothing._replace(words="no grouping: all silos are equal")
    if len(draws) < FEWEST:
        return nothing._replace(words=f"no grouping: whether one is stable takes {FEWEST} resamples or more")
    cut, apart = best_cut(D)
    by_chance = float(np.mean([best_cut(noise[(b, *square)])[1] >= apart for b in range(len(noise))]))
    together = cut[:, None] == cut[None]
    count = int(cut.max()) + 1
    same = np.mean([joined(draws[(b, *square)], count) == together for b in range(len(draws))], axis=0)
    groups = in_order([tuple(names[known[i]] for i in np.flatnonzero(cut == g)) for g in range(count)])
    return judged(Groups((), "", groups, float(same.min()), by_chance))


def judged(found: Groups) -> Groups:
    """Whether the best cut is suggested, and why or why not."""
    said = "; ".join(" and ".join(group) for group in found.considered)
    held = f"came back in {found.consensus:.0%} of the resamples"
    luck = f"silos that are all alike would be as well apart in {found.chance:.0%} of them"
    if found.chance > CHANCE:
        return found._replace(words=f"no stable grouping: the best one ({said}) may be chance, as {luck}")
    if found.consensus < STABLE:
        return found._replace(words=f"no stable grouping: the best one ({said}) {held} only, where 90% are asked for")
    return found._replace(groups=found.considered, words=f"stable groups: {said} ({held}; {luck})")


def in_order(groups: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Groups in an order that does not depend on that of the silos: the largest first, names in order."""
    return tuple(sorted((tuple(sorted(g)) for g in groups), key=lambda g: (-len(g), g)))


def cut_into(D: np.ndarray, count: int) -> np.ndarray:
    """The group 0 .. count - 1 of every silo [n], by average linkage."""
    joined_by = linkage(squareform(D, checks=False), "average")
    return np.unique(fcluster(joined_by, count, "maxclust"), return_inverse=True)[1]


def joined(D: np.ndarray, count: int) -> np.ndarray:
    """Which silos are together [n, n] in a cut into so many groups."""
    cut = cut_into(D, count)
    return cut[:, None] == cut[None]


def best_cut(D: np.ndarray) -> tuple[np.ndarray, float]:
    """The cut whose groups are best apart, and how well; 0 if no cut is one."""
    best, most = np.zeros(len(D), int), 0.0
    for count in range(2, len(D)):
        cut = cut_into(D, count)
        well = dunn(D, cut)
        if well > most:
            best, most = cut, well
    return best, most


def dunn(D: np.ndarray, cut: np.ndarray) -> float:
    """The smallest distance between groups over the largest within one; 0 if there is but one group."""
    pairs = np.triu_indices(len(D), 1)
    together = (cut[:, None] == cut[None])[pairs]
    if together.all():
        return 0.0
    between, within = float(D[pairs][~together].min()), float(D[pairs][together].max(initial=0.0))
    return between / within if within > 0 else np.inf if between > 0 else 0.0
