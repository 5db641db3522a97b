"""What a run found, as plain values: means by user, and paired differences with training alone and with FedAvg."""

from typing import Any

from confrere.runs.run import Finished
from confrere.study import StudyResult
from confrere.study.plain import differences, means

RIVALS = ("ridge_local", "local", "fedavg")


def summary(finished: Finished) -> dict[str, Any]:
    """For JSON and for tables."""
    result = finished.result
    metrics = headline(result)
    rivals = [name for name in RIVALS if name in result.algorithms]
    if "ridge_local" in rivals and "local" in rivals:
        rivals.remove("local")
    return {
        "folder": str(finished.folder), "origin": finished.silos.origin, "kind": finished.silos.kind,
        "seeds": len(result.config["seeds"]), "metrics": list(metrics), "algorithms": list(result.algorithms),
        "users": means(result, metrics), "notes": list(finished.silos.notes),
        "overridden": finished.config.overridden,
        "stopped": {k: v["stopped"] for k, v in result.config["algorithms"].items() if "stopped" in v},
        "differences": {
            a: {b: differences(result, a, b, metrics) for b in rivals if b != a}
            for a in result.algorithms if any(b != a for b in rivals)
        },
    }  # fmt: skip


def headline(result: StudyResult) -> tuple[str, ...]:
    """The metrics that are shown."""
    return ("log_loss", "accuracy") if result.config["task"] == "classification" else ("rmse",)
