"""The choice of torch's number of threads, which for models this small is often one."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

TRIAL_S = 0.5


class Choice(NamedTuple):
    """How many threads and how they were chosen, in words, and how long the choice took."""

    note: str
    seconds: float = 0.0


def settle_threads(asked: int | None, fresh: Callable[[], Callable[[], object]]) -> Choice:
    """Set torch's threads to `asked`, or to the faster of one and all cores on fresh rounds of the task.

    `fresh` gives a function that plays one round of a model of its own, so that the trials train nothing.
    """
    if asked:
        torch.set_num_threads(asked)
        return Choice(f"threads: {asked}, as asked")
    start = time.perf_counter()
    counts = sorted({1, os.cpu_count() or 1})
    best = min(counts, key=lambda count: _round_s(count, fresh()))
    torch.set_num_threads(best)
    return Choice(f"threads: {best}, the fastest of {counts}", time.perf_counter() - start)


def _round_s(threads: int, play_round: Callable[[], object]) -> float:
    """Seconds of the fastest round with so many threads, of at least two and about TRIAL_S seconds."""
    torch.set_num_threads(threads)
    play_round()
    times: list[float] = []
    while len(times) < 2 or sum(times) < TRIAL_S:
        start = time.perf_counter()
        play_round()
        times.append(time.perf_counter() - start)
    return min(times)
