"""Figures 3 and 4 of the WAFFLE paper, as PNG: the weights of the agents, and the accuracy, round by round."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from confrere.reproduce.figures import outside_legend, save
from confrere.reproduce.waffle.cells import Cell
from confrere.reproduce.waffle.table import Cells

TITLES = {
    "local": "Local", "fedavg": "FedAvg", "scaffold": "SCAFFOLD", "weight_erosion": "Weight Erosion",
    "waffle": "WAFFLE", "apfl": "APFL",
}  # fmt: skip
COLOURS = {
    "local": "#009E73", "fedavg": "#D55E00", "scaffold": "#E69F00", "weight_erosion": "#0072B2", "waffle": "#000000",
    "apfl": "#CC79A7",
}  # fmt: skip
WEIGHTED = ("weight_erosion", "waffle")


def draw(cells: Cells, folder: Path, name: str) -> list[Path]:
    """Both figures of every distribution."""
    paths = []
    for distribution, by_method in cells.items():
        label = distribution.replace("*", "-star")
        paths.append(save(accuracy_figure(distribution, by_method), folder / f"waffle-{name}-{label}-accuracy.png"))
        if any(method in by_method for method in WEIGHTED):
            paths.append(save(weight_figure(distribution, by_method), folder / f"waffle-{name}-{label}-weights.png"))
    return paths


def title_of(method: str) -> str:
    """How a method is called."""
    return TITLES.get(method, method.replace("_", " "))


def accuracy_figure(distribution: str, by_method: Mapping[str, list[Cell]]) -> Figure:
    """Accuracy on Alice's test rows, mean over seeds: as it is, and the best so far, as the paper draws it.

    The best so far is seen from a tenth of the rounds on, where methods differ by little. Methods that the paper does
    not have are dashed.
    """
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    spare = iter(plt.cm.tab20b.colors)  # type: ignore[attr-defined]
    lowest = 1.0
    for method, cells in by_method.items():
        curves = np.stack([cell.accuracy[1:] for cell in cells])
        rounds = np.arange(1, curves.shape[1] + 1)
        best = np.maximum.accumulate(curves, axis=1).mean(axis=0)
        lowest = min(lowest, best[len(best) // 10])
        colour, line = (COLOURS[method], "-") if method in COLOURS else (next(spare), "--")
        axes[0].plot(rounds, curves.mean(axis=0), line, color=colour, label=title_of(method))
        axes[1].plot(rounds, best, line, color=colour)
    axes[1].set_ylim(lowest - 0.03 * (1 - lowest), 1)
    axes[0].set_title("after each round", fontsize=10)
    axes[1].set_title("best so far, as published", fontsize=10)
    axes[0].set_ylabel("accuracy on Alice's test images")
    for axis in axes:
        axis.set_xlabel("round")
        axis.grid(alpha=0.3)
    outside_legend(figure, [axes[0]], columns=6)
    seeds = len(next(iter(by_method.values())))
    figure.suptitle(f"Distribution {distribution}: accuracy, mean over {seeds} seed{'s' if seeds > 1 else ''}")
    return figure


def weight_figure(distribution: str, by_method: Mapping[str, list[Cell]]) -> Figure:
    """The share of every agent in the mean, round by round; Alice in black. The first seed."""
    shown = [method for method in WEIGHTED if method in by_method]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(5 * len(shown), 4.2), sharey=True, squeeze=False, layout="constrained"
    )
    for axis, method in zip(axes[0], shown, strict=True):
        weight_panel(axis, by_method[method][0])
        axis.set_title(title_of(method), fontsize=10)
    axes[0, 0].set_ylabel("share of the agent's update in the mean")
    outside_legend(figure, [axes[0, 0]], columns=5)
    figure.suptitle(f"Distribution {distribution}: whom Alice listens to")
    return figure


def weight_panel(axis: Axes, cell: Cell) -> None:
    """One line per agent."""
    if cell.weights is None:
        return
    rounds = np.arange(1, len(cell.weights) + 1)
    others = plt.cm.viridis(np.linspace(0, 0.9, cell.weights.shape[1] - 1))  # type: ignore[attr-defined]
    for i in range(1, cell.weights.shape[1]):
        axis.plot(rounds, cell.weights[:, i], color=others[i - 1], linewidth=1.2, label=f"agent {i}")
    axis.plot(rounds, cell.weights[:, 0], color="#000000", linewidth=2, label="Alice")
    axis.set_xlabel("round")
    axis.set_ylim(0, 1.02)
    axis.grid(alpha=0.3)
