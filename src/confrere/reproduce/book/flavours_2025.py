"""Flavours of FL, 2025 (assignment 5): clusters of the 203 stations with all 96 rows, and vertical FL.

Clusters are those of `flavours`, except that the Laplacian's eigenvectors are 2 to 11. Vertical: a node is an hour, its
one row the temperatures of all stations, its label their mean an hour later; hours have an edge with the four nearest
in time, and GTVMin has alpha = .9. The notebook prints nothing of it but shapes.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import Rows, rows_of
from confrere.networks import GTVMin, Network
from confrere.reproduce.book.flavours import CLUSTERS, NEIGHBOURS, clustered, eigenvectors
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.representations import mixture_parameters
from confrere.reproduce.book.stations import of_station

HOURS, ALPHA = 96, 0.9
REFERENCES = {
    "edges": Reference(510),
    "coordinates": Reference(36.810792),
    "gmm": Reference(39.242201),
    "laplacian": Reference(39.525776),
    "vertical.nodes": Reference(95),
    "vertical.features": Reference(203),
    "vertical.train": Reference(within=(0, 1e-18)),
    "vertical.variation": Reference(within=(0, 0)),
}


def run() -> dict[str, Any]:
    """The errors of the clusters, and vertical FL."""
    rows = rows_of("2024")
    y = of_station(rows)[1]
    whole = np.flatnonzero([len(labels) == HOURS for labels in y])
    network = Network.nearest(rows.coordinates[whole], NEIGHBOURS)
    spectral = eigenvectors(network)[:, 1 : CLUSTERS + 1]
    return {
        "edges": len(network.edges),
        **clustered(rows.coordinates[whole], mixture_parameters()[whole], spectral, [y[i] for i in whole]),
        "vertical": vertical(series(rows, whole)),
    }


def series(rows: Rows, stations: np.ndarray) -> np.ndarray:
    """The temperatures by hour [96, stations]: time grows with year, month, day and hour."""
    columns = []
    for i in stations:
        mine = np.flatnonzero(rows.station == i)
        columns.append(rows.y[mine[np.lexsort(rows.X[mine, 5:1:-1].T)]])
    return np.stack(columns, axis=1)


def vertical(temperatures: np.ndarray) -> dict[str, Any]:
    """GTVMin over hours: shapes, training error and variation of the solution.

    There are fewer hours than stations, so one model fits them all, and it is the same everywhere: no error and no
    variation, hence a minimiser, which no number of iterations improves upon.
    """
    X, y = temperatures[:-1], temperatures.mean(axis=1)[1:]
    network = Network.nearest(np.arange(len(y), dtype=float), NEIGHBOURS)
    problem = GTVMin(network, alpha=ALPHA, X=[row[None] for row in X], y=[label[None] for label in y])
    W = np.tile(np.linalg.lstsq(X, y, rcond=None)[0], (len(y), 1))
    train = float(np.mean((y - (X * W).sum(axis=1)) ** 2))
    return {"nodes": W.shape[0], "features": W.shape[1], "train": train, "variation": problem.total_variation(W)}
