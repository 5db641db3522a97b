"""A plain numpy loop over silos and batches: what a careful researcher writes in an afternoon."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, arguments, loss_of, make_data

from plain_loop import Averaging  # isort: skip (tasks says where it is)
from plain_network import NetworkAveraging  # isort: skip


def main() -> None:
    """Time the loop."""
    given = arguments()
    averaging = (NetworkAveraging if given.task.network else Averaging)(given.task, *make_data(given.task))
    lap = Lap().drive(averaging.round, given.rounds)
    loss = loss_of(given.task, averaging.params)
    lap.report("numpy_loop", given.task, f"numpy {np.__version__}", loss=loss)


if __name__ == "__main__":
    main()
