"""Tables for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from confrere.cli.common import console

TITLES = {
    "weight_erosion": "Weight\nErosion",
    "local": "Local",
    "fedavg": "FedAvg",
    "fedavg_as_published": "FedAvg as\npublished",
}


GLOBAL = {**TITLES, "fedavg": "Global", "fedavg_as_published": "Global as\npublished"}  # as the Ebola report calls them


def show_single(report: dict[str, Any], names: Sequence[str], titles: Mapping[str, str] = TITLES) -> None:
    """Final accuracies of one seed, by rows and as the mean over batches that was published."""
    data = f"{report['data']}: " if "data" in report else ""
    how = f"{report['split']}, seed {report['seed']}, round {report['rounds']}"
    table = Table(
        title=f"{data}Accuracy on the user's test rows, {how}",
        caption="in brackets: the mean over batches, as published; others' final weights in the order of the silos",
    )
    table.add_column("User")
    for title in titles.values():
        table.add_column(title, justify="right")
    table.add_column("Final weights\nof the others", justify="right", no_wrap=True)
    for user, row in report["users"].items():
        cells = [f"{row['accuracy'][k]:.3f}\n({row['accuracy_batch_mean'][k]:.3f})" for k in titles]
        weights = " ".join(f"{a:.3f}" for a in row["alpha"][-1])
        table.add_row(f"{user}: {names[int(user)]}", *cells, weights)
    console().print(table)


def show_cells(report: dict[str, Any]) -> None:
    """Means over seeds, and what Weight Erosion gains."""
    table = Table(
        title=f"Accuracy on the user's test rows, mean ± standard deviation over {report['seeds']} seeds",
        caption="gain: paired difference in points of accuracy ± standard error, and in how many seeds it won / tied",
    )
    table.add_column("Split / user", no_wrap=True)
    for title in TITLES.values():
        table.add_column(title, justify="right")
    for title in ("Gain on\nLocal", "Gain on\nFedAvg"):
        table.add_column(title, justify="right", no_wrap=True)
    for cell, row in report["cells"].items():
        means = [f"{row[k]['mean']:.3f}\n±{row[k]['std']:.3f}" for k in TITLES]
        gains = [gain(report["gains"][cell][other]) for other in ("local", "fedavg")]
        table.add_row(cell, *means, *gains)
    console().print(table)


def gain(difference: dict[str, float]) -> str:
    """A paired difference in words."""
    points, error = 100 * difference["mean"], 100 * difference["se"]
    return f"{points:+.1f} ±{error:.1f}\n({difference['wins']}/{difference['ties']})"


def show_attractor(report: dict[str, Any]) -> None:
    """Where Weight Erosion ends, to the end and with the cone stop."""
    runs = report["regression"]
    table = Table(
        title="Weight Erosion with full gradients: to the end, and stopped by the cone of gradients",
        caption="distance from the local optimum: 0 is the local model, 1 is as far as the global one",
    )
    for title in ("", f"regression, mean of {len(runs)}", "Titanic"):
        table.add_column(title, justify="right" if title else "left")
    titanic = report["titanic"]
    mean = lambda get: sum(map(get, runs)) / len(runs)  # noqa: E731
    rows: list[tuple[str, str, str]] = [
        (
            "rounds until the cone stop",
            f"{mean(lambda r: r['rounds']):.1f}",
            str(titanic["rounds"]) if titanic["stopped"] else "never",
        )
    ]
    for key, words in (("to_the_end", "to the end"), ("cone", "with the cone stop")):
        middle = mean(lambda r, key=key: r["from_local"][key])
        rows.append((f"distance from local, {words}", f"{middle:.3f}", f"{titanic['from_local'][key]:.3f}"))
    for key, words in (
        ("local", "Local"),
        ("global", "global"),
        ("to_the_end", "to the end"),
        ("cone", "with the cone stop"),
    ):
        middle = mean(lambda r, key=key: r["rmse"][key])
        rows.append((f"{words}: test RMSE | accuracy", f"{middle:.3f}", f"{titanic['accuracy'][key]:.3f}"))
    for row in rows:
        table.add_row(*row)
    console().print(table)
