"""How the user's training rows looked: what is kept beside a model, so that later rows can be compared with them.

Only counts are kept, feature by feature: of a number, how many training rows fell between its deciles; of a feature
with few values, how many rows had each. And how often the model was right, for which its test rows are needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FEW = 5  # so many different values are counted one by one
PARTS = 10


def feature_reference(values: np.ndarray) -> dict[str, Any]:
    """The counts of one feature: by value, or between edges (the outer ones are open).

    >>> import numpy as np
    >>> feature_reference(np.array([0.0, 1, 1, 0, 1]))
    {'values': [0.0, 1.0], 'counts': [2, 3]}
    """
    known = np.asarray(values, float)
    distinct, counts = np.unique(known, return_counts=True)
    if len(distinct) <= FEW:
        return {"values": distinct.tolist(), "counts": counts.tolist()}
    edges = np.unique(np.quantile(known, np.linspace(0, 1, PARTS + 1)[1:-1]))
    return {"edges": edges.tolist(), "counts": counts_between(known, edges).tolist()}


def counts_between(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How many values fall below the first edge, between each and the next, and above the last."""
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1)


def counts_like(reference: Mapping[str, Any], values: np.ndarray) -> np.ndarray:
    """Later values counted in the same way; a value that no training row had is counted in a place of its own."""
    values = np.asarray(values, float)
    if "edges" in reference:
        return counts_between(values, np.asarray(reference["edges"]))
    known = [int((values == v).sum()) for v in reference["values"]]
    return np.array([*known, len(values) - sum(known)])


def reference_counts(reference: Mapping[str, Any]) -> np.ndarray:
    """The training rows' counts, in the places of `counts_like`."""
    counts = np.asarray(reference["counts"])
    return counts if "edges" in reference else np.append(counts, 0)


def reference_of(names: Sequence[str], X: np.ndarray, y: np.ndarray, classes: int | None) -> dict[str, Any]:
    """Of all features, and of the label: counts of classes, or mean and standard deviation."""
    label: dict[str, Any]
    if classes is None:
        label = {"mean": float(y.mean()), "std": float(y.std()), "rows": len(y)}
    else:
        label = {"counts": np.bincount(y.astype(int), minlength=classes).tolist()}
    return {"features": {name: feature_reference(X[:, j]) for j, name in enumerate(names)}, "label": label}
