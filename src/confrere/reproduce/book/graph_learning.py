"""Graph learning (book, chapter 7): who is joined follows from the data, not from the map.

Three representations of a station: its mean temperature (I), the parameters of a Gaussian mixture (II), the gradient of
its loss at the linear model of all rows (III). Each is joined with its nearest station, and FedGD runs on that network.
The notebook's III rests on coefficients that are not determined (see `representations.gradients`) and printed 20.052132
and 20.645773; ours is the book's formula with the model of least norm.
"""

from typing import Any

import numpy as np

from confrere.networks import Network, fedgd
from confrere.reproduce.book.fl_algorithms import ITERATIONS, RATE, coupled
from confrere.reproduce.book.numbers import Reference, both
from confrere.reproduce.book.representations import gradients, mean_labels, mixture_parameters
from confrere.reproduce.book.stations import SEED, Stations, errors, split_stations

COMPONENTS = {"mean": (72, 23, 7, 4, 1), "gmm": (63, 11, 3, 2, 2), "gradient": (63, 11, 2, 1)}
REFERENCES = {
    **both("mean", Reference(20.686357), Reference(21.386552)),
    **both("gradient", Reference(20.052132, 20.124889), Reference(20.645773, 20.768295)),
    **{
        f"{name}.components.{k}": Reference(None, count)
        for name, counts in COMPONENTS.items()
        for k, count in enumerate(counts, start=1)
    },
}


def run() -> dict[str, Any]:
    """Errors with each network, and how many components networks of k neighbours have."""
    stations = split_stations(SEED)
    ways = {"mean": mean_labels, "gmm": mixture_parameters, "gradient": gradients}
    return {name: learnt(stations, represent()) for name, represent in ways.items()}


def learnt(stations: Stations, z: np.ndarray) -> dict[str, Any]:
    """FedGD on the network of nearest representations."""
    ended = fedgd(coupled(stations, Network.nearest(z, 1)), lr=RATE, iterations=ITERATIONS)
    components = {str(k): len(Network.nearest(z, k).components()) for k in range(1, 6)}
    return {**errors(stations, ended.W), "components": components}
