"""The design principle of FL, 2025 (assignment 3): tomorrow's highest temperature at 192 stations.

Ten features (five days' extremes), eight rows for training and two for validation, edges with the four nearest. FedGD
with alpha = 1 takes 100 steps of 1e-4 from weights drawn between -1 and 1; beside it, the exact solution.
"""

from typing import Any

import numpy as np

from confrere.networks import GTVMin, Network, bounds, extreme_eigenvalues, fedgd
from confrere.reproduce.book.numbers import Reference, both
from confrere.reproduce.book.stations import errors, split_stations

SEED, NEIGHBOURS, ALPHA, RATE, ITERATIONS = 42, 4, 1.0, 1e-4, 100
REFERENCES = {
    "edges": Reference(486),
    "components": Reference(1),
    "fedgd.validation": Reference(53.2249974),
    **both("exact", Reference(None, 0.634756), Reference(None, 50.721574)),
    "smallest_eigenvalue": Reference(None, 0.191863),
    "largest_eigenvalue": Reference(None, 2495.420728),
    "largest_bound": Reference(None, 2509.414278),
}


def run() -> dict[str, Any]:
    """Errors of FedGD and of the solution, and the eigenvalues that decide how fast it gets there."""
    stations = split_stations(SEED, "2025")
    network = Network.nearest(stations.coordinates, NEIGHBOURS)
    problem = GTVMin(network, alpha=ALPHA, X=stations.X, y=stations.y)
    start = np.random.RandomState(SEED).uniform(-1, 1, (problem.n, problem.d))
    ended = fedgd(problem, lr=RATE, iterations=ITERATIONS, start=start)
    smallest, largest = extreme_eigenvalues(problem)
    return {
        "edges": len(network.edges),
        "components": len(network.components()),
        "fedgd": errors(stations, ended.W),
        "exact": errors(stations, problem.solve(tol=1e-12)),
        "smallest_eigenvalue": smallest,
        "largest_eigenvalue": largest,
        "largest_bound": bounds.upper_eigenvalue(problem),
    }
