"""Flavours of FL, 2025 (assignment 5): clusters of the 203 stations with all 96 rows, and vertical FL.

Clusters are those of `flavours`, except that the Laplacian's eigenvectors are 2 to 11. Vertical: all have the same
rows, 95 hours, and a station holds one column, its own temperature; the label is the mean of all, an hour later.
The first 80 % of the hours are for training. Every station predicts from its column and a constant, and is coupled with
its neighbours' predictions, alpha = .9; beside it, every station alone, and one model of all columns in one place, of
least norm. The notebook prints nothing of this but the shapes of its data.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import Rows, rows_of
from confrere.networks import Network, fitted_parameters, spectral_vectors, vertical
from confrere.reproduce.book.flavours import CLUSTERS, NEIGHBOURS, clustered
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.representations import mixture_parameters
from confrere.reproduce.book.stations import of_station

HOURS, TRAINING, ALPHA, ITERATIONS = 96, 76, 0.9, 300
REFERENCES = {
    "edges": Reference(510),
    "coordinates": Reference(36.810792),
    "gmm": Reference(39.242201),
    "laplacian": Reference(39.525776),
    "vertical.rows": Reference(95),
    "vertical.columns": Reference(203),
    "vertical.coupled.train": Reference(None, 4.636083),
    "vertical.coupled.validation": Reference(None, 27.281467),
    "vertical.alone.train": Reference(None, 3.937459),
    "vertical.alone.validation": Reference(None, 21.977802),
    "vertical.central.validation": Reference(None, 0.136281),
    "vertical.central.train": Reference(within=(0, 1e-18), why="more columns than hours: no error but rounding"),
}


def run() -> dict[str, Any]:
    """The errors of the clusters, and vertical FL."""
    rows = rows_of("2024")
    y = of_station(rows)[1]
    whole = np.flatnonzero([len(labels) == HOURS for labels in y])
    network = Network.nearest(rows.coordinates[whole], NEIGHBOURS)
    spectral = spectral_vectors(network, CLUSTERS + 1)[:, 1:]
    return {
        "edges": len(network.edges),
        **clustered(rows.coordinates[whole], mixture_parameters()[whole], spectral, [y[i] for i in whole]),
        "vertical": by_columns(network, series(rows, whole)),
    }


def series(rows: Rows, stations: np.ndarray) -> np.ndarray:
    """The temperatures by hour [96, stations]: time grows with year, month, day and hour."""
    columns = []
    for i in stations:
        mine = np.flatnonzero(rows.station == i)
        columns.append(rows.y[mine[np.lexsort(rows.X[mine, 5:1:-1].T)]])
    return np.stack(columns, axis=1)


def by_columns(network: Network, temperatures: np.ndarray) -> dict[str, Any]:
    """Errors of stations that hold a column each, coupled and alone, and of one model of all columns."""
    columns, y = temperatures[:-1], temperatures.mean(axis=1)[1:]
    X = [np.stack([column, np.ones(len(y))], axis=1) for column in columns.T]

    def stations(alpha: float, iterations: int) -> dict[str, float]:
        found = vertical(network, [a[:TRAINING] for a in X], y[:TRAINING], alpha, iterations)
        return parts(y, np.stack([a @ w for a, w in zip(X, found.models, strict=True)]))

    together = np.concatenate([columns, np.ones((len(y), 1))], axis=1)
    (w,) = fitted_parameters([together[:TRAINING]], [y[:TRAINING]])
    return {
        "rows": len(y),
        "columns": len(X),
        "coupled": stations(ALPHA, ITERATIONS),
        "alone": stations(0.0, 1),
        "central": parts(y, together @ w),
    }


def parts(y: np.ndarray, predictions: np.ndarray) -> dict[str, float]:
    """Training and validation error of predictions [..., hours], the mean over stations if there are several."""
    squares = (y - predictions) ** 2
    return {"train": float(squares[..., :TRAINING].mean()), "validation": float(squares[..., TRAINING:].mean())}
