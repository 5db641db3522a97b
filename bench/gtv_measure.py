"""Task G at one size, in a process of its own: `python bench/gtv_measure.py NODES REPEATS` prints one line of JSON.

Everything that is compared runs in this process, in turns. The most memory is read after our own first solution, before
anything else is made.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.linalg as solvers

import gtv_task
import sketch_gtv
from confrere.networks import GTVMin, Network, Quadratic, fedgd
from confrere.networks.quick import prepared, quick_gradients
from confrere.networks.solve import order_of, scales_of, system_of
from confrere.speed.interleave import laps_ms

GAP = 1e-6
SCIPY, LOOP, DIRECT, DOUBLE = 100_000, 10_000, 1000, 100_000  # the most nodes for those that take longer
STEPS = 10  # of fedgd in one run


def say(text: str) -> None:
    """Progress, on the standard error."""
    print(f"    {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def peak_gb() -> float:
    """The most memory that this process has held, as the system counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e9


def fresh(net: Network) -> Network:
    """The network without anything that it keeps."""
    return Network(net.n, net.edges, net.weights)


class Ours:
    """Our solver in its two parts, in some precision."""

    def __init__(self, net: Network, quadratic: Quadratic, dtype: Any):
        self.net, self.quadratic, self.dtype = net, quadratic, dtype
        self.ready = self.setup()

    def setup(self) -> Any:
        """From statistics and edges to what iterations need: checks, order, layout and preconditioner."""
        with jax.enable_x64(self.dtype == jnp.float64):
            p = GTVMin(fresh(self.net), self.quadratic, alpha=gtv_task.ALPHA)
            system = system_of(p.quadratic, p.network, p.coupling(), self.dtype)
            order, b = order_of(p.network), -self.quadratic.q / 2 * scales_of(self.quadratic.Q)
            return system, prepared(system), jnp.asarray(b if order is None else b[order], self.dtype), order

    def iterations(self, count: int) -> Any:
        """So many iterations."""
        with jax.enable_x64(self.dtype == jnp.float64):
            system, quick, b, _ = self.ready
            return quick_gradients(system, quick, b, None, 0.0, count)

    def models(self, count: int) -> np.ndarray:
        """The models after so many iterations, in the nodes' own order."""
        found, order = np.array(self.iterations(count).W, float) * scales_of(self.quadratic.Q), self.ready[3]
        if order is not None:
            found[order] = found.copy()
        return found


def fewest(enough: Callable[[int], bool]) -> int:
    """The fewest iterations that are enough, where more are enough too."""
    low, high = 0, 16
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def prepared_sketch(net: Network, quadratic: Quadratic) -> Any:
    """The sketch's arrays and its preconditioner."""
    given = sketch_gtv.arrays(net, quadratic)
    return given, sketch_gtv.setup(given.blocks, given.degree)


def measure(n: int, repeats: int) -> dict[str, Any]:
    """All numbers of one size."""
    say(f"{n} nodes: making rows")
    net, quadratic = gtv_task.problem(n)
    p = GTVMin(net, quadratic, alpha=gtv_task.ALPHA)
    say("the solution")
    best = p.objective(p.solve(1e-5))  # what the objective lacks is of the order of the square
    peak = peak_gb()
    gap = lambda W: (p.objective(W) - best) / best  # noqa: E731
    single = Ours(net, quadratic, jnp.float32)
    count = fewest(lambda k: gap(single.models(k)) < GAP)
    size = float(np.linalg.norm(quadratic.q / 2))
    tol = 1.0001 * float(single.iterations(count).residual) / size
    rates = np.full(STEPS, 0.01)
    runs: dict[str, Callable[[], Any]] = {
        "confrere, setup": single.setup,
        "confrere, solve": lambda: single.iterations(count),
        "confrere, nothing": lambda: single.iterations(0),
        "confrere, all": lambda: GTVMin(fresh(net), quadratic, alpha=gtv_task.ALPHA).solve(tol),
        "fedgd": lambda: fedgd(p, lr=rates, iterations=STEPS).W,
    }
    given = sketch_gtv.arrays(net, quadratic)
    inverse = sketch_gtv.setup(given.blocks, given.degree)
    runs["sketch, setup"] = lambda: prepared_sketch(net, quadratic)
    runs["confrere, preconditioner"] = lambda: prepared(single.ready[0])
    runs["sketch, preconditioner"] = lambda: sketch_gtv.setup(given.blocks, given.degree)
    runs["sketch, solve"] = lambda: sketch_gtv.solve(given, inverse, count)
    gaps = {
        "confrere": gap(single.models(count)),
        "sketch": gap(np.asarray(sketch_gtv.solve(given, inverse, count), float)),
    }
    if n <= DOUBLE:
        double = Ours(net, quadratic, jnp.float64)
        runs["double, setup"], runs["double, solve"] = double.setup, lambda: double.iterations(count)
        gaps["double"] = gap(double.models(count))
    runs |= others(net, quadratic, count, gaps, gap)
    say(f"{count} iterations to a gap of {GAP:g}; timing {', '.join(runs)}")
    laps = laps_ms(runs, repeats)
    slots, d = len(single.ready[0].layout.neighbour), gtv_task.FEATURES
    return {
        "n": n, "edges": len(net.edges), "iterations": count, "gaps": gaps, "peak_gb": peak, "laps": laps,
        "step_ms": max(median(laps["confrere, solve"]) - median(laps["confrere, nothing"]), 1e-3) / count,
        "bytes": 4 * n * (d * d + slots + 11 * d), "bandwidth": bandwidth(),
    }  # fmt: skip


def others(net: Network, quadratic: Quadratic, count: int, gaps: dict[str, float], gap: Any) -> dict[str, Any]:
    """What else is timed at this size; their gaps are added to `gaps`."""
    runs: dict[str, Callable[[], Any]] = {}
    if net.n <= SCIPY:
        prepared = gtv_task.scipy_setup(net, quadratic)
        gaps["scipy"] = gap(gtv_task.scipy_solve(prepared, quadratic, count))
        runs["scipy, setup"] = lambda: gtv_task.scipy_setup(net, quadratic)
        runs["scipy, solve"] = lambda: gtv_task.scipy_solve(prepared, quadratic, count)
    if net.n <= DIRECT:
        H, b = gtv_task.matrix(net, quadratic).tocsc(), -quadratic.q.ravel() / 2
        gaps["direct"] = gap(solvers.spsolve(H, b).reshape(quadratic.q.shape))
        runs["direct, solve"] = lambda: solvers.spsolve(H, b)
    if net.n <= LOOP:
        graph, W = net.to_networkx(), np.zeros(quadratic.q.shape)
        runs["networkx loop"] = lambda: gtv_task.networkx_step(graph, quadratic, W)
    return runs


def bandwidth() -> float:
    """GB/s of an addition in place that is larger than any cache, the best of a few."""
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    x, speeds = add(jnp.zeros(50_000_000, jnp.float32)), []
    for _ in range(8):
        began = time.perf_counter()
        x = jax.block_until_ready(add(x))
        speeds.append(2 * x.nbytes / (time.perf_counter() - began) / 1e9)
    return max(speeds)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
