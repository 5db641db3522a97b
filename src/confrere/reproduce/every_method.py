"""Every method on real hospitals and passengers: which one should a hospital choose?

Each algorithm of the library with a linear model, its learning rate tuned for every user by cross-validation on the
user's training rows; half of the user's rows are set aside for testing. Differences are with `ridge_local`, the best
that a silo reaches alone, seed by seed, with intervals that know that seeds split the same rows anew. With a store, a
run that is cut off goes on where it was.
"""

import datetime
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from confrere import algorithms
from confrere.models import logistic
from confrere.recipe import Recipe
from confrere.reproduce.hospitals import METRICS as OF_HOSPITALS
from confrere.reproduce.hospitals import REAL_CELLS, Setting, stage
from confrere.study import Study, StudyResult
from confrere.study.study import versions

METRICS = (*OF_HOSPITALS, "auroc")
Folder = str | os.PathLike[str] | None
ALONE = "ridge_local"
ALL = "all"
NAMES = (
    "local", "fedavg", "fedprox", "fedopt", "scaffold", "fine_tuned", "ditto", "pfedme", "per_fedavg", "apfl",
    "model_interpolation", "data_interpolation", "featurised", "multi_task", "ifca", "clustered", "fedamp", "fedfomo",
    "weight_erosion", "waffle",
)  # fmt: skip


def methods() -> dict[str, Callable[..., Recipe]]:
    """One row per method; a linear model has one layer, of which FedPer and FedRep keep the intercepts."""
    named = {name: getattr(algorithms, name) for name in NAMES}
    kept = {name: partial(getattr(algorithms, name), keep=("b",)) for name in ("fedper", "fedrep")}
    return {"auto": algorithms.evidence, ALONE: algorithms.ridge_local, **named, **kept}


def compare(
    setting: Setting, seeds: int, progress: Callable[[int, int], None] | None = None, store: Folder = None
) -> StudyResult:
    """All methods for all users of one setting."""
    return Study(setting.make, logistic(), methods(), seeds=seeds, metrics=METRICS).run(store, progress)


def every_method(
    seeds: int = 10, progress: Callable[[int, int], None] | None = None, store: Folder = None
) -> dict[str, Any]:
    """Every setting as one JSON object. What the store has is not run again."""
    found = {}
    for i, setting in enumerate(REAL_CELLS):
        whole = None if progress is None else stage(progress, i, len(REAL_CELLS))
        found[setting.name] = of_setting(compare(setting, seeds, whole, store))
    written = {"written": datetime.date.today().isoformat(), "versions": versions()}
    return {"seeds": seeds, "alone": ALONE, "settings": found, **written}


def of_setting(result: StudyResult) -> dict[str, Any]:
    """Every method's means over users, and its difference with training alone."""
    means = {metric: dict(result.table(metric, by="all").select("algorithm", "mean").iter_rows()) for metric in METRICS}
    return {
        name: {metric: {"mean": means[metric][name], **gap(result, name, metric)} for metric in METRICS}
        for name in result.algorithms
    }


def gap(result: StudyResult, name: str, metric: str) -> dict[str, Any]:
    """The mean over users of the difference with training alone, with its interval."""
    if name == ALONE:
        return {"difference": 0.0, "low": None, "high": None}
    row = next(row for row in result.paired(name, ALONE, metric).to_dicts() if row["user"] == ALL)
    return {key: row[key] for key in ("difference", "low", "high")}
