"""confrere itself, through its public function: a lap is a whole call of `simulate`, from silos to history."""

import os

import jax
import numpy as np

from tasks import Lap, Task, arguments, make_data, mean_loss

jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

import confrere as cf  # noqa: E402

LAPS = 15


def recipe(task: Task) -> cf.Recipe:
    """The task as a recipe: one gradient of a fresh batch, or one shuffled pass."""
    if task.steps == 1:
        return cf.fedsgd(lr=task.lr, batch=task.batch, weights="uniform")
    return cf.fedavg(lr=task.lr, batch=task.batch, weights="uniform")


def main() -> None:
    """Time the simulator."""
    given = arguments()
    task = given.task
    silos = cf.Silos.from_arrays(zip(*make_data(task), strict=True))
    start = {"w": np.zeros((task.features, task.classes), np.float32), "b": np.zeros(task.classes, np.float32)}
    model, algorithm = cf.models.logistic(), recipe(task)
    last = []

    def run() -> None:
        history = cf.simulate(algorithm, model, silos, given.rounds, params=start, metrics=(), record=())
        last[:] = [history.personal(0)]

    run()  # the second call finds everything compiled
    lap = Lap().drive(run, LAPS)
    loss = mean_loss(task, last[0]["w"], last[0]["b"])
    lap.report("confrere", task, f"{cf.__version__}, jax {jax.__version__}", rounds_per_lap=given.rounds, loss=loss)


if __name__ == "__main__":
    main()
