"""The units of amounts: networks learn labels of mean 0 and spread 1, and answer in the units they came in.

Steps that suit labels around 1 make a network diverge on labels around 1000. A linear model needs no such care: its
own numbers take the scale of its labels.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from confrere.data.silos import Silos
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


def units_of(silos: Silos, user: int, model: Model) -> Units:
    """Mean and standard deviation of the user's training labels, for networks on amounts; else labels as they are."""
    if model.task != "regression" or model.name == "linear":
        return AS_THEY_ARE
    labels = silos[user].rows("train")[1]
    if not len(labels):
        return AS_THEY_ARE
    spread = float(labels.std())
    return Units(float(labels.mean()), spread if spread > 0 else 1.0)


def in_units(silos: Silos, units: Units) -> Silos:
    """The silos with labels as they are learned."""
    if units == AS_THEY_ARE:
        return silos
    return replace(silos, silos=tuple(replace(silo, y=units.standard(silo.y)) for silo in silos.silos))
