"""A plain numpy loop over silos and batches: what a careful researcher writes in an afternoon."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, arguments, make_data, mean_loss

from plain_loop import Averaging  # isort: skip (tasks says where it is)


def main() -> None:
    """Time the loop."""
    given = arguments()
    averaging = Averaging(given.task, *make_data(given.task))
    lap = Lap().drive(averaging.round, given.rounds)
    loss = mean_loss(given.task, averaging.weights, averaging.bias)
    lap.report("numpy_loop", given.task, f"numpy {np.__version__}", loss=loss)


if __name__ == "__main__":
    main()
