"""The tasks that are timed, their data, and the timer. Needs numpy only: every peer's environment imports it.

Both tasks are federated averaging of a two-class softmax regression with bias, started from zero, all silos
taking part. In each round each silo shuffles its rows anew, without replacement, and takes its batches from
the front:

    L   4 silos of 330 rows, 12 features; one batch of 161 rows per round: the cost of a round's bookkeeping
    S   1000 silos of 100 rows, 20 features; one epoch of five batches of 20 per round: the cost of many silos

A contestant is a script with the command line `SCRIPT TASK [--rounds R]` that prints one line of JSON on its
standard output (`Lap.report`).
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# The runner says when it started the process, so that the first round includes the imports.
_STARTED = float(os.environ.get("BENCH_STARTED", time.time()))


class Task(NamedTuple):
    """The sizes of a task. `rounds` is how many are timed unless the command line says otherwise."""

    name: str
    silos: int
    rows: int
    features: int
    classes: int
    batch: int
    steps: int
    rounds: int
    lr: float


TASKS: dict[str, Task] = {
    "L": Task("L", silos=4, rows=330, features=12, classes=2, batch=161, steps=1, rounds=300, lr=0.1),
    "S": Task("S", silos=1000, rows=100, features=20, classes=2, batch=20, steps=5, rounds=20, lr=0.1),
}


@lru_cache
def make_data(task: Task, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Rows x[silos, rows, features] and labels y[silos, rows]: one noisy linear law for all the silos."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((task.silos, task.rows, task.features), dtype=np.float32)
    law = rng.standard_normal(task.features, dtype=np.float32)
    noise = 0.5 * rng.standard_normal(x.shape[:2], dtype=np.float32)
    return x, (x @ law + noise > 0).astype(np.int32)


def mean_loss(task: Task, weights: NDArray[np.float32], bias: NDArray[np.float32]) -> float:
    """Cross-entropy of weights[features, classes] and bias[classes] over all rows: did a contestant train?"""
    x, y = make_data(task)
    scores = x.astype(np.float64) @ np.asarray(weights, np.float64) + np.asarray(bias, np.float64)
    chosen = np.take_along_axis(scores, y[..., None], axis=-1)[..., 0]
    return float(np.mean(np.logaddexp.reduce(scores, axis=-1) - chosen))


class Lap:
    """A timer whose first lap is the warm-up: counted in the time to the first round, left out of the rest.

    `not_counted` is what the contestant spent on choosing its settings before, in seconds.
    """

    def __init__(self, not_counted: float = 0.0) -> None:
        self._origin = _STARTED + not_counted
        self._marks: list[float] = []
        self._first_round_s = 0.0

    def mark(self) -> None:
        """Start the first lap; at every later call, end one lap and start the next."""
        self._marks.append(time.perf_counter())
        if len(self._marks) == 2:
            self._first_round_s = time.time() - self._origin

    def drive(self, play_round: Callable[[], object], rounds: int) -> "Lap":
        """Time `rounds` calls of `play_round` after one to warm up."""
        self.mark()
        for _ in range(rounds + 1):
            play_round()
            self.mark()
        return self

    def report(
        self,
        contestant: str,
        task: Task,
        version: str,
        *,
        rounds_per_lap: int = 1,
        loss: float | None = None,
        note: str = "",
    ) -> None:
        """Print the line of JSON. Where a lap is a whole run of many rounds, say how many."""
        laps_ms = np.diff(self._marks)[1:] * 1e3 / rounds_per_lap
        line = {
            "contestant": contestant,
            "task": task.name,
            "version": version,
            "rounds": len(laps_ms) * rounds_per_lap,
            "round_ms": [round(float(ms), 5) for ms in laps_ms],
            "first_round_s": round(self._first_round_s, 3),
        }
        if loss is not None:
            line["loss"] = round(loss, 5)
        if note:
            line["note"] = note
        print(json.dumps(line), flush=True)


def arguments(*, threads: bool = False) -> argparse.Namespace:
    """Read the contestants' command line: `task` (a Task), `rounds` and, where it applies, `threads`."""
    parser = argparse.ArgumentParser(description="Time one contestant on one task.")
    parser.add_argument("task", choices=sorted(TASKS), help="which task")
    parser.add_argument("--rounds", type=int, help="rounds to time after one to warm up")
    if threads:
        parser.add_argument("--threads", type=int, help="default: the faster of one and all cores")
    given = parser.parse_args()
    given.task = TASKS[given.task]
    given.rounds = given.rounds or given.task.rounds
    return given
