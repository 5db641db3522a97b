"""The experiments of the Weight Erosion paper on the Titanic: the authors' own run, and the same over many seeds.

Grimberg, Hartley, Jaggi, Karimireddy (2020), section 5: four silos by age, each the user once; half of the user's rows
are for test, all rows of the others for training; 30 rounds of one batch per silo; a linear layer with two outputs.

The authors' loss is half the usual cross-entropy plus 1e-3/2 |params|^2 at learning rate 3. In ordinary terms that is
the cross-entropy, an L2 coefficient of 2e-3 and a learning rate of 1.5. Their FedAvg ran at 0.07 (0.035), because of
its defect (see `confrere.reproduce.published`); the correct one is run at the same rate as the others.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere import algorithms
from confrere.core import Block, Recipe, Tree
from confrere.data.fetch import DataNotFound, check_file, data_folder
from confrere.data.silos import Silos
from confrere.data.titanic import BATCH, SHA256, SplitName, passengers, split_passengers, titanic_file
from confrere.models import logistic
from confrere.program import Setup, Trace, numbers, rollout
from confrere.reproduce.published import batch_mean_accuracy, fedavg_as_published

ROUNDS = 30
AUTHORS_SEED = 278
LEARNING_RATE = 3.0 / 2
DEFECTIVE_LEARNING_RATE = 0.07 / 2
L2 = 2e-3
NAMES = ("weight_erosion", "local", "fedavg", "fedavg_as_published")


class Experiments(NamedTuple):
    """Runs stacked one behind the other: each has its user, rows, start and key."""

    user: np.ndarray  # [E]
    train: Block  # [E, n, ...]
    test: Block
    params: Tree
    seed: np.ndarray  # [E]


class Result(NamedTuple):
    """What the runs of one algorithm gave."""

    accuracy: np.ndarray  # [E, ROUNDS + 1] by rows, before round 1 and after every round
    alpha: np.ndarray  # [E, ROUNDS, n]
    distance: np.ndarray  # [E, ROUNDS, n]
    params: Tree  # [E, ...] the user's model at the end
    correct: list[np.ndarray]  # per run, which test rows the final model gets right


def recipes(batch: int) -> dict[str, Recipe]:
    """The paper's three schemes, and its FedAvg as it was run; the user is a number still to be filled in."""
    how: dict[str, Any] = {"batch": batch, "order": "cyclic", "l2": L2}
    return {
        "weight_erosion": algorithms.weight_erosion(0, LEARNING_RATE, p_d=0.01, p_s=0.2, passes="code", **how),
        "local": algorithms.local(LEARNING_RATE, steps=1, **how),
        "fedavg": algorithms.fedsgd(LEARNING_RATE, weights="uniform", **how),
        "fedavg_as_published": fedavg_as_published(0, DEFECTIVE_LEARNING_RATE, **how),
    }


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


def experiments(starts: Sequence[tuple[Silos, Tree]], seeds: Sequence[int]) -> Experiments:
    """Every silo as user of every start, stacked; blocks padded to the same number of rows."""
    cases = [(silos.for_user(u), u, params, seed) for (silos, params), seed in zip(starts, seeds, strict=True)
             for u in range(len(silos))]  # fmt: skip
    rows = {part: max(max(silos.sizes(part)) for silos, *_ in cases) for part in ("train", "test")}
    stack = lambda *leaves: np.stack(leaves)  # noqa: E731
    return Experiments(
        user=np.array([u for _, u, _, _ in cases], np.int32),
        train=jax.tree.map(stack, *[silos.block("train", rows["train"]) for silos, *_ in cases]),
        test=jax.tree.map(stack, *[silos.block("test", rows["test"]) for silos, *_ in cases]),
        params=jax.tree.map(stack, *[params for _, _, params, _ in cases]),
        seed=np.array([seed for *_, seed in cases]),
    )


def run(recipe: Recipe, batch: Experiments) -> Result:
    """All experiments of one algorithm in one compiled program."""
    model = logistic()
    hyper = {**numbers(recipe.hyper)}
    personal = "user" in hyper
    hyper.pop("user", None)
    setup = Setup(recipe.make, model, metrics=("accuracy",), losses=False)  # type: ignore[arg-type]
    trace, params, scores = _run(setup, personal, hyper, batch)
    curves = jnp.concatenate([trace.before.metrics["accuracy"][:, None], trace.entries.scores.metrics["accuracy"]], 1)
    right = np.asarray(scores.argmax(-1)) == user_rows(batch.test.y, batch.user)
    sizes = user_rows(batch.test.size, batch.user)
    return Result(
        accuracy=np.asarray(curves)[:, :, 0],
        alpha=np.asarray(trace.entries.record.weights)[:, :, 0],
        distance=np.asarray(trace.entries.record.observed["distance"]),
        params=jax.tree.map(np.asarray, params),
        correct=[row[:size] for row, size in zip(right, sizes, strict=True)],
    )


def user_rows(values: Any, user: np.ndarray) -> np.ndarray:
    """Of every experiment, what belongs to its user: [E, n, ...] -> [E, ...]."""
    return np.asarray(values)[np.arange(len(user)), user]


def _one(setup: Setup, personal: bool, hyper, case: Experiments) -> tuple[Trace, Tree, jax.Array]:
    numbers_of_case = {**hyper, "user": case.user} if personal else hyper
    key = jax.random.key(case.seed)
    trace = rollout(setup, ROUNDS, numbers_of_case, key, case.params, case.train, case.test, case.user)
    algorithm = setup.algorithm(numbers_of_case)
    params = algorithm.personal(trace.state, case.train, case.user)
    return trace, params, setup.model.apply(params, case.test.X[case.user])


@jax.jit(static_argnums=(0, 1))
def _run(setup: Setup, personal: bool, hyper, batch: Experiments):
    return jax.vmap(lambda case: _one(setup, personal, hyper, case))(batch)


def single_run(split: SplitName, seed: int) -> tuple[Silos, dict[str, Result]]:
    """One seed, every silo as user, all four algorithms; seed 278 is the authors' own run."""
    silos, params = authors_start(split) if seed == AUTHORS_SEED else next(seeded_start(split, [seed]))
    batch = experiments([(silos, params)], [seed])
    return silos, {name: run(recipe, batch) for name, recipe in recipes(BATCH[split]).items()}


def single_run_report(split: SplitName, seed: int, results: dict[str, Result]) -> dict[str, Any]:
    """Distances, alphas and final accuracies of one seed, as one JSON object."""
    eroded = results["weight_erosion"]
    users = {}
    for u in range(len(eroded.alpha)):
        others = [i for i in range(eroded.alpha.shape[2]) if i != u]
        users[str(u)] = {
            "others": others,
            "distance": eroded.distance[u][:, others].tolist(),
            "alpha": eroded.alpha[u][:, others].tolist(),
            "accuracy": {name: float(results[name].correct[u].mean()) for name in NAMES},
            "accuracy_batch_mean": {
                name: batch_mean_accuracy(results[name].correct[u], BATCH[split]) for name in NAMES
            },
        }
    return {"split": split, "seed": seed, "rounds": ROUNDS, "users": users}


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
