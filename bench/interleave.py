"""Time several functions side by side in one process, in turns, so that a busy spell falls on all of them."""

import statistics
import time
from collections.abc import Callable, Mapping

import jax


def laps_ms(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """The times of each function in milliseconds, lap by lap, after one call of each to compile."""
    laps: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        jax.block_until_ready(function())
    for _ in range(repeats):
        for name, function in functions.items():
            began = time.perf_counter()
            jax.block_until_ready(function())
            laps[name].append(1e3 * (time.perf_counter() - began))
    return laps


def medians_ms(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each function in milliseconds."""
    return {name: statistics.median(times) for name, times in laps_ms(functions, repeats).items()}
