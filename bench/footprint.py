"""Accuracy against bytes, measured: local steps, and compressed messages, on heart disease and on MNIST.

python bench/footprint.py

It writes footprint.json and footprint.md beside itself, and the picture docs/images/footprint.png. Four hospitals with
half of their rows for testing, and ten agents with 200 images each (distribution A); softmax regression. The learning
rate is one for all contenders of a data set: what is compared is what they send, not how well each is tuned.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import confrere as cf
from confrere.budget import in_words
from confrere.study.statistics import interval
from confrere.transforms import quantised, top_k

HERE = Path(__file__).resolve().parent
PICTURE = HERE.parent / "docs" / "images" / "footprint.png"
SEEDS, ROUNDS = 5, 60
DATA = {
    "heart disease": (lambda seed: cf.data.heart_disease().split(test=0.5, seed=seed), 0.1, 1.0),
    "MNIST": (lambda seed: cf.data.mnist("A", agents=10, rows=200, seed=seed), 0.01, 0.0),
}  # silos, learning rate, test rows per training row where splits share rows
PLAIN = "FedAvg, 1 epoch"


def contenders(lr: float) -> dict[str, cf.Recipe]:
    """What is compared."""
    one = cf.fedavg(lr=lr, batch=32, epochs=1)
    return {
        "FedSGD, one step": cf.fedsgd(lr=lr),
        PLAIN: one,
        "FedAvg, 5 epochs": cf.fedavg(lr=lr, batch=32, epochs=5),
        "top-k 10 %": one.compressed(top_k(0.1)),
        "top-k 10 %, nothing kept": one.compressed(top_k(0.1, feedback=False)),
        "8 bits": one.compressed(quantised(8)),
        "4 bits": one.compressed(quantised(4)),
        "2 bits, to the nearest": one.compressed(quantised(2, "nearest")),
        "5 epochs, 4 bits": cf.fedavg(lr=lr, batch=32, epochs=5).compressed(quantised(4)),
    }


def measured(make, lr: float, shared: float) -> dict[str, Any]:
    """Accuracy round by round, and bytes, of every contender."""
    found: dict[str, Any] = {}
    for name, recipe in contenders(lr).items():
        runs = [
            cf.simulate(recipe, cf.models.logistic(), make(seed), ROUNDS, seed, metrics=["accuracy"], record=())
            for seed in range(SEEDS)
        ]
        curves = np.array([run.metrics["accuracy"] for run in runs])
        end = interval(curves[:, -1], shared or None)
        up, down = (int(getattr(runs[0], way)[0].sum()) for way in ("bytes_up", "bytes_down"))
        found[name] = {"up": up, "down": down, "accuracy": end._asdict(), "curve": curves.mean(axis=0).tolist()}
        print(name, up, down, end, flush=True)
    return found


def until(of: dict[str, Any], level: float) -> int | None:
    """The bytes sent and received until the mean accuracy first reaches a level."""
    reached = np.flatnonzero(np.array(of["curve"]) >= level)
    return int(reached[0]) * (of["up"] + of["down"]) if len(reached) else None


def page(report: dict[str, Any]) -> str:
    """The tables."""
    said = [
        __doc__.split("\n\n")[0].replace("Accuracy", "# Accuracy", 1).rstrip("."),
        "Made by `python bench/footprint.py`.",
    ]
    said.append(
        f"Softmax regression, {report['rounds']} rounds, {report['seeds']} seeds; accuracy on the silos' test rows, "
        "weighted by rows, with 95 % intervals over seeds. Bytes are exact, of all silos together. The last column is "
        "where the mean curve first comes within a point of what plain FedAvg reaches in the end; it has no interval."
    )
    for name, found in report["data"].items():
        level = found[PLAIN]["curve"][-1] - 0.01
        rows = ["| | accuracy | sent a round | received a round | until within a point |", "|---|---|---|---|---|"]
        for contender, of in found.items():
            a, b = of["accuracy"], until(of, level)
            rows.append(
                f"| {contender} | {a['mean']:.3f} ({a['low']:.3f} to {a['high']:.3f}) | {in_words(of['up'])} | "
                f"{in_words(of['down'])} | {'never' if b is None else in_words(b)} |"
            )
        said += [f"## {name[0].upper()}{name[1:]}", "\n".join(rows)]
    return "\n\n".join(said) + "\n"


def picture(report: dict[str, Any]) -> None:
    """Accuracy against bytes, one panel per data set."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, (name, found) in zip(figure.subplots(1, 2), report["data"].items(), strict=True):
        for k, (contender, of) in enumerate(found.items()):
            kilobytes = (of["up"] + of["down"]) * np.arange(len(of["curve"])) / 1e3
            axes.plot(kilobytes[1:], of["curve"][1:], label=contender, color=f"C{k}")
        axes.set_xscale("log")
        axes.set_title(name)
        axes.set_xlabel("kilobytes sent and received by all silos")
        axes.set_ylabel("accuracy")
        axes.grid(alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(PICTURE, dpi=100)


def main() -> None:
    """Measure, and write everything."""
    report = {"seeds": SEEDS, "rounds": ROUNDS, "data": {name: measured(*of) for name, of in DATA.items()}}
    (HERE / "footprint.json").write_text(json.dumps(report) + "\n", encoding="utf-8")
    (HERE / "footprint.md").write_text(page(report), encoding="utf-8")
    picture(report)


if __name__ == "__main__":
    main()
