"""The timer, and the contestants' command line. Needs numpy only: every peer's environment imports it.

The tasks and the plain numpy loops are confrere's own (`src/confrere/speed`), which `confrere bench` measures too.
They are imported from that folder, since the peers' environments do not have confrere.

A contestant is a script with the command line `SCRIPT TASK [--rounds R]` that prints one line of JSON on its
standard output (`Lap.report`).
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SPEED = str(Path(__file__).resolve().parents[1] / "src" / "confrere" / "speed")
sys.path.append(SPEED)
from plain_network import network_loss  # noqa: E402
from timed_tasks import TASKS, Task, make_data, mean_loss  # noqa: E402

# The runner says when it started the process, so that the first round includes the imports.
_STARTED = float(os.environ.get("BENCH_STARTED", time.time()))


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


def loss_of(task: Task, params: Any) -> float:
    """The loss over all rows of a model with confrere's names: `w` and `b`, or those of LeNet-5's layers."""
    if task.network:
        return network_loss(params, *make_data(task))
    return mean_loss(task, params["w"], params["b"])
