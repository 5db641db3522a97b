"""The stations on the map, with networks and personal predictions, and how fast the algorithms minimise GTVMin.

Both are of the assignment on FL algorithms: linear models, alpha = .5. The map shows, for every station, what its own
model predicts for its validation rows, on average; on the left stations are joined with the three nearest, on the right
with the one whose gradient is nearest (graph learning III).
"""

import base64
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from confrere.networks import (
    GTVMin,
    Network,
    Run,
    accelerated_fedgd,
    async_fedgd,
    fedavg,
    fedgd,
    fedrelax,
    fedsgd,
    network_lasso,
)
from confrere.reproduce.book.fl_algorithms import BATCH, NEIGHBOURS, RATE, SPLIT, coupled, problem_of
from confrere.reproduce.book.numbers import Reference, flat
from confrere.reproduce.book.representations import gradients
from confrere.reproduce.book.stations import Stations, split_stations
from confrere.reproduce.figures import outside_legend, save
from confrere.reproduce.page import html_page

ITERATIONS = 1000
STRETCH = 2.2  # a degree of latitude is so much longer than one of longitude at 63 degrees north
STYLES = (
    ("#0072B2", "-"), ("#E69F00", ":"), ("#009E73", "-"), ("#D55E00", "--"), ("#CC79A7", "-"), ("#56B4E9", "-"),
    ("#000000", "-."), ("#8C564B", "--"),
)  # fmt: skip

INTRODUCTION = """\
<p>Weather stations of Finland are the nodes of a network; each has a linear model of its own, coupled with those of its
neighbours. Every number stands beside what the author's notebook printed; where that was run with an older file, the
number of another program on the present file stands beside it.</p>
<p>Data: Finnish Meteorological Institute, CC BY 4.0.</p>
"""
PICTURE = """\
<figure><img src="data:image/png;base64,{data}" alt="{title}" style="max-width:100%"><figcaption>{title}</figcaption>
</figure>
"""


def draw(report: Mapping[str, Any], folder: Path) -> Path:
    """Write both figures, and a page with them and the tables of a report; returns the page."""
    stations = split_stations(SPLIT)
    pictures = {
        "The network by place and the learnt one, with every station's own predictions": save(
            map_figure(stations), folder / "book-map.png"
        ),
        "The objective of GTVMin above its minimum, iteration by iteration": save(
            objective_figure(problem_of(stations)), folder / "book-objective.png"
        ),
    }
    images = [
        PICTURE.format(title=escape(title), data=base64.b64encode(path.read_bytes()).decode())
        for title, path in pictures.items()
    ]
    tables = [table(name, numbers, report["references"][name]) for name, numbers in report["assignments"].items()]
    path = folder / "book.html"
    body = INTRODUCTION + "".join(images) + "".join(tables)
    path.write_text(html_page("The book's exercises on the weather stations of Finland", body), encoding="utf-8")
    return path


