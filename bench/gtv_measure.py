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

import gtv_profile
import gtv_task
import sketch_gtv
from confrere.networks import GTVMin, Network, Quadratic, fedgd
from confrere.networks.posed import posed
from confrere.networks.quick import prepared, quick_gradients, steps
from confrere.speed.interleave import laps_ms
from gtv_profile import fresh

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


class Ours:
    """Our solver in its parts, in some precision."""

    def __init__(self, net: Network, quadratic: Quadratic, dtype: Any):
        self.net, self.quadratic, self.dtype = net, quadratic, dtype
        self.kept: dict[int, np.ndarray] = {}
        self.ready = self.setup()
        self.right = self.ready[0].right_side(quadratic.q)

    def setup(self) -> Any:
        """From statistics and edges to what iterations need: checks, order, layout and preconditioner."""
        p = GTVMin(fresh(self.net), self.quadratic, alpha=gtv_task.ALPHA)
        with jax.enable_x64(self.dtype == jnp.float64):
            given = posed(p.quadratic_for("task G"), p.network, p.coupling())
            return given, prepared(given, self.dtype), jnp.asarray(given.right_side(self.quadratic.q), self.dtype)

    def iterations(self, count: int) -> Any:
        """So many iterations from zero: models, in the order in which they are solved, and their number."""
        with jax.enable_x64(self.dtype == jnp.float64):
            _, quick, b = self.ready
            return steps(quick, b, None, 0.0, count)

    def residual(self, count: int) -> np.ndarray:
        """What `solve` does after its iterations: the residual of models in double precision."""
        return self.right - self.ready[0].times(self.found(count))

    def share_left(self, count: int) -> float:
        """What so many iterations leave of the right side, as `solve` measures it."""
        given, quick, _ = self.ready
        return float(quick_gradients(given, quick, self.right, None, 0.0, count).residual)

    def found(self, count: int) -> np.ndarray:
        """The models after so many iterations, in the order in which they are solved; kept."""
        if count not in self.kept:
            self.kept = {count: np.asarray(self.iterations(count)[0], float)}
        return self.kept[count]

    def models(self, count: int) -> np.ndarray:
        """The models after so many iterations, in the nodes' own order."""
        return self.ready[0].models(self.found(count))


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
    tol = 1.0001 * single.share_left(count)
    rates = np.full(STEPS, 0.01)
    runs: dict[str, Callable[[], Any]] = {
        "confrere, setup": single.setup,
        "confrere, solve": lambda: single.iterations(count),
        "confrere, nothing": lambda: single.iterations(0),
        "confrere, residual": lambda: single.residual(count),
        "confrere, all": lambda: GTVMin(fresh(net), quadratic, alpha=gtv_task.ALPHA).solve(tol),
        "fedgd": lambda: fedgd(p, lr=rates, iterations=STEPS).W,
    }
    given = sketch_gtv.arrays(net, quadratic)
    inverse = sketch_gtv.setup(given.blocks, given.degree)
    runs["sketch, setup"] = lambda: prepared_sketch(fresh(net), quadratic)
    runs["confrere, preconditioner"] = lambda: prepared(single.ready[0], jnp.float32)
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
    runs |= gtv_profile.setup_parts(single.ready[0], quadratic, jnp.float32)
    runs |= gtv_profile.iteration_parts(*single.ready[1:])
    say(f"{count} iterations to a gap of {GAP:g}; timing {', '.join(runs)}")
    laps = laps_ms(runs, repeats)
    slots, d = len(single.ready[1].layout.neighbour), gtv_task.FEATURES
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
        runs["scipy, setup"] = lambda: gtv_task.scipy_setup(fresh(net), quadratic)
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
