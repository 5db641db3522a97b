"""Plots of a study's result, for papers: means, curves, paired differences."""

import importlib.util
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from confrere.study.cell import When
from confrere.study.tuning import larger_is_better

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from confrere.study.result import StudyResult

# Colours that colour-blind people can tell apart (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
COLUMNS = 4


def draw(
    result: "StudyResult",
    kind: str,
    path: str | os.PathLike[str] | None,
    metric: str,
    a: str | None,
    b: str | None,
    at: When,
) -> "Figure":
    """The figure of a kind."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib: pip install 'confrere[plots]'")
    if kind == "table":
        figure = means(result, metric, at)
    elif kind == "curves":
        figure = curves(result, metric, at)
    elif kind == "paired":
        figure = differences(result, metric, a, b, at)
    else:
        raise ValueError(f"kind must be 'table', 'curves' or 'paired', not {kind!r}")
    if path is not None:
        figure.savefig(path, dpi=160)
    return figure


def blank(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple["Figure", Any]:
    """A figure and its axes [rows, columns]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3, linewidth=0.5)
        axis.set_axisbelow(True)
    return figure, axes


def title_of(metric: str) -> str:
    """A metric in words, and which way is better."""
    return f"{metric.replace('_', ' ')} ({'higher' if larger_is_better(metric) else 'lower'} is better)"


def note(result: "StudyResult") -> str:
    """What the rows are, and over how many seeds."""
    count = len(result.config["seeds"])
    kind = "" if result.config["kind"] == "real" else f", {result.config['kind']} data"
    return f"{count} seed{'s' if count != 1 else ''}{kind}"


def means(result: "StudyResult", metric: str, at: When) -> "Figure":
    """Mean and standard deviation over seeds: a row per user, a mark per algorithm."""
    users, algorithms = result.users, result.algorithms
    figure, axes = blank(6.5, 1.1 + 0.22 * len(users) * (len(algorithms) + 1))
    axis = axes[0, 0]
    step = 0.8 / len(algorithms)
    for k, name in enumerate(algorithms):
        found = [result.values(name, user, metric, at) for user in users]
        place = np.arange(len(users)) - 0.4 + step * (k + 0.5)
        deviation = [v.std(ddof=1) if len(v) > 1 else 0.0 for v in found]
        axis.errorbar(
            [v.mean() for v in found], place, xerr=deviation, fmt="o", markersize=4, capsize=2, linewidth=1,
            color=COLOURS[k % len(COLOURS)], label=name.replace("_", " "),
        )  # fmt: skip
    axis.set_yticks(range(len(users)), users)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlabel(f"{title_of(metric)}; mean and standard deviation, {note(result)}")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure


def curves(result: "StudyResult", metric: str, at: When) -> "Figure":
    """The mean over seeds round by round, a panel per user."""
    users = result.users
    columns = min(COLUMNS, len(users))
    rows = -(-len(users) // columns)
    figure, axes = blank(1.2 + 2.6 * columns, 1.0 + 2.1 * rows, rows, columns)
    for axis in axes.flat[len(users) :]:
        axis.set_visible(False)
    for user, axis in zip(users, axes.flat, strict=False):
        for k, name in enumerate(result.algorithms):
            every = np.array([c.curves[metric][c.row(at)] for c in result.of(name, user)])
            middle, colour = every.mean(axis=0), COLOURS[k % len(COLOURS)]
            lone = {"marker": "o", "markersize": 4} if len(middle) <= 2 else {}
            axis.plot(middle, color=colour, linewidth=1.3, label=name.replace("_", " "), **lone)
            if len(every) > 1:
                deviation = every.std(axis=0, ddof=1)
                axis.fill_between(
                    range(len(middle)), middle - deviation, middle + deviation, color=colour, alpha=0.12, lw=0
                )
        axis.set_title(user, fontsize=9)
    figure.supxlabel(f"round; band: standard deviation over {note(result)}", fontsize=9)
    figure.supylabel(title_of(metric), fontsize=9)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    return figure


def pairs_of(result: "StudyResult", a: str | None, b: str | None) -> list[tuple[str, str]]:
    """Which differences to draw: a - b, or all others minus b, or all others minus the first."""
    base = result.algorithms[0] if b is None else b
    if a is not None:
        return [(a, base)]
    pairs = [(name, base) for name in result.algorithms if name != base]
    if not pairs:
        raise ValueError("there is a single algorithm: nothing to compare it with")
    return pairs


def differences(result: "StudyResult", metric: str, a: str | None, b: str | None, at: When) -> "Figure":
    """Mean differences with their intervals: a row per user and one for all."""
    pairs = pairs_of(result, a, b)
    tables = [result.paired(one, two, metric, at) for one, two in pairs]
    users = tables[0]["user"].to_list()
    figure, axes = blank(6.5, 1.2 + 0.22 * len(users) * (len(pairs) + 1))
    axis = axes[0, 0]
    axis.axvline(0, color="black", linewidth=0.8)
    step = 0.8 / len(pairs)
    for k, ((one, two), table) in enumerate(zip(pairs, tables, strict=True)):
        place = np.arange(len(users)) - 0.4 + step * (k + 0.5)
        centre = table["difference"].to_numpy()
        low, high = (table[name].fill_null(table["difference"]).to_numpy() for name in ("low", "high"))
        axis.errorbar(
            centre, place, xerr=[centre - low, high - centre], fmt="o", markersize=4, capsize=2, linewidth=1,
            color=COLOURS[(k + 1) % len(COLOURS)], label=f"{one} minus {two}".replace("_", " "),
        )  # fmt: skip
    axis.set_yticks(range(len(users)), ["all users" if u == "all" and len(users) > 1 else u for u in users])
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    how = "corrected for re-splitting, " if result.config["intervals"] == "resplit" else ""
    axis.set_xlabel(f"difference of {title_of(metric)}\n95 % confidence, {how}{note(result)}")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    return figure
