"""A grid in one program: 4 users x 8 learning rates x 10 seeds of task L, against one run of the numpy loop.

An experiment is one user, one learning rate and one seed, 300 rounds. Nothing is measured in between, as in the loop.
"""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(HERE))

import jax  # noqa: E402

if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

import confrere as cf  # noqa: E402
from confrere.speed.interleave import laps_ms  # noqa: E402
from confrere.speed.measure import loop_run  # noqa: E402
from confrere.speed.timed_tasks import TASKS, make_data  # noqa: E402
from confrere.study.blocks import Size, block_program, block_size  # noqa: E402
from confrere.study.cases import cases_of, whole_run  # noqa: E402
from confrere.study.contenders import Contender, contenders  # noqa: E402
from confrere.study.engine import Program  # noqa: E402
from confrere.study.runner import Settings, runs_of  # noqa: E402

TASK = TASKS["L"]
USERS, RATES, SEEDS = 4, 8, 10
REQUIRED, GOAL = 30, 100
FIXED = "Weight Erosion, all rows in every round (nothing drawn)"
RECIPES = {
    "FedSGD": cf.fedsgd(lr=0.1, batch=TASK.batch, weights="uniform"),
    "Weight Erosion": cf.weight_erosion(user=0, lr=0.1, batch=TASK.batch),
}


def section(quick: bool) -> str:
    """Two tables, measured in a process of their own with one device per core."""
    command = [sys.executable, str(Path(__file__).resolve()), *(["--quick"] if quick else [])]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout


def silos() -> cf.Silos:
    """The rows of task L for training, and one more row per silo for test, since a study wants some."""
    X, y = make_data(TASK)
    rows = [(np.concatenate([a, a[:1]]), np.concatenate([b, b[:1]])) for a, b in zip(X, y, strict=True)]
    made = cf.Silos.from_arrays(rows)
    part = np.zeros(TASK.rows + 1, np.int8)
    part[-1] = 2
    return made.with_parts([part] * TASK.silos)


def grid(recipe: cf.Recipe, shared: bool, rounds: int, seeds: int = SEEDS) -> tuple[Callable[[], object], Size]:
    """The study's own program for the whole grid, as a function to time, and the size of its blocks."""
    rates = np.geomspace(0.01, 1, RATES).tolist()
    (contender,) = contenders({"it": recipe}, {"lr": rates}, {}, rounds)
    settings = Settings(cf.models.logistic(), (), "log_loss", None, 5, "train", shared, int(1e9))
    given = silos()
    cases = [c for s in range(seeds) for c in cases_of(s, given, range(USERS), "train", settings.model, 5)]
    makers = [runs_of(settings, contender, case, whole_run, range(RATES)) for case in cases]
    devices = tuple(jax.local_devices())
    size = block_size(cases[0].shape, 1, RATES, 26, 2 * (rounds + 1), len(cases), settings.memory, len(devices))
    made = [make() for make in makers]
    filled = made + [made[-1]] * (-len(made) % (size.group * len(devices)))
    block = jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *filled))
    program = block_program(program_of(settings, contender, rounds), size.group, devices)
    return lambda: program(block), size


def program_of(settings: Settings, contender: Contender, rounds: int) -> Program:
    """The program without measurements."""
    return Program(contender.make, settings.model, (), rounds, contender.personal, settings.shared_batches)


def comparison(rounds: int, repeats: int) -> list[str]:
    """Microseconds per experiment and round, side by side."""
    ways = {
        f"{name}, {'batches shared within a seed' if shared else 'fresh batches'}": grid(recipe, shared, rounds)[0]
        for name, recipe in RECIPES.items()
        for shared in (False, True)
    }
    fixed = cf.weight_erosion(user=0, lr=0.1)
    ways[FIXED] = grid(fixed, False, rounds)[0]
    laps = laps_ms({"numpy loop, a single run": loop_run(TASK.name, rounds), **ways}, repeats)
    single = statistics.median(laps["numpy loop, a single run"]) * 1e3 / rounds
    lines = [
        "| what | μs per experiment and round | times cheaper | required | goal |",
        "|---|---|---|---|---|",
        f"| numpy loop, a single run | {single:.1f} | 1 | - | - |",
    ]
    experiments = USERS * RATES * SEEDS
    for name in ways:
        cost = statistics.median(laps[name]) * 1e3 / rounds / experiments
        ratio = statistics.median(
            a / b * experiments for a, b in zip(laps["numpy loop, a single run"], laps[name], strict=True)
        )
        required = verdict(ratio, REQUIRED) if "fresh" in name else "-"
        goal = verdict(ratio, GOAL) if "shared" in name else "-"
        lines.append(f"| {name} | {cost:.2f} | {ratio:.0f} | {required} | {goal} |")
    return lines


def verdict(ratio: float, target: float) -> str:
    """Whether a target was reached."""
    return f"{target}x, {'reached' if ratio >= target else '**missed**'}"


def growth(rounds: int, repeats: int) -> list[str]:
    """Time and memory against the number of experiments."""
    lines = ["| experiments | ms | μs per experiment and round | block, MB (estimate) | peak of the process, MB |",
             "|---|---|---|---|---|"]  # fmt: skip
    for seeds in (1, 3, 10, 30):
        run, size = grid(RECIPES["Weight Erosion"], False, rounds, seeds)
        ms = statistics.median(laps_ms({"run": run}, repeats)["run"])
        count = USERS * RATES * seeds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cost = f"{1e3 * ms / rounds / count:.2f}"
        lines.append(f"| {count} | {ms:.0f} | {cost} | {size.bytes / 1e6:.0f} | {peak:.0f} |")
    return lines


def main() -> None:
    """Print the section."""
    quick = "--quick" in sys.argv
    rounds, repeats = (20, 1) if quick else (TASK.rounds, 5)
    lines = [
        "## A grid in one program",
        "",
        f"{USERS} users x {RATES} learning rates x {SEEDS} seeds of task L, {rounds} rounds each, in the study's own "
        f"program on {len(jax.local_devices())} device(s), against the numpy loop's single run in the same process, in "
        f"turns; medians of {repeats}. Nothing is measured between rounds. With shared batches all learning rates of a "
        "user and seed draw the same batches: common random numbers, an option that is off by default. The last row "
        "shows where the time goes: without drawing, the models' own arithmetic and the rounds' records are left.",
        "",
        *comparison(rounds, repeats),
        "",
        "Weight Erosion with fresh batches, more and more seeds:",
        "",
        *growth(rounds, min(repeats, 3)),
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
