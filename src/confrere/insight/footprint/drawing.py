"""The picture: a metric against the bytes that it took."""

import os
from typing import TYPE_CHECKING

import numpy as np

from confrere.study.result import StudyResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def against_bytes(result: StudyResult, metric: str, path: str | os.PathLike[str] | None = None) -> "Figure":
    """The metric after every round against the kilobytes of all silos since the start, mean over users and splits.

    An algorithm that sends nothing is a level line at what it reached. Needs the extra `plots`.
    """
    curves = {}
    for name in result.algorithms:
        cells = result.of(name, "all")
        rows = np.array([c.curves[metric][c.row("last")] for c in cells])
        each = max(c.bytes_total for c in cells)
        curves[name] = (each * np.arange(rows.shape[1]) / 1e3, rows.mean(axis=0))
    return drawn(curves, metric, path)


def drawn(
    curves: dict[str, tuple[np.ndarray, np.ndarray]], metric: str, path: str | os.PathLike[str] | None, title: str = ""
) -> "Figure":
    """Curves by name: kilobytes, and the metric at them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for k, (name, (kilobytes, values)) in enumerate(curves.items()):
        if kilobytes[-1] == 0:
            axes.axhline(values[-1], color=f"C{k}", linestyle=":", label=f"{name} (sends nothing)")
        else:
            there = np.isfinite(values)
            marker = "o" if there.sum() == 1 else None
            axes.plot(kilobytes[there], values[there], color=f"C{k}", marker=marker, label=name)
    axes.set_xlabel("kilobytes sent and received by all silos")
    axes.set_ylabel(metric.replace("_", " "))
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure
