"""Groups of silos, suggested only if they are more than chance and come back when rows are drawn anew.

Silos are joined by average linkage. How well groups are apart in a cut into 2 .. n - 1 of them is told by the index of
Dunn (Journal of Cybernetics 4, 1974):

    apart = smallest distance between silos of different groups / largest distance within a group

Of the cuts for which both of the following hold, the one is suggested in which groups are best apart:

    more than chance   silos that are all alike, with as many rows, would be as well apart in at most 5 % of draws,
                       whatever their best cut (the noise matrices of `measured`)
    stable             in at least 90 % of the draws every two silos are together, or apart, as they were
                       (consensus: Monti et al., Machine Learning 52, 2003)
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from scipy.stats import binomtest

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
    best = sorted(cuts_of(D), key=lambda cut: -dunn(D, cut))
    by_luck = np.array([max(dunn(one, cut) for cut in cuts_of(one)) for one in noise[(..., *square)]])
    trees = [tree_of(one) for one in draws[(..., *square)]]
    found = []
    for cut in best:
        together, count = joined(cut), int(cut.max()) + 1
        same = np.mean([joined(cut_into(tree, count)) == together for tree in trees], axis=0)
        groups = in_order([tuple(names[known[i]] for i in np.flatnonzero(cut == g)) for g in range(count)])
        considered = Groups((), "", groups, float(same.min()), float(np.mean(by_luck >= dunn(D, cut))))
        found.append(judged(considered, len(trees), len(by_luck)))
    return next((one for one in found if one.groups), found[0])


def judged(found: Groups, draws: int, lucky: int) -> Groups:
    """Whether the best cut is suggested, and why or why not; shares have the interval that so many draws leave."""
    said = "; ".join(" and ".join(group) for group in found.considered)
    held = f"came back in {of_draws(found.consensus, draws)} of the resamples"
    luck = f"silos that are all alike would be as well apart in {of_draws(found.chance, lucky)} of as many draws"
    low, high = ends_of(found.chance, lucky)
    if low <= CHANCE <= high:
        luck += f", which is near the limit of {CHANCE:.0%}: more resamples may say otherwise"
    if found.chance > CHANCE:
        return found._replace(words=f"no stable grouping: the best one ({said}) may be chance, as {luck}")
    if found.consensus < STABLE:
        return found._replace(words=f"no stable grouping: the best one ({said}) {held} only, where 90% are asked for")
    return found._replace(groups=found.considered, words=f"stable groups: {said} ({held}; {luck})")


def of_draws(share: float, draws: int) -> str:
    """A share of draws with Wilson's 95 % interval.

    >>> of_draws(0.06, 100), of_draws(0.0, 30)
    ('6% (3% to 12%)', '0% (0% to 11%)')
    """
    low, high = ends_of(share, draws)
    return f"{share:.0%} ({low:.0%} to {high:.0%})"


def ends_of(share: float, draws: int) -> tuple[float, float]:
    """The ends of that interval."""
    ends = binomtest(round(share * draws), draws).proportion_ci(method="wilson")
    return float(ends.low), float(ends.high)


def in_order(groups: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Groups in an order that does not depend on that of the silos: the largest first, names in order."""
    return tuple(sorted((tuple(sorted(g)) for g in groups), key=lambda g: (-len(g), g)))


def tree_of(D: np.ndarray) -> np.ndarray:
    """Who is joined with whom, by average linkage."""
    return linkage(squareform(D, checks=False), "average")


def cut_into(tree: np.ndarray, count: int) -> np.ndarray:
    """The group 0 .. count - 1 of every silo [n], if the last joins are undone."""
    n = len(tree) + 1
    group = list(range(n))
    for step in range(n - count):
        a, b = int(tree[step, 0]), int(tree[step, 1])
        group = [n + step if g in (a, b) else g for g in group]
    order = {g: k for k, g in enumerate(dict.fromkeys(group))}
    return np.array([order[g] for g in group])


def cuts_of(D: np.ndarray) -> list[np.ndarray]:
    """All cuts into 2 .. n - 1 groups."""
    tree = tree_of(D)
    return [cut_into(tree, count) for count in range(2, len(D))]


def joined(cut: np.ndarray) -> np.ndarray:
    """Which silos are together [n, n]."""
    return cut[:, None] == cut[None]


def dunn(D: np.ndarray, cut: np.ndarray) -> float:
    """The smallest distance between groups over the largest within one; 0 if there is but one group."""
    pairs = np.triu_indices(len(D), 1)
    together = joined(cut)[pairs]
    if together.all():
        return 0.0
    between, within = float(D[pairs][~together].min()), float(D[pairs][together].max(initial=0.0))
    return between / within if within > 0 else np.inf if between > 0 else 0.0
