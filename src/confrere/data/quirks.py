"""Quirks of silos in words: labels of one class or nearly, columns without values or mostly without.

Made from an overview alone, so that nothing is said here that it does not tell.
"""

from collections.abc import Mapping
from typing import Any

SKEWED, MOSTLY = 0.1, 0.5  # share of a class below which, and of missing values above which, it is worth a word


def quirks(seen: Mapping[str, Any]) -> list[str]:
    """What is odd about every silo of an `overview`.

    >>> gaps = {"chol": {"kind": "numeric", "known": 0, "missing": 90}}
    >>> silo = {"rows": 90, "label": {"no": 90, "yes": 0}, "columns": gaps}
    >>> for said in quirks({"silos": {"north": silo}, "least": 5}):
    ...     print(said)
    north: all 90 rows are of one class (no): trained alone, a model learns nothing there
    north: no value at all of chol
    """
    return [
        f"{name}: {said}"
        for name, silo in seen["silos"].items()
        for said in (*of_labels(silo, seen["least"]), *of_gaps(silo, seen["least"]))
    ]


def of_labels(silo: Mapping[str, Any], least: int) -> list[str]:
    """Whether there is one class only, or nearly."""
    label, rows = silo["label"], silo["rows"]
    if "mean" in label:  # an amount has no classes
        return []
    if None in label.values():
        return [f"one or more of its classes have fewer than {least} rows: what is measured on them is mostly chance"]
    there = {name: count for name, count in label.items() if count}
    if len(there) == 1:
        every = "the only row is" if rows == 1 else f"all {rows} rows are"
        return [f"{every} of one class ({next(iter(there))}): trained alone, a model learns nothing there"]
    rarest = min(there, key=lambda name: there[name])
    if there[rarest] >= SKEWED * rows:
        return []
    why = "always saying the other is right nearly as often" if len(there) == 2 else "they hardly count in accuracy"
    return [
        f"skewed labels, {rarest} in {there[rarest]} of {rows} rows ({there[rarest] / rows:.0%}): {why}, so look at "
        "log-loss and calibration rather than accuracy"
    ]


def of_gaps(silo: Mapping[str, Any], least: int) -> list[str]:
    """Columns without any value, and those of which most are missing."""
    rows = silo["rows"]
    empty = [name for name, column in silo["columns"].items() if column["known"] == 0]
    mostly = [
        f"{name} ({share_missing(column, rows, least)})"
        for name, column in silo["columns"].items()
        if rows is not None and column["known"] != 0 and least_missing(column, rows, least) > MOSTLY * rows
    ]
    said = [f"no value at all of {', '.join(empty)}"] if empty else []
    return said + ([f"mostly missing: {', '.join(mostly)}"] if mostly else [])


def least_missing(column: Mapping[str, Any], rows: int, least: int) -> int:
    """How many values are missing; where that is hidden, how many at least."""
    if column["missing"] is not None:
        return column["missing"]
    return rows - (least - 1) if column.get("few") == "known" else 0


def share_missing(column: Mapping[str, Any], rows: int, least: int) -> str:
    """How much of a column is missing."""
    return f"all but fewer than {least}" if column["missing"] is None else f"{column['missing'] / rows:.0%}"
