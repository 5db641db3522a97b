"""The limit of the machine: one large matrix product with as many operations as a round's products have."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, arguments

from plain_network import FLOP_PER_ROW, LARGE  # isort: skip (tasks says where it is)


def main() -> None:
    """Time the product."""
    given = arguments()
    task = given.task
    rows = task.silos * task.steps * task.batch
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(size, dtype=np.float32) for size in ((rows, LARGE[0]), LARGE))
    out = np.empty((rows, LARGE[1]), np.float32)
    lap = Lap().drive(lambda: np.matmul(left, right, out=out), given.rounds)
    note = f"{rows * FLOP_PER_ROW / 1e9:.2f} GFLOP; a ratio is the share of the machine's peak"
    lap.report("matrix_product", task, f"numpy {np.__version__}", note=note)


if __name__ == "__main__":
    main()
