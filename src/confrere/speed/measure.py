"""confrere and the numpy loop on one task, timed in turns in one process."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from confrere.speed.interleave import laps_ms
from confrere.speed.ours import our_run
from confrere.speed.plain_loop import Averaging
from confrere.speed.plain_network import NetworkAveraging, network_loss
from confrere.speed.timed_tasks import TASKS, Task, make_data, mean_loss

OURS, LOOP = "confrere", "numpy loop"
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Speed:
    """What was measured on one task. Medians over laps; the ratio is the median of the laps' own ratios."""

    task: str
    what: str
    rounds: int
    laps: int
    ms_per_round: dict[str, float]
    rounds_per_second: dict[str, float]
    ratio: float
    first_run_s: float
    loss: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)


def measure(name: str, repeats: int = 5, rounds: int | None = None, progress: Progress | None = None) -> Speed:
    """Time a task: `repeats` laps of `rounds` rounds each, after one that compiles and warms up.

    >>> found = measure("L", repeats=1, rounds=3)
    >>> sorted(found.rounds_per_second), found.ratio > 0
    (['confrere', 'numpy loop'], True)
    """
    task = TASKS[name]
    rounds = task.rounds if rounds is None else rounds
    run = our_run(task, rounds)
    began = time.perf_counter()
    ours = run()
    first = time.perf_counter() - began
    loop = loop_run(name, rounds)
    theirs = loop()
    laps = laps_ms({OURS: run, LOOP: loop}, repeats, progress)
    ms = {who: statistics.median(times) / rounds for who, times in laps.items()}
    return Speed(
        name, task.in_words(), rounds, repeats, ms, {who: 1e3 / time_ for who, time_ in ms.items()},
        statistics.median(b / a for a, b in zip(laps[OURS], laps[LOOP], strict=True)), first,
        {OURS: loss_of(task, ours), LOOP: loss_of(task, theirs)},
    )  # fmt: skip


def loss_of(task: Task, params: dict[str, Any]) -> float:
    """The loss of a model of the task over all rows."""
    if task.network:
        return network_loss(params, *make_data(task))
    return mean_loss(task, params["w"], params["b"])


def loop_run(name: str, rounds: int) -> Callable[[], dict[str, Any]]:
    """A whole run of the numpy loop as a function to time; it gives the last model."""
    task = TASKS[name]
    x, y = make_data(task)

    def run() -> dict[str, Any]:
        averaging = NetworkAveraging(task, x, y) if task.network else Averaging(task, x, y)
        for _ in range(rounds):
            averaging.round()
        return averaging.params

    return run
