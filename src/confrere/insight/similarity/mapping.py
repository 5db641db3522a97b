"""The map: silos on a plane, the nearer the more alike, with what drawing rows anew does to their places.

Every draw of the distances is mapped by itself, starting from the map, and moved, turned and scaled to lie on it as
well as can be. The ellipse of a silo holds 95 % of a normal law with the mean and covariance of its places.
"""

from typing import NamedTuple

import numpy as np

from confrere.insight.similarity.scaling import aligned, lengths, planar

WITHIN = 5.991  # the 95 % quantile of chi-squared with two degrees of freedom
TRUST = ((0.05, "good"), (0.1, "fair"), (0.2, "rough"))  # Kruskal (1964)


class Ellipse(NamedTuple):
    """Where a silo may lie: the centre, the half axes, and the angle of the first one with the x axis."""

    x: float
    y: float
    long: float
    short: float
    angle: float  # in degrees


class Map(NamedTuple):
    """Silos on a plane, the nearer the more alike, and how far to trust it."""

    names: tuple[str, ...]  # of those that are on it
    places: np.ndarray  # [k, 2]
    stress: float
    ellipses: tuple[Ellipse, ...]  # empty: no resamples
    worst: tuple[str, str] | None  # the pair whose distance is shown least well
    words: str  # how far to trust it
    without: tuple[str, ...]  # silos that have no distances

    def in_order(self, names: tuple[str, ...]) -> "Map":
        """The same with silos in the order of names."""
        order = [self.names.index(n) for n in names if n in self.names]
        return self._replace(
            names=tuple(self.names[i] for i in order), places=self.places[order],
            ellipses=tuple(self.ellipses[i] for i in order) if self.ellipses else (),
            without=tuple(n for n in names if n in self.without),
        )  # fmt: skip


def mapped(names: tuple[str, ...], distances: np.ndarray, draws: np.ndarray) -> Map:
    """The map of distances [n, n], with draws [B, n, n] of them."""
    known = [i for i in range(len(names)) if not np.isnan(distances[i]).all()]
    square = np.ix_(known, known)
    D = distances[square]
    on = tuple(names[i] for i in known)
    without = tuple(n for n in names if n not in on)
    if len(known) < 2:
        return Map(on, np.zeros((len(known), 2)), 0.0, (), None, "there are too few silos for a map", without)
    found = planar(D)
    moved = [aligned(planar(draw[square], found.places).places, found.places) for draw in draws]
    ellipses = tuple(ellipse(np.array([m[k] for m in moved])) for k in range(len(on))) if len(moved) > 2 else ()
    off = np.abs(lengths(found.places) - np.nan_to_num(D, nan=0.0)) * ~np.isnan(D)
    i, j = sorted(map(int, np.unravel_index(off.argmax(), off.shape)))
    worst = (on[i], on[j]) if found.stress > TRUST[0][0] else None
    return Map(on, found.places, found.stress, ellipses, worst, trust(found.stress, len(on), worst), without)


def trust(stress: float, count: int, worst: tuple[str, str] | None) -> str:
    """How far a map may be trusted.

    >>> trust(0.08, 5, ("a", "b"))
    'a fair map (stress 0.08, where 0 is perfect and above 0.2 poor), worst for a and b'
    """
    if count == 2:
        return "two silos: only their distance means something"
    word = next((word for limit, word in TRUST if stress <= limit), "poor")
    pair = f", worst for {worst[0]} and {worst[1]}" if worst else ""
    return f"a {word} map (stress {stress:.2f}, where 0 is perfect and above 0.2 poor){pair}"


def ellipse(places: np.ndarray) -> Ellipse:
    """The ellipse that holds 95 % of a normal law of places [B, 2]."""
    centre = places.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(places.T))
    short, long = np.sqrt(WITHIN * np.maximum(values, 0))
    return Ellipse(float(centre[0]), float(centre[1]), float(long), float(short),
                   float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))))  # fmt: skip
