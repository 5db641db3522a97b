"""FL algorithms (book, chapter 5): FedGD and FedSGD for linear models of 207 stations.

Each station has an edge with its three nearest; alpha = .5, learning rate .1, 1000 iterations from 0. FedSGD takes
consecutive batches of 10 rows, begins again after the last, and divides by 10 also where the last one is smaller.
"""

from typing import Any

from confrere.networks import GTVMin, Network, fedgd, fedsgd
from confrere.reproduce.book.numbers import Reference, both
from confrere.reproduce.book.stations import Stations, errors, split_stations

SPLIT, NEIGHBOURS, ALPHA, RATE, ITERATIONS, BATCH = 1, 3, 0.5, 0.1, 1000, 10
PUBLISHED: dict[str, list[float]] = {"fedgd": [21.0652777154, 21.3362458978], "fedsgd": []}
REFERENCES = both("fedgd", *map(Reference, PUBLISHED["fedgd"]))


def coupled(stations: Stations, network: Network) -> GTVMin:
    """Linear models of the training rows, coupled along the network."""
    return GTVMin(network, alpha=ALPHA, X=stations.X, y=stations.y)


def problem_of(stations: Stations) -> GTVMin:
    """The problem of this assignment."""
    return coupled(stations, Network.nearest(stations.coordinates, NEIGHBOURS))


def run() -> dict[str, Any]:
    """Training and validation errors of both algorithms; `published` is empty where nothing is known."""
    stations = split_stations(SPLIT)
    problem = problem_of(stations)
    ended = {
        "fedgd": fedgd(problem, lr=RATE, iterations=ITERATIONS),
        "fedsgd": fedsgd(problem, lr=RATE, batch=BATCH, iterations=ITERATIONS, order="cyclic"),
    }
    return {name: {**errors(stations, h.W), "published": PUBLISHED[name]} for name, h in ended.items()}
