"""The design principle of FL (book, chapter 3): GTVMin with one constant per station, a smoothed mean temperature.

    minimise sum_i (1/m_i) |y_i - w_i|^2 + alpha sum over edges of (w_i - w_j)^2

on networks of the k nearest neighbours. The larger alpha, the less the models vary over edges, and the worse they fit.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.networks import GTVMin, Network
from confrere.reproduce.book.numbers import Reference
from confrere.reproduce.book.stations import mean_error, of_station

SETTINGS = ((3, 1), (5, 1), (5, 10), (5, 100), (5, 1000))  # neighbours, alpha
PRINTED = {
    (3, 1): ((32.772418, 32.962841), (203.286661, 204.214812)),
    (5, 1): ((33.5468, 33.728273), (291.857, 293.665323)),
    (5, 10): ((36.7494, 36.962043), (66.980, 66.955936)),
    (5, 100): ((45.3819, 45.574914), (5.554, 5.513419)),
    (5, 1000): ((50.6962, 50.849808), (0.0896, 0.088905)),
}
REFERENCES = {
    **{
        f"k{k}_alpha{alpha}.{name}": Reference(*pair)
        for (k, alpha), pairs in PRINTED.items()
        for name, pair in zip(("train", "variation"), pairs, strict=True)
    },
    **{f"components.{k}": Reference(None, count) for k, count in enumerate((63, 14, 3, 1, 1), start=1)},
}


def run() -> dict[str, Any]:
    """Training error and total variation for every setting, and how many components networks have."""
    rows = rows_of("2024")
    y = of_station(rows)[1]
    networks = {k: Network.nearest(rows.coordinates, k) for k in range(1, 6)}
    found: dict[str, Any] = {f"k{k}_alpha{alpha}": smoothed(networks[k], y, alpha) for k, alpha in SETTINGS}
    found["components"] = {str(k): len(network.components()) for k, network in networks.items()}
    return found


def smoothed(network: Network, y: list[np.ndarray], alpha: float) -> dict[str, float]:
    """The fit and the variation of the stations' constants."""
    X = [np.ones((len(labels), 1)) for labels in y]
    problem = GTVMin(network, alpha=alpha, X=X, y=y)
    W = problem.solve(tol=1e-12)
    return {"train": mean_error(X, y, W), "variation": problem.total_variation(W)}
