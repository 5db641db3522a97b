"""From ML to FL, 2025 (assignment 2): ten invented stations predict their mean temperature from their neighbours'.

Place, mean and deviation of each station are drawn, then 100 temperatures; a station has an edge with the five
nearest, by place ("geo") or by mean and deviation ("stat"). Weights of edges are distances, which local averaging does
not use: the prediction is the mean over the neighbours.
"""

from typing import Any

import numpy as np

from confrere.networks import Network
from confrere.reproduce.book.numbers import Reference, rows

STATIONS, NEIGHBOURS, ROWS, SEED = 10, 5, 100, 42
REFERENCES = {
    "geo.edges": Reference(30),
    "stat.edges": Reference(30),
    **rows("geo.error", (-7.107389, 6.848141, 1.432471, 0.966413, 2.637288, -12.469832, 11.270813, -6.606044,
                         -8.270796, 12.844463)),
    **rows("stat.error", (-1.694677, 3.706773, -0.307620, 0.966413, -0.904123, -8.533987, 2.063615, 0.073781,
                          -2.431390, 7.058151)),
}  # fmt: skip


def run() -> dict[str, Any]:
    """The errors of all stations with both networks."""
    draw = np.random.RandomState(SEED)
    places = np.stack([draw.uniform(60, 65, STATIONS), draw.uniform(24, 30, STATIONS)], axis=1)
    laws = np.stack([draw.uniform(-10, 20, STATIONS), draw.uniform(1, 5, STATIONS)], axis=1)
    means = np.array([draw.normal(mean, deviation, ROWS).mean() for mean, deviation in laws])
    return {"geo": averaged(places, means), "stat": averaged(laws, means)}


def averaged(representations: np.ndarray, means: np.ndarray) -> dict[str, Any]:
    """How far the mean of the neighbours is from each station's own."""
    network = Network.nearest(representations, NEIGHBOURS, weight=lambda distance: distance)
    joined = (network.adjacency().toarray() > 0).astype(float)
    error = joined @ means / joined.sum(axis=1) - means
    return {"edges": len(network.edges), "error": error.tolist()}
