"""FL algorithms, 2025 (assignment 4): FedRelax with trees, which have no parameters to compare (5.21).

The stations of `design_principle_2025`; each learns a tree of depth 5. Coupled are predictions on ten public rows,
drawn between -33 and 12: in each of ten iterations a station learns anew from its own rows and from the public ones,
labelled with the neighbours' mean prediction. Equally good splits of trees make the number depend on the program.
"""

from typing import Any

import numpy as np

from confrere.networks import Network
from confrere.reproduce.book.design_principle_2025 import NEIGHBOURS, SEED
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.stations import Stations, split_stations, squared_error

DEPTH, PUBLIC, ITERATIONS, LOWEST, HIGHEST = 5, 10, 10, -33, 12
REFERENCES = {
    "local.validation": Reference(None, 43.481, within=(42, 45)),
    "fedrelax.validation": Reference(38.971, 39.151, within=(36, 42)),
}


def run() -> dict[str, Any]:
    """The validation error of trees, alone and coupled."""
    stations = split_stations(SEED, "2025")
    neighbours = Network.nearest(stations.coordinates, NEIGHBOURS).adjacency().toarray()
    public = np.random.RandomState(SEED).uniform(LOWEST, HIGHEST, (PUBLIC, stations.X[0].shape[1]))
    local = trees = [tree(X, y) for X, y in zip(stations.X, stations.y, strict=True)]
    for _ in range(ITERATIONS):
        guesses = neighbours @ np.stack([one.predict(public) for one in trees]) / neighbours.sum(axis=1, keepdims=True)
        trees = [
            tree(np.concatenate([X, public]), np.concatenate([y, guess]))
            for X, y, guess in zip(stations.X, stations.y, guesses, strict=True)
        ]
    return {"local": {"validation": error(stations, local)}, "fedrelax": {"validation": error(stations, trees)}}


def tree(X: np.ndarray, y: np.ndarray) -> Any:
    """A regression tree."""
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=DEPTH, random_state=SEED).fit(X, y)


def error(stations: Stations, trees: list[Any]) -> float:
    """The validation error, averaged over stations."""
    parts = zip(stations.X_validation, stations.y_validation, trees, strict=True)
    return float(np.mean([squared_error(y, one.predict(X)) for X, y, one in parts]))
