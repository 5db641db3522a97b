"""Figures 1 and 2 of the Weight Erosion paper, as PNG.

Figure 1: accuracy on the user's test rows and the weights of the silos, round by round, one column per user.
Figure 2: the parameters of the three models; black for the first output (died), grey for the second (survived).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from confrere.data.silos import Silos
from confrere.reproduce.drawing import SCHEMES, SILO_COLOURS, Scheme, constant_predictors, model_values
from confrere.reproduce.runs import Result


def draw_png(silos: Silos, results: dict[str, Result], folder: Path, split: str, seed: int) -> list[Path]:
    """Write both figures into a folder."""
    paths = []
    for name, figure in (("figure1", figure_1(silos, results)), ("figure2", figure_2(silos, results))):
        paths.append(save(figure, folder / f"{name}-{split}-{seed}.png"))
    return paths


def save(figure: Figure, path: Path) -> Path:
    """Write a figure and let it go."""
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def figure_1(silos: Silos, results: dict[str, Result]) -> Figure:
    """Accuracy and weights per round."""
    n = len(silos)
    figure, axes = plt.subplots(2, n, figsize=(3.4 * n, 6), sharex=True, sharey="row", layout="constrained")
    for user in range(n):
        accuracy_panel(axes[0, user], silos, results, user)
        weight_lines(axes[1, user], silos, results["weight_erosion"], user)
        axes[1, user].set_xlabel("round")
        axes[1, user].set_ylim(0, 1.02)
    axes[0, 0].set_ylabel("accuracy on the user's test rows")
    axes[1, 0].set_ylabel("weight of the silo")
    outside_legend(figure, [axes[0, 0], axes[1, 0]])
    figure.suptitle("Weight Erosion on the Titanic: each silo as the user once")
    return figure


def accuracy_panel(
    axis: Axes, silos: Silos, results: dict[str, Result], user: int, schemes: Mapping[str, Scheme] = SCHEMES
) -> None:
    """The three schemes' accuracies, and the two constant predictors'."""
    for scheme, (title, colour) in schemes.items():
        axis.plot(results[scheme].accuracy[user], color=colour, label=title)
    for level in constant_predictors(silos, user):
        axis.axhline(level, color="#B00000", linestyle="--", linewidth=1, label="always one label")
    axis.set_title(f"user {silos.names[user]}", fontsize=10)
    axis.set_ylim(0, 1)


def weight_lines(
    axis: Axes, silos: Silos, eroded: Result, user: int, styles: Sequence[str] = ("-", "--", "-.", ":")
) -> None:
    """The weights of the others; the user's own silo stands in the legend only, which so lists all in order."""
    rounds = np.arange(1, eroded.alpha.shape[1] + 1)
    for i, name in enumerate(silos.names):
        colour, line = SILO_COLOURS[i % len(SILO_COLOURS)], styles[i % len(styles)]
        shown = slice(0 if i == user else None)
        axis.plot(rounds[shown], eroded.alpha[user, shown, i], line, color=colour, label=f"silo {name}")


def outside_legend(figure: Figure, axes: Sequence[Axes], columns: int | None = None) -> None:
    """One legend below all panels, each name once."""
    named: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    where: Any = {"loc": "outside lower center", "ncols": columns or len(named), "fontsize": 9}
    figure.legend(named.values(), named.keys(), **where)


def figure_2(silos: Silos, results: dict[str, Result], users: tuple[int, ...] = (0, 2)) -> Figure:
    """The parameters of the three models, for two users."""
    figure, axes = plt.subplots(
        len(users), 3, figsize=(11, 3.6 * len(users)), sharex=True, sharey=True, layout="constrained"
    )
    names = ["bias", *silos.feature_names]
    labels = silos.label_names or ("0", "1")
    place = np.arange(len(names))
    for row, user in enumerate(users):
        for column, scheme in enumerate(("local", "weight_erosion", "fedavg")):
            axis = axes[row, column]
            values = model_values(results[scheme], user)
            axis.barh(place - 0.2, values[:, 0], 0.4, color="#000000", label=labels[0])
            axis.barh(place + 0.2, values[:, 1], 0.4, color="#999999", label=labels[1])
            axis.axvline(0, color="#666666", linewidth=0.8)
            axis.set_yticks(place, names)
            axis.set_title(f"{SCHEMES[scheme].title}, user {silos.names[user]}", fontsize=10)
    axes[0, 0].invert_yaxis()
    outside_legend(figure, axes[0, :1])
    for axis in axes[-1]:
        axis.set_xlabel("parameter")
    figure.suptitle("Parameters after the last round: a long grey bar to the right speaks for survival")
    return figure
