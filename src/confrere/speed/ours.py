"""confrere on a task, through its public function: from silos to history."""

from collections.abc import Callable
from typing import Any

import numpy as np

from confrere.algorithms import fedavg, fedsgd
from confrere.core import Recipe
from confrere.data import Silos
from confrere.models import logistic
from confrere.simulate import simulate
from confrere.speed.two_tasks import Task, make_data


def recipe(task: Task) -> Recipe:
    """The task as a recipe: one gradient of a fresh batch, or one shuffled pass.

    >>> from confrere.speed.two_tasks import TASKS
    >>> recipe(TASKS["L"]).name, recipe(TASKS["S"]).name
    ('fedsgd', 'fedavg')
    """
    make = fedsgd if task.steps == 1 else fedavg
    return make(lr=task.lr, batch=task.batch, weights="uniform")


def our_run(task: Task, rounds: int) -> Callable[[], dict[str, Any]]:
    """A whole run as a function to time; it gives the last model."""
    silos = Silos.from_arrays(zip(*make_data(task), strict=True))
    start = {"w": np.zeros((task.features, task.classes), np.float32), "b": np.zeros(task.classes, np.float32)}
    model, algorithm = logistic(), recipe(task)

    def run() -> dict[str, Any]:
        return simulate(algorithm, model, silos, rounds, params=start, metrics=(), record=()).personal(0)

    return run
