"""FL algorithms, 2025 (assignment 4): FedRelax with trees, which have no parameters to compare (5.21).

The stations of `design_principle_2025`; each learns a tree of depth 5. Coupled are predictions on ten public rows,
drawn between -33 and 12: in each of ten iterations a station learns anew from its own rows and from the public ones,
labelled with the neighbours' mean prediction, where a public row counts as much as one of its own: alpha is 10 / (m_i
d_i) at station i. Equally good splits of trees make the number depend on the program.
"""

from typing import Any

import numpy as np

from confrere.networks import Network, relax_predictors
from confrere.reproduce.book.design_principle_2025 import NEIGHBOURS, SEED
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.stations import Stations, split_stations, squared_error

DEPTH, PUBLIC, ITERATIONS, LOWEST, HIGHEST = 5, 10, 10, -33, 12
TIES = "of equally good splits of a tree, versions of scikit-learn choose different ones"
REFERENCES = {
    "local.validation": Reference(None, 43.481, within=(42, 45), why=TIES),
    "fedrelax.validation": Reference(38.971, 39.151, within=(36, 42), why=TIES),
}


def run() -> dict[str, Any]:
    """The validation error of trees, alone and coupled."""
    from sklearn.tree import DecisionTreeRegressor

    stations = split_stations(SEED, "2025")
    network = Network.nearest(stations.coordinates, NEIGHBOURS)
    public = np.random.RandomState(SEED).uniform(LOWEST, HIGHEST, (PUBLIC, stations.X[0].shape[1]))
    tree = DecisionTreeRegressor(max_depth=DEPTH, random_state=SEED)
    as_own_rows = PUBLIC / (np.array([len(y) for y in stations.y]) * network.degrees)

    def coupled(alpha: Any, iterations: int) -> dict[str, float]:
        found = relax_predictors(network, tree, stations.X, stations.y, public, alpha, iterations)
        return {"validation": error(stations, found.models)}

    return {"local": coupled(0.0, 1), "fedrelax": coupled(as_own_rows, ITERATIONS)}


def error(stations: Stations, trees: list[Any]) -> float:
    """The validation error, averaged over stations."""
    parts = zip(stations.X_validation, stations.y_validation, trees, strict=True)
    return float(np.mean([squared_error(y, one.predict(X)) for X, y, one in parts]))
