"""The units of amounts: networks learn labels of mean 0 and spread 1, and answer in the units they came in.

Steps that suit labels around 1 make a network diverge on labels around 1000. A linear model needs no such care: its
own numbers take the scale of its labels.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from confrere.borrowing.summary import MIN_CELL
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.models import Model


class Units(NamedTuple):
    """A label in its own units is centre + spread * the label that is learned.

    >>> Units(50.0, 10.0).back(np.array([0.0, -1.5]))
    array([50., 35.])
    """

    centre: float = 0.0
    spread: float = 1.0

    def back(self, labels: np.ndarray) -> np.ndarray:
        """Learned labels in their own units."""
        return self.centre + self.spread * labels

    def standard(self, labels: np.ndarray) -> np.ndarray:
        """Labels as they are learned."""
        return (labels - self.centre) / self.spread


AS_THEY_ARE = Units()
CONSTANT = 1e-9  # a spread below this part of the mean is rounding


def units_of(silos: Silos, model: Model) -> Units:
    """Mean and standard deviation of the silos' training labels, for networks on amounts; else labels as they are.

    As with features, every silo sends the count, the sum and the sum of squares; one with a handful of rows sends none.
    """
    told = [silos.silos[i].rows("train")[1] for i in who_tells(silos, model)]
    if not told:
        return AS_THEY_ARE
    labels = np.concatenate(told)
    centre, spread = float(labels.mean()), float(labels.std())
    if spread <= CONSTANT * abs(centre):
        spread = abs(centre)
    return Units(centre, spread or 1.0)


def who_tells(silos: Silos, model: Model) -> list[int]:
    """The silos whose labels the units rest on."""
    if model.task != "regression" or model.name == "linear":
        return []
    return [i for i, rows in enumerate(silos.sizes("train")) if rows >= MIN_CELL]


def told_of_labels(silos: Silos, model: Model) -> tuple[Shared, ...]:
    """What left the silos so that labels have common units."""
    what = "count, sum and sum of squares of the training labels"
    return tuple(Shared(silos.names[i], what, 3, "units of the label") for i in who_tells(silos, model))


def in_units(silos: Silos, units: Units) -> Silos:
    """The silos with labels as they are learned."""
    if units == AS_THEY_ARE:
        return silos
    return replace(silos, silos=tuple(replace(silo, y=units.standard(silo.y)) for silo in silos.silos))
