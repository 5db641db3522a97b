"""The experiments of the Weight Erosion paper on the Titanic: the authors' own run, and the same over many seeds.

Grimberg, Hartley, Jaggi, Karimireddy (2020), section 5: four silos by age, each the user once; half of the user's rows
are for test, all rows of the others for training; 30 rounds of one batch per silo; a linear layer with two outputs.

The authors' learning rate is 3, in ordinary terms 1.5 (see `confrere.reproduce.runs`). Their FedAvg ran at 0.07
(0.035), because of its defect; the correct one is run at the same rate as the others.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Tree
from confrere.data.fetch import DataNotFound, check_file, data_folder
from confrere.data.silos import Silos
from confrere.data.titanic import BATCH, SHA256, SplitName, passengers, split_passengers, titanic_file
from confrere.models import logistic
from confrere.recipe import Recipe
from confrere.reproduce.runs import AUTHORS_SEED, ROUNDS, Result, experiments, run, run_all, schemes, users_report

LEARNING_RATE = 3.0 / 2
DEFECTIVE_LEARNING_RATE = 0.07 / 2


def recipes(batch: int) -> dict[str, Recipe]:
    """The schemes at the paper's learning rates."""
    return schemes(batch, LEARNING_RATE, LEARNING_RATE, DEFECTIVE_LEARNING_RATE)


def authors_start(split: SplitName) -> tuple[Silos, Tree]:
    """The silos and the initial weights of the authors' run, from files that only CONFRERE_DATA has."""
    folder = data_folder("titanic")
    needed = ("titanic3.csv", "titanic_tfds_order.csv", "titanic_init_seed278.csv")
    missing = [name for name in needed if folder is None or not (folder / name).is_file()]
    if folder is None or missing:
        raise DataNotFound(
            f"the authors' run (seed {AUTHORS_SEED}) needs their row order and initial weights: set CONFRERE_DATA to a "
            f"folder with titanic/{', titanic/'.join(missing)}, or choose another --seed"
        )
    for name in needed:
        check_file(folder / name, SHA256[name])
    order = np.loadtxt(folder / needed[1], delimiter=",", skiprows=1, dtype=int)[:, 1]
    weights = np.loadtxt(folder / needed[2], delimiter=",")
    silos = split_passengers(passengers(folder / needed[0], order), split, AUTHORS_SEED)
    return silos, {"w": jnp.asarray(weights), "b": jnp.zeros(2)}


def seeded_start(split: SplitName, seeds: Sequence[int]) -> Iterator[tuple[Silos, Tree]]:
    """Silos and initial weights for other seeds: the seed drives the split, the halves and the start."""
    table = passengers(titanic_file())
    for seed in seeds:
        yield split_passengers(table, split, seed), logistic().init(jax.random.key(seed), table.X.shape[1], 2)


def single_run(split: SplitName, seed: int) -> tuple[Silos, dict[str, Result]]:
    """One seed, every silo as user, all four algorithms; seed 278 is the authors' own run."""
    silos, params = authors_start(split) if seed == AUTHORS_SEED else next(seeded_start(split, [seed]))
    return silos, run_all(recipes(BATCH[split]), silos, params, seed)


def single_run_report(split: SplitName, seed: int, results: dict[str, Result]) -> dict[str, Any]:
    """Distances, alphas and final accuracies of one seed, as one JSON object."""
    return {"split": split, "seed": seed, "rounds": ROUNDS, "users": users_report(results, BATCH[split])}


def many_seeds(
    splits: Sequence[SplitName], seeds: int, progress: Callable[[int, int], None] | None = None, at_once: int = 100
) -> dict[str, dict[str, np.ndarray]]:
    """Final accuracies {"split/user": {algorithm: [seeds]}}; some seeds at a time, each time in one program."""
    cells: dict[str, dict[str, list[float]]] = {}
    done = 0
    for split in splits:
        for first in range(0, seeds, at_once):
            numbers_of_seeds = range(first, min(first + at_once, seeds))
            batch = experiments(list(seeded_start(split, numbers_of_seeds)), numbers_of_seeds)
            for name, recipe in recipes(BATCH[split]).items():
                final = run(recipe, batch).accuracy[:, -1]
                for user, value in zip(batch.user, final, strict=True):
                    cells.setdefault(f"{split}/{user}", {}).setdefault(name, []).append(float(value))
            done += len(numbers_of_seeds)
            if progress is not None:
                progress(done, seeds * len(splits))
    return {cell: {name: np.array(values) for name, values in row.items()} for cell, row in sorted(cells.items())}


def cells_report(cells: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    """Mean and standard deviation of every cell, and what Weight Erosion gains on others, as one JSON object."""
    means: dict[str, Any] = {}
    gains: dict[str, Any] = {}
    for cell, row in cells.items():
        means[cell] = {name: {"mean": float(v.mean()), "std": spread(v)} for name, v in row.items()}
        gains[cell] = {other: paired(row["weight_erosion"], row[other]) for other in ("local", "fedavg")}
    seeds = len(next(iter(cells.values()))["local"])
    return {"seeds": seeds, "rounds": ROUNDS, "cells": means, "gains": gains}


def spread(values: np.ndarray) -> float:
    """The sample standard deviation, 0 for a single value."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def paired(one: np.ndarray, two: np.ndarray) -> dict[str, float]:
    """The mean difference over seeds, its standard error, and how often it was above zero, or zero."""
    difference = one - two
    return {
        "mean": float(difference.mean()),
        "se": spread(difference) / np.sqrt(len(difference)),
        "wins": int((difference > 0).sum()),
        "ties": int((difference == 0).sum()),
    }
