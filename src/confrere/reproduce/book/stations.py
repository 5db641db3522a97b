"""What the assignments share: the stations, each split into rows for training and validation, and errors over nodes."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from confrere.data.fmi import Edition, Rows, rows_of

SEED = 4740  # the course's number, and its seed


class Stations(NamedTuple):
    """The rows of every node for training and for validation."""

    names: tuple[str, ...]
    coordinates: np.ndarray  # [n, 2]
    X: list[np.ndarray]  # [m_i, d]
    y: list[np.ndarray]  # [m_i]
    X_validation: list[np.ndarray]
    y_validation: list[np.ndarray]


def of_station(rows: Rows) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """All rows, station by station."""
    places = [np.flatnonzero(rows.station == i) for i in range(len(rows.names))]
    return [rows.X[place] for place in places], [rows.y[place] for place in places]


@cache
def split_stations(seed: int, edition: Edition = "2024") -> Stations:
    """Each station's rows split as scikit-learn does, 80 to 20."""
    from sklearn.model_selection import train_test_split

    rows = rows_of(edition)
    parts = [train_test_split(X, y, test_size=0.2, random_state=seed) for X, y in zip(*of_station(rows), strict=True)]
    X, X_validation, y, y_validation = (list(part) for part in zip(*parts, strict=True))
    return Stations(rows.names, rows.coordinates, X, y, X_validation, y_validation)


def mean_error(X: Sequence[np.ndarray], y: Sequence[np.ndarray], W: np.ndarray) -> float:
    """The mean squared error of linear models W [n, d], averaged over nodes, which count alike."""
    return float(np.mean([np.mean((labels - rows @ w) ** 2) for rows, labels, w in zip(X, y, W, strict=True)]))


def errors(stations: Stations, W: np.ndarray) -> dict[str, float]:
    """Training and validation error of the nodes' models."""
    return {
        "train": mean_error(stations.X, stations.y, W),
        "validation": mean_error(stations.X_validation, stations.y_validation, W),
    }


def squared_error(labels: np.ndarray, predictions: np.ndarray) -> float:
    """The mean squared error."""
    return float(np.mean((labels - predictions) ** 2))
