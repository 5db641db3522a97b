"""Time several functions side by side in one process, in turns, so that a busy spell falls on all of them."""

import statistics
import time
from collections.abc import Callable, Mapping

import jax


def laps_ms(
    functions: Mapping[str, Callable[[], object]], repeats: int, progress: Callable[[int, int], None] | None = None
) -> dict[str, list[float]]:
    """The times of each function in milliseconds, lap by lap, after one call of each to compile.

    `progress` hears how many calls of how many are done.

    >>> laps = laps_ms({"a": lambda: 1, "b": lambda: 2}, repeats=3)
    >>> [len(times) for times in laps.values()]
    [3, 3]
    """
    laps: dict[str, list[float]] = {name: [] for name in functions}
    calls = len(functions) * (1 + repeats)
    for done, (name, function) in enumerate(list(functions.items()) * (1 + repeats), start=1):
        began = time.perf_counter()
        jax.block_until_ready(function())
        laps[name].append(1e3 * (time.perf_counter() - began))
        if progress is not None:
            progress(done, calls)
    return {name: times[1:] for name, times in laps.items()}


def medians_ms(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each function in milliseconds.

    >>> sorted(medians_ms({"a": lambda: 1, "b": lambda: 2}, repeats=1))
    ['a', 'b']
    """
    return {name: statistics.median(times) for name, times in laps_ms(functions, repeats).items()}
