"""Trustworthy FL (book, chapter 8): how far models move when noise is added to the labels.

The sum over stations of |w - w'|, where w' is what FedGD learns from labels with normal noise: of mean 0 and growing
deviation, and of growing mean and deviation 1. The noise is one draw of the seed, scaled and shifted; FedGD is linear
in the labels, so the first grows in proportion.
"""

from typing import Any

import numpy as np

from confrere.networks import GTVMin, Network, fedgd
from confrere.reproduce.book.fl_algorithms import ALPHA, ITERATIONS, RATE
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.stations import SEED, split_stations

NEIGHBOURS = 4
LEVELS = tuple(range(0, 60, 5))
REFERENCES = {
    **{f"deviation.{level}": Reference(None, value) for level, value in {0: 0, 5: 120.053450, 55: 1320.587946}.items()},
    **{
        f"mean.{level}": Reference(None, value)
        for level, value in {0: 24.010690, 5: 848.351264, 10: 1703.034860, 55: 9396.204685}.items()
    },
}


def run() -> dict[str, Any]:
    """How far the models move, by deviation and by mean of the noise."""
    stations = split_stations(SEED)
    network = Network.nearest(stations.coordinates, NEIGHBOURS)
    draw = np.random.RandomState(SEED)
    noise = [draw.normal(0, 1, len(y)) for y in stations.y]

    def models(labels: list[np.ndarray]) -> np.ndarray:
        return fedgd(GTVMin(network, alpha=ALPHA, X=stations.X, y=labels), lr=RATE, iterations=ITERATIONS).W

    clean = models(stations.y)

    def moved(mean: float, deviation: float) -> float:
        noisy = [y + mean + deviation * z for y, z in zip(stations.y, noise, strict=True)]
        return float(np.linalg.norm(models(noisy) - clean, axis=1).sum())

    return {
        "deviation": {str(level): moved(0, level) for level in LEVELS},
        "mean": {str(level): moved(level, 1) for level in LEVELS},
    }
