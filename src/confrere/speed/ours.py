"""confrere on a task, through its public function: from silos to history."""

from collections.abc import Callable
from typing import Any

import numpy as np

from confrere.algorithms import fedavg, fedsgd
from confrere.data import Silos
from confrere.models import lenet5, logistic
from confrere.recipe import Recipe
from confrere.simulate import simulate
from confrere.speed.plain_network import start as start_of_network
from confrere.speed.timed_tasks import Task, make_data


def recipe(task: Task) -> Recipe:
    """The task as a recipe: one gradient of a fresh batch, or so many batches of a shuffle.

    >>> from confrere.speed.timed_tasks import TASKS
    >>> recipe(TASKS["L"]).name, recipe(TASKS["S"]).name
    ('fedsgd', 'fedavg')
    """
    if task.steps == 1:
        return fedsgd(lr=task.lr, batch=task.batch, weights="uniform")
    whole = task.steps * task.batch == task.rows
    return fedavg(lr=task.lr, batch=task.batch, steps=None if whole else task.steps, weights="uniform")


def start(task: Task) -> dict[str, Any]:
    """The model that all begin from."""
    if task.network:
        return start_of_network()
    return {"w": np.zeros((task.features, task.classes), np.float32), "b": np.zeros(task.classes, np.float32)}


def our_run(task: Task, rounds: int) -> Callable[[], dict[str, Any]]:
    """A whole run as a function to time; it gives the last model."""
    silos = Silos.from_arrays(zip(*make_data(task), strict=True))
    model, algorithm, params = lenet5() if task.network else logistic(), recipe(task), start(task)

    def run() -> dict[str, Any]:
        return simulate(algorithm, model, silos, rounds, params=params, metrics=(), record=()).personal(0)

    return run
