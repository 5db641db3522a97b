"""Flavours of FL (book, chapter 6): clusters of stations, each of which predicts its mean temperature.

k-means with ten clusters, by three representations of a station: its coordinates; the parameters of a mixture of two
Gaussians fitted to its features; its entries in eigenvectors of the Laplacian of the network of four nearest
neighbours, the first ten (in 2025: 2 to 11). The error is the mean over all rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.networks import Network, cluster_models, clusters, spectral_vectors
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.representations import mixture_parameters
from confrere.reproduce.book.stations import SEED, of_station, squared_error

CLUSTERS, NEIGHBOURS = 10, 4
REFERENCES = {
    "coordinates": Reference(36.419778),
    "laplacian": Reference(36.976444),
    "lambda_2": Reference(None, 0.01602925),
}


def run() -> dict[str, Any]:
    """The errors with the three representations."""
    rows = rows_of("2024")
    y = of_station(rows)[1]
    network = Network.nearest(rows.coordinates, NEIGHBOURS)
    return {
        **clustered(rows.coordinates, mixture_parameters(), spectral_vectors(network, CLUSTERS), y),
        "lambda_2": network.lambda_2(),
    }


def clustered(
    coordinates: np.ndarray, mixtures: np.ndarray, spectral: np.ndarray, y: Sequence[np.ndarray]
) -> dict[str, float]:
    """The error of clusters by each representation."""
    ways = {"coordinates": coordinates, "gmm": mixtures, "laplacian": spectral}
    return {way: cluster_error(clusters(z, CLUSTERS, seed=SEED), y) for way, z in ways.items()}


def cluster_error(labels: np.ndarray, y: Sequence[np.ndarray]) -> float:
    """The mean over all rows of the squared error of the cluster's model, which is a constant."""
    constants = cluster_models(labels, [np.ones((len(rows), 1)) for rows in y], y)
    return squared_error(np.concatenate(y), np.repeat(constants[:, 0], [len(rows) for rows in y]))
