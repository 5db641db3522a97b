"""confrere itself, through its public function: a lap is a whole call of `simulate`, from silos to history."""

import os

import jax

from tasks import Lap, arguments, loss_of

jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

import confrere as cf  # noqa: E402
from confrere.speed.ours import our_run  # noqa: E402

LAPS = {"C": 5}


def main() -> None:
    """Time the simulator."""
    given = arguments()
    simulate = our_run(given.task, given.rounds)
    last = []

    def run() -> None:
        last[:] = [simulate()]

    lap = Lap().drive(run, LAPS.get(given.task.name, 15))
    loss = loss_of(given.task, last[0])
    version = f"{cf.__version__}, jax {jax.__version__}"
    lap.report("confrere", given.task, version, rounds_per_lap=given.rounds, loss=loss)


if __name__ == "__main__":
    main()