def table(name: str, numbers: Any, references: Mapping[str, Any]) -> str:
    """One assignment's numbers beside their references."""
    head = "".join(f"<th scope='col'>{title}</th>" for title in ("", "ours", "notebook", "present file"))
    rows = []
    for path, value in flat(numbers):
        reference = Reference(**references[path]) if path in references else Reference()
        cells = [f"{value:.8g}", *("" if known is None else f"{known:.12g}" for known in reference[:2])]
        rows.append(
            f"<tr><th scope='row'>{escape(path)}</th>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        )
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<h2>{escape(name)}</h2><div class='scroll'>{body}</div>"


def map_figure(stations: Stations) -> Figure:
    """Two maps: stations joined by place, and by what their data say."""
    networks = {
        "by place: joined with the three nearest": Network.nearest(stations.coordinates, NEIGHBOURS),
        "learnt: joined with the one of nearest gradient": Network.nearest(gradients(), 1),
    }
    shown = {title: (net, predictions(stations, net)) for title, net in networks.items()}
    every = np.concatenate([values for _, values in shown.values()])
    figure, axes = plt.subplots(1, 2, figsize=(10, 8), sharex=True, sharey=True, layout="constrained")
    maps: list[PathCollection] = []
    for axis, (title, (network, values)) in zip(axes, shown.items(), strict=True):
        maps.append(one_map(axis, stations.coordinates, network, values, (every.min(), every.max())))
        axis.set_title(f"{title}\n{len(network.edges)} edges, {len(network.components())} components", fontsize=10)
        axis.set_xlabel("longitude (°E)")
    axes[0].set_ylabel("latitude (°N)")
    figure.colorbar(maps[0], ax=axes, label="mean prediction of the station's own model (°C)", shrink=0.6, aspect=30)
    figure.suptitle("Weather stations of Finland: 207 personal models, coupled along a network")
    return figure


def predictions(stations: Stations, network: Network) -> np.ndarray:
    """The mean prediction of every station's model for its validation rows [n]."""
    W = coupled(stations, network).solve()
    return np.array([float((X @ w).mean()) for X, w in zip(stations.X_validation, W, strict=True)])


def one_map(
    axis: Axes, coordinates: np.ndarray, network: Network, values: np.ndarray, limits: tuple[float, float]
) -> PathCollection:
    """Edges as lines, stations as points in the colour of their predictions."""
    places = coordinates[:, ::-1]
    axis.add_collection(
        LineCollection(list(places[network.edges]), colors="#555555", linewidths=0.6, alpha=0.45, zorder=1)
    )
    axis.set_aspect(STRETCH)
    return axis.scatter(
        *places.T, c=values, s=34, cmap="viridis", vmin=limits[0], vmax=limits[1], edgecolors="#333333", linewidths=0.5
    )


def runs(problem: GTVMin) -> dict[str, Run]:
    """Every algorithm that minimises GTVMin, or its losses with one model for all, on one problem."""
    many: dict[str, Any] = {"iterations": ITERATIONS}
    return {
        f"FedGD, lr {RATE:g}": fedgd(problem, lr=RATE, **many),
        f"FedSGD, batches of {BATCH}": fedsgd(problem, lr=RATE, batch=BATCH, **many),
        "FedRelax": fedrelax(problem, **many),
        "asynchronous FedGD, half active, delay 3": async_fedgd(problem, lr=RATE / 2, activation=0.5, delay=3, **many),
        "accelerated FedGD (Nesterov)": accelerated_fedgd(problem, **many),
        "accelerated FedGD (Chebyshev)": accelerated_fedgd(problem, method="chebyshev", **many),
        "FedAvg, one model for all (ends above)": fedavg(problem, eta=RATE, **many),
    }


def above_minimum(problem: GTVMin) -> dict[str, np.ndarray]:
    """How far every algorithm is above the minimum after each iteration, as a share of it.

    The network Lasso has another objective, and a minimum of its own.
    """
    least = problem.objective(problem.solve(tol=1e-12))
    lasso = GTVMin(problem.network, problem.quadratic, alpha=problem.alpha, penalty="norm")
    path = network_lasso(lasso, iterations=ITERATIONS).objective
    found = {title: run.objective / least - 1 for title, run in runs(problem).items()}
    return {**found, "network Lasso (of its own objective)": path / lasso.objective(lasso.solve()) - 1}


def objective_figure(problem: GTVMin) -> Figure:
    """The objective of every algorithm, iteration by iteration."""
    figure, axis = plt.subplots(figsize=(8, 6), layout="constrained")
    for (title, above), (colour, line) in zip(above_minimum(problem).items(), STYLES, strict=True):
        zigzag = "Chebyshev" in title  # it falls by the last iteration only: behind the others, and thin
        how: dict[str, Any] = {"linewidth": 0.7, "zorder": 1} if zigzag else {"linewidth": 1.6}
        axis.loglog(np.arange(1, len(above) + 1), above, line, color=colour, label=title, **how)
    axis.set_xlim(1, ITERATIONS)
    axis.grid(which="major", color="#dddddd", linewidth=0.6)
    axis.set_xlabel("iteration")
    axis.set_ylabel("(objective - minimum) / minimum")
    outside_legend(figure, [axis], columns=2)
    figure.suptitle(f"GTVMin on {problem.n} weather stations, alpha {problem.alpha:g}, all from models of 0")
    return figure
