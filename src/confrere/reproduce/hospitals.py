"""Real silos: `auto` beside fixed and tuned methods, on the Titanic's groups and in four hospitals, through `Study`.

FIXED methods are run as the authors of Weight Erosion ran theirs: 30 rounds of full gradients with their learning rate
and their small ridge; and two optima. TUNED methods choose their numbers by cross-validation on the user's training
rows. Half of the user's rows are set aside for testing; the others train on all of theirs, as in that paper. The four
hospitals are read in both scalings: with statistics that silos share, and each silo by itself.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from confrere import algorithms, data
from confrere.data.silos import Silos
from confrere.models import logistic
from confrere.recipe import Recipe
from confrere.study import Study, StudyResult
from confrere.study.plain import differences, means

METRICS = ("log_loss", "accuracy")
AUTO = "auto"
TUNED = ", tuned"
RIVALS = ("ridge_local", "fedavg", "weight_erosion .01", "weight_erosion, tuned")  # with whom differences are shown
RATE, L2 = 1.5, 2e-3  # the authors' 3 and 0.001, on half the cross-entropy


class Setting(NamedTuple):
    """Some real silos, dealt anew for every seed."""

    name: str
    make: Callable[[int], Silos]


def four_hospitals(scale: str, seed: int) -> Silos:
    """Heart disease with half of every hospital's rows set aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", data.DataWarning)  # what an own scale costs is what is measured here
        return data.heart_disease(scale=scale).split(test=0.5, seed=seed)  # type: ignore[arg-type]


SETTINGS = (
    Setting("titanic/age-strict", lambda seed: data.titanic("age-strict", seed=seed)),
    Setting("titanic/age-some", lambda seed: data.titanic("age-some", seed=seed)),
    Setting("heart/shared scale", partial(four_hospitals, "shared")),
    Setting("heart/own scale", partial(four_hospitals, "silo")),
)
REAL_CELLS = SETTINGS[:3]  # the 12 users over whom `auto` is compared with the best fixed method


def fixed_methods() -> dict[str, Recipe | Callable[..., Recipe]]:
    """The ten that have nothing to choose."""
    how: dict[str, Any] = {"lr": RATE, "l2": L2}
    global_then = partial(algorithms.fine_tuned, batch=None, steps=1, weights="uniform", **how)
    return {
        "ridge_local": algorithms.ridge_local(),
        "pooled ridge": partial(algorithms.evidence, candidates=("pool",)),
        "local": algorithms.local(**how),
        "fedavg": algorithms.fedsgd(weights="uniform", **how),
        "fine_tuned 5": global_then(tune_steps=5),
        "fine_tuned 20": global_then(tune_steps=20),
        **{f"weight_erosion {p_d}": algorithms.weight_erosion(user=0, p_d=float(p_d), **how)
           for p_d in (".003", ".01", ".03", ".1")},
    }  # fmt: skip


def tuned_methods() -> dict[str, Callable[..., Recipe]]:
    """Algorithms whose learning rate, and the penalty of Weight Erosion, are chosen for every user."""
    names = ("local", "fedavg", "fine_tuned", "weight_erosion")
    return {name + TUNED: getattr(algorithms, name) for name in names}


def methods() -> dict[str, Any]:
    """`auto` (for a linear model, `evidence`) and its rivals."""
    return {AUTO: algorithms.evidence, **fixed_methods(), **tuned_methods()}


def compare(setting: Setting, seeds: int, progress: Callable[[int, int], None] | None = None) -> StudyResult:
    """All methods for all users of one setting."""
    grid = {"weight_erosion" + TUNED: {"p_d": [0.003, 0.01, 0.03, 0.1]}}
    study = Study(setting.make, logistic(), methods(), seeds=seeds, grid=grid, metrics=METRICS)
    return study.run(progress=progress)


def hospitals(seeds: int = 20, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Every setting, and the mean over the 12 users, as one JSON object."""
    found = {}
    for i, setting in enumerate(SETTINGS):
        whole = None if progress is None else stage(progress, i, len(SETTINGS))
        found[setting.name] = compare(setting, seeds, whole)
    return {
        "seeds": seeds,
        "settings": {name: setting_report(result) for name, result in found.items()},
        "real_cells": over_users([found[setting.name] for setting in REAL_CELLS]),
    }


def stage(progress: Callable[[int, int], None], i: int, count: int) -> Callable[[int, int], None]:
    """Progress within the i-th of several equal parts."""
    return lambda done, total: progress(i * total + done, count * total)


def setting_report(result: StudyResult) -> dict[str, Any]:
    """Means by user and over users, and differences of `auto` with its rivals, with intervals."""
    return {
        "users": means(result, METRICS),
        "differences": {rival: differences(result, AUTO, rival, METRICS) for rival in RIVALS},
    }


def over_users(results: list[StudyResult]) -> dict[str, Any]:
    """Each method's mean over all users of all settings, and `auto` against the best of the others."""
    mean = lambda name, metric: np.array(  # noqa: E731
        [r.values(name, user, metric, "last").mean() for r in results for user in r.users]
    )
    losses = {name: mean(name, "log_loss") for name in methods()}
    groups = {"fixed": list(fixed_methods()), "tuned": list(tuned_methods())}
    return {
        "users": len(losses[AUTO]),
        "log_loss": {name: float(values.mean()) for name, values in losses.items()},
        "accuracy": {name: float(mean(name, "accuracy").mean()) for name in losses},
        "auto_against": {group: against(losses, names) for group, names in groups.items()},
    }


def against(losses: dict[str, np.ndarray], rivals: list[str]) -> dict[str, Any]:
    """`auto` minus the rival with the lowest mean, and minus the best rival of every user, chosen afterwards, which
    nobody could have known."""
    best = min(rivals, key=lambda name: losses[name].mean())
    by_user = losses[AUTO] - np.min([losses[name] for name in rivals], axis=0)
    return {
        "best": best, "difference": float((losses[AUTO] - losses[best]).mean()),
        "by_user": {"mean": float(by_user.mean()), "worst": float(by_user.max())},
    }  # fmt: skip
