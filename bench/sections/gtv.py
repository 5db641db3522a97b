"""Task G: models for all nodes of a network, up to a million, against scipy, CHOLMOD, a networkx loop and the sketch.

python bench/gtv_measure.py NODES REPEATS measures one size, in a process of its own.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sparse

import gtv_task
from environments import last_words, prepare
from gtv_profile import ITERATION, LOOP, SETUP

HERE = Path(__file__).resolve().parents[1]
REPEATS = {1000: 9, 10_000: 9, 100_000: 5, 1_000_000: 3}
QUICK = {200: 1, 400: 1}
MOST_GB = 8.0
LARGEST_CACHED = 10_000  # networks up to it fit in the cache, and are left out of the fitted exponent
GOALS = {100_000: {"all": 20.0, "solve": 10.0}}  # against scipy's conjugate gradients
BANDWIDTH = 0.7  # of an addition in place: the goal
AT_FIRST = {  # the sketch's, when it was first measured
    10_000: {"all": (0.082 + 0.089) / (0.009 + 0.012), "solve": 0.089 / 0.012},
    100_000: {"all": (2.2 + 1.35) / (0.063 + 0.178), "solve": 1.35 / 0.178},
}
CHOLMOD_MOST = 10_000
Found = dict[str, Any]


def section(quick: bool) -> str:
    """The tables, size after size."""
    sizes = QUICK if quick else REPEATS
    found = [measured(n, repeats) for n, repeats in sizes.items()]
    direct = {n: cholmod(n) for n in sizes if n <= CHOLMOD_MOST}
    return "\n".join(page(found, direct))


def measured(n: int, repeats: int) -> Found:
    """The numbers of one size; its progress is shown as it comes."""
    command = [sys.executable, str(HERE / "gtv_measure.py"), str(n), str(repeats)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout)


def cholmod(n: int) -> str:
    """The seconds of CHOLMOD, or why there are none."""
    environment = prepare("cholmod")
    if environment.python is None:
        return environment.reason
    net, quadratic = gtv_task.problem(n)
    lower = sparse.tril(gtv_task.matrix(net, quadratic), format="coo")
    with tempfile.TemporaryDirectory() as folder:
        system, models = Path(folder) / "system.npz", Path(folder) / "models.npy"
        arrays = {"rows": lower.row.astype(np.int64), "columns": lower.col.astype(np.int64), "values": lower.data}
        np.savez(system, b=-quadratic.q.ravel() / 2, **arrays)
        command = [str(environment.python), str(HERE / "peers" / "cholmod.py"), str(system), str(models)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            return last_words(done.stderr)
        left = gtv_task.matrix(net, quadratic) @ np.load(models) + quadratic.q.ravel() / 2
    exact = np.linalg.norm(left) < 1e-8 * np.linalg.norm(quadratic.q)
    return f"{json.loads(done.stdout)['s']:.3g}" if exact else "did not solve the system"


def page(found: Sequence[Found], direct: dict[int, str]) -> list[str]:
    """The section as markdown."""
    return [
        "## Models on a network", "",
        "Task G, GTVMin: 20 rows x 10 features per node, symmetrised 8 nearest neighbours of uniform points, alpha 1. "
        "All solvers begin from the nodes' statistics and the edges, and iterate until the objective is within 1e-6 of "
        "the least. Every size has a process of its own, in which all take turns; seconds, setup + solve, are medians. "
        "Solve is as many iterations; after them `solve` alone computes the residual of its models, which is told "
        "apart. "
        "Setup is, for confrere, checks, the order of the nodes, their layout and the preconditioner; for the sketch "
        "the layout and the preconditioner (at first it was timed without its layout); for scipy the matrix and the "
        "same preconditioner.", "",
        *times(found, direct), "",
        *ratios(found), "",
        *growth(found), "",
        *profile(found),
        *memory(found),
    ]  # fmt: skip


def times(found: Sequence[Found], direct: dict[int, str]) -> list[str]:
    """Seconds of all that ran."""
    lines = [f"| nodes | {' | '.join(format(f['n'], ',') for f in found)} |", "|---" * (len(found) + 1) + "|"]
    rows = {
        "edges": [f"{f['edges']:,}" for f in found],
        "iterations": [str(f["iterations"]) for f in found],
        "confrere, single precision": [both(f, "confrere") for f in found],
        "confrere, `GTVMin(...).solve(tol)` as a whole": [seconds(f, "confrere, all") for f in found],
        "confrere, the residual in double precision": [seconds(f, "confrere, residual") for f in found],
        "confrere, double precision": [both(f, "double") for f in found],
        "the sketch, single precision": [both(f, "sketch") for f in found],
        "the preconditioner alone: confrere": [seconds(f, "confrere, preconditioner") for f in found],
        "the preconditioner alone: the sketch": [seconds(f, "sketch, preconditioner") for f in found],
        "scipy CG, same preconditioner, double": [both(f, "scipy") for f in found],
        "scipy's direct solution, without setup": [seconds(f, "direct, solve") for f in found],
        "CHOLMOD (cvxopt), without setup": [direct.get(f["n"], "-") for f in found],
        "`fedgd`, ONE iteration and its objective": [seconds(f, "fedgd", 10) for f in found],
        "networkx loop, ONE iteration": [seconds(f, "networkx loop") for f in found],
        "relative gap: confrere": [f"{f['gaps']['confrere']:.0e}" for f in found],
        "relative gap: the sketch": [f"{f['gaps']['sketch']:.0e}" for f in found],
        "relative gap: scipy CG": [f"{f['gaps']['scipy']:.0e}" if "scipy" in f["gaps"] else "-" for f in found],
    }
    return lines + [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]


def seconds(f: Found, name: str, per: int = 1) -> str:
    """The median of one thing that was timed."""
    return f"{median(f['laps'][name]) / 1e3 / per:.3g}" if name in f["laps"] else "-"


def both(f: Found, who: str) -> str:
    """Setup + solve."""
    return (
        " + ".join(seconds(f, f"{who}, {part}") for part in ("setup", "solve")) if f"{who}, setup" in f["laps"] else "-"
    )


def whole(f: Found, who: str) -> list[float]:
    """Setup and solve together, lap by lap."""
    return [a + b for a, b in zip(f["laps"][f"{who}, setup"], f["laps"][f"{who}, solve"], strict=True)]


def ratios(found: Sequence[Found]) -> list[str]:
    """How many times faster than others, lap by lap."""
    lines = [
        "| how many times faster | nodes | confrere | the sketch, same turns | the sketch at first | goal |",
        "|---|---|---|---|---|---|",
    ]
    for f in found:
        if "scipy, setup" not in f["laps"]:
            continue
        for what, laps in (("all", whole), ("solve", lambda f, who: f["laps"][f"{who}, solve"])):
            ours, sketch = (faster(laps(f, "scipy"), laps(f, who)) for who in ("confrere", "sketch"))
            first, goal = (mark(x.get(f["n"], {}).get(what), ours) for x in (AT_FIRST, GOALS))
            name = "scipy CG, with setup" if what == "all" else "scipy CG, solve only"
            lines.append(
                f"| {name} | {f['n']:,} | {ours:.3g}x | {sketch:.3g}x, {verdict(ours, sketch)} | {first} | {goal} |"
            )
    for f in found:
        laps = f["laps"]
        beside = [faster(laps[f"sketch, {part}"], laps[f"confrere, {part}"]) for part in ("setup", "solve")]
        lines.append(f"| the sketch: setup, solve | {f['n']:,} | {beside[0]:.3g}x, {beside[1]:.3g}x | - | - | - |")
    return lines


def mark(wanted: float | None, found: float) -> str:
    """A ratio to reach, and whether it is."""
    return "-" if wanted is None else f"{wanted:.3g}x, {verdict(found, wanted)}"


def faster(peer: Sequence[float], ours: Sequence[float]) -> float:
    """How many times faster, the median over laps."""
    return median(a / b for a, b in zip(peer, ours, strict=True))


def verdict(found: float, mark: float) -> str:
    """Whether a mark is reached."""
    return "reached" if found >= mark else "**missed**"


def growth(found: Sequence[Found]) -> list[str]:
    """The cost of an iteration against the number of edges, and the share of the memory's bandwidth."""
    lines = [
        "| nodes | edges | ms per iteration | GB/s | share of an addition in place (goal 70%) |",
        "|---|---|---|---|---|",
    ]
    for f in found:
        speed = f["bytes"] / f["step_ms"] / 1e6
        part = speed / f["bandwidth"]
        share = f"{part:.0%} of {f['bandwidth']:.3g} GB/s, {verdict(part, BANDWIDTH)}"
        lines.append(f"| {f['n']:,} | {f['edges']:,} | {f['step_ms']:.3g} | {speed:.3g} | {share} |")
    large = [f for f in found if f["n"] >= LARGEST_CACHED] or found
    power = exponent([f["edges"] for f in large], [f["step_ms"] for f in large])
    sizes = f"{large[0]['n']:,} to {large[-1]['n']:,}"
    return [*lines, "", f"From {sizes} nodes the cost of an iteration grows as edges to the power {power:.2f}, fitted."]


def exponent(edges: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log cost against log edges, by least squares."""
    return float(np.polyfit(np.log(edges), np.log(costs), 1)[0])


def profile(found: Sequence[Found]) -> list[str]:
    """Where setup and an iteration spend their time: each part by itself, in the same turns."""
    names = [name for name in found[0]["laps"] if name.startswith((SETUP, ITERATION))]
    if not names:
        return []
    lines = [
        "Where the time goes, in ms, each part by itself in the same turns:", "",
        f"| part | {' | '.join(format(f['n'], ',') for f in found)} |", "|---" * (len(found) + 1) + "|",
    ]  # fmt: skip
    for name in names:
        per = LOOP if name.startswith(ITERATION) else 1
        cells = [f"{median(f['laps'][name]) / per:.3g}" for f in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def memory(found: Sequence[Found]) -> list[str]:
    """The most that the largest run held."""
    f = found[-1]
    kept = "kept" if f["peak_gb"] < MOST_GB else "**missed**"
    return [
        f"{f['n']:,} nodes, from making the rows to the solution (residual 1e-5): the process held {f['peak_gb']:.2f} "
        f"GB at most (at most {MOST_GB:g} GB: {kept}).",
    ]
