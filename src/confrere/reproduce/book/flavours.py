"""Flavours of FL (book, chapter 6): clusters of stations, each of which predicts its mean temperature.

k-means with ten clusters, by three representations of a station: its coordinates; the parameters of a mixture of two
Gaussians fitted to its features; its entries in eigenvectors of the Laplacian of the network of four nearest
neighbours, the first ten (in 2025: 2 to 11). The error is the mean over all rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.networks import Network
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.representations import mixture_parameters
from confrere.reproduce.book.stations import SEED, of_station

CLUSTERS, NEIGHBOURS = 10, 4
REFERENCES = {
    "coordinates": Reference(36.419778),
    "laplacian": Reference(36.976444),
    "lambda_2": Reference(None, 0.0160292),
}


def run() -> dict[str, Any]:
    """The errors with the three representations."""
    rows = rows_of("2024")
    y = of_station(rows)[1]
    network = Network.nearest(rows.coordinates, NEIGHBOURS)
    return {
        **clustered(rows.coordinates, mixture_parameters(), eigenvectors(network)[:, :CLUSTERS], y),
        "lambda_2": network.lambda_2(),
    }


def clustered(
    coordinates: np.ndarray, mixtures: np.ndarray, spectral: np.ndarray, y: Sequence[np.ndarray]
) -> dict[str, float]:
    """The error of clusters by each representation."""
    ways = {"coordinates": coordinates, "gmm": mixtures, "laplacian": spectral}
    return {way: cluster_error(clusters(z), y) for way, z in ways.items()}


def eigenvectors(network: Network) -> np.ndarray:
    """Eigenvectors of the Laplacian in columns, by increasing eigenvalue."""
    return np.linalg.eigh(network.laplacian().toarray())[1]


def clusters(representations: np.ndarray) -> np.ndarray:
    """The cluster of every station."""
    from sklearn.cluster import KMeans

    return KMeans(CLUSTERS, random_state=SEED, n_init="auto").fit(representations).labels_


def cluster_error(labels: np.ndarray, y: Sequence[np.ndarray]) -> float:
    """The mean over all rows of the squared distance from the cluster's mean."""
    members = [np.flatnonzero(labels == c).tolist() for c in np.unique(labels)]
    pooled = [np.concatenate([y[i] for i in cluster]) for cluster in members]
    return float(sum(((rows - rows.mean()) ** 2).sum() for rows in pooled) / sum(map(len, pooled)))
