"""Similarity: what all measures found, all of them as one view, a map, groups, and who is like whom in words."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from confrere.data.silo import place_of
from confrere.insight.similarity.combining import COMBINED, combined
from confrere.insight.similarity.grouping import Groups, grouped
from confrere.insight.similarity.mapping import Map, mapped
from confrere.insight.similarity.measured import Measured
from confrere.selection.selection import Crossing, finite

if TYPE_CHECKING:
    from rich.table import Table

    from confrere.insight.similarity.words import Likeness


@dataclass(frozen=True, eq=False)
class Similarity:
    """How alike all pairs of silos are, in several senses. In a matrix, rows ask and columns are asked about.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4, 80, 2))
    >>> silos = cf.Silos.from_arrays([(x, (x[:, i // 2] > 0)) for i, x in enumerate(X)], names=list("abcd"))
    >>> found = cf.insight.similarity(silos, resamples=40)
    >>> found.like("a")[0].silo, found.groups().groups
    ('b', (('a', 'b'), ('c', 'd')))
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]  # training rows of every silo
    measures: Mapping[str, Measured]
    feature_names: tuple[str, ...]
    resamples: int
    min_group: int
    task: str
    without: Mapping[str, str] = field(default_factory=dict)  # silo -> why nothing of it is shared

    @property
    def matrices(self) -> dict[str, np.ndarray]:
        """By measure, a number for every pair [n, n], NaN where it is not defined."""
        return {name: m.matrix for name, m in self.measures.items()}

    @property
    def intervals(self) -> dict[str, np.ndarray]:
        """By measure, 95 % intervals [n, n, 2]; NaN without resamples."""
        return {name: np.stack([m.low, m.high], axis=2) for name, m in self.measures.items()}

    @property
    def chance(self) -> dict[str, np.ndarray]:
        """By dissimilarity, how large it may be by chance alone [n, n] between silos that are alike."""
        return {name: m.chance for name, m in self.measures.items() if m.dissimilarity is not None}

    @property
    def reveals(self) -> dict[str, str]:
        """By measure, what crosses the border for it."""
        return {name: m.reveals for name, m in self.measures.items()}

    @property
    def crossings(self) -> dict[str, tuple[Crossing, ...]]:
        """By measure and silo, what crosses the border, in words and bytes."""
        return {name: m.crossings for name, m in self.measures.items()}

    @functools.cached_property
    def combined(self) -> Measured:
        """All dissimilarities as one, in units of what chance explains."""
        found = combined(list(self.measures.values()))
        if found is None:
            raise ValueError(f"{', '.join(self.measures)}: none of these says who is alike; ask for 'models', too")
        return found

    def of(self, measure: str = COMBINED) -> Measured:
        """One measure, or the combined view."""
        if measure == COMBINED:
            return self.combined
        if measure not in self.measures:
            raise KeyError(f"there is no measure {measure!r} here; there are {', '.join((*self.measures, COMBINED))}")
        return self.measures[measure]

    def dissimilarity(self, measure: str = COMBINED) -> Measured:
        """A measure that says who is alike; influence, which says who would be missed, is refused."""
        found = self.of(measure)
        if found.dissimilarity is None:
            raise ValueError(f"{measure} says who would be missed, not who is alike: there is no map of it")
        return found

    def map(self, measure: str = COMBINED) -> Map:
        """Silos on a plane, the nearer the more alike, with what drawing rows anew does to their places."""
        found = self.dissimilarity(measure)
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        square = np.ix_(order, order)
        assert found.dissimilarity is not None
        draws = found.draws[:, square[0], square[1]]
        return mapped(tuple(self.names[i] for i in order), found.dissimilarity[square], draws).in_order(self.names)

    def groups(self, measure: str = COMBINED) -> Groups:
        """Groups of silos, suggested only if they are more than chance and stable under resampling."""
        found = self.dissimilarity(measure)
        assert found.dissimilarity is not None
        return grouped(self.names, found.dissimilarity, found.draws, found.noise)

    def like(self, user: int | str) -> "tuple[Likeness, ...]":
        """Who is like a user, in what sense, and what it rests on: the others from most to least alike, in words."""
        from confrere.insight.similarity.words import likenesses

        return likenesses(self, place_of(self.names, user))

    def to_dict(self) -> dict[str, Any]:
        """All as plain values, for JSON; what is not defined is None."""
        from confrere.insight.similarity.words import plain_values

        return plain_values(self)

    def to_json(self) -> str:
        """All as a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def table(self, measure: str = COMBINED) -> "Table":
        """A matrix for a terminal."""
        from confrere.insight.similarity.words import table_of

        return table_of(self, measure)

    def __rich__(self) -> "Table":
        return self.table()

    def __str__(self) -> str:
        from confrere.insight.similarity.words import plain_text

        return plain_text(self)


def numbers(matrix: np.ndarray) -> list[Any]:
    """An array as nested lists, None where there is no number."""
    return [numbers(row) for row in matrix] if matrix.ndim else finite(float(matrix))  # type: ignore[return-value]
