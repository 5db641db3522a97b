"""Task C, a network: where the time of a round goes, how time grows with agents, and how much memory many of them take.

python bench/sections/network.py [--quick]         prints the section
python bench/sections/network.py --memory ROUNDS   trains 100 agents, and prints the most memory that it took
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(HERE))

import jax  # noqa: E402

if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, PartitionSpec  # noqa: E402

import confrere as cf  # noqa: E402
from confrere.data.fetch import DataNotFound  # noqa: E402
from confrere.models.convolution import in_pairs, largest  # noqa: E402
from confrere.speed.interleave import medians_ms  # noqa: E402
from confrere.speed.ours import recipe, start  # noqa: E402
from confrere.speed.plain_network import FLOP_PER_ROW, LARGE  # noqa: E402
from confrere.speed.timed_tasks import TASKS, Task, make_data  # noqa: E402

TASK = TASKS["C"]
AGENTS, AGENT_ROWS = (5, 10, 20, 40), 100
ROUNDS = 5  # of a run
SMALL = 120_000  # numbers of an array that may be copied every time, to make the next time depend on the last
MANY_AGENTS, MANY_ROWS, MOST_GB = 100, 600, 4.0

Shape = tuple[int, int, int]
# The matrix products of a batch of 32, [m, k] @ [k, n], forward and for the gradients. Those of the convolutions are of
# columns with the pixels under four places of a kernel, 6 x 6 of which 5 x 5 count for each place: the others are
# multiplied by 0, and are not counted as operations of the task.
PRODUCTS: dict[str, tuple[Shape, ...]] = {
    "first convolution": ((24, 36, 4608), (36, 4608, 24)),
    "second convolution": ((64, 216, 512), (216, 512, 64), (216, 64, 512)),
    "dense layers": tuple(
        shape for i, o in ((256, 120), (120, 84), (84, 10)) for shape in ((o, i, 32), (i, 32, o), (i, o, 32))
    ),
}


def section(quick: bool) -> str:
    """The tables, measured in a process of their own with one device per core."""
    command = [sys.executable, str(Path(__file__).resolve()), *(["--quick"] if quick else [])]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout


def profile(task: Task, repeats: int) -> list[str]:
    """A table: whole rounds, then their parts alone, with the operations that they get through."""
    whole = {
        f"`simulate`, {ROUNDS} rounds": ours(task, recipe(task)),
        f"`simulate`, {ROUNDS} rounds, batches in fixed order": ours(task, fixed_order(task)),
    }
    parts = whole | {
        f"{name}, alone": on_all_devices(work, array, steps_of(task))
        for name, (work, array) in pieces(task.batch).items()
    }
    flops = flops_of(task, list(parts))
    parts["one large matrix product"] = large_product(task)
    flops["one large matrix product"] = round_flops(task)
    found = {name: ms / ROUNDS if name in whole else ms for name, ms in medians_ms(parts, repeats).items()}
    first = next(iter(found.values()))
    lines = ["| part | ms per round | share | GFLOP/s |", "|---|---|---|---|"]
    for name, ms in found.items():
        speed = f"{flops[name] / ms / 1e6:.0f}" if name in flops else "-"
        lines.append(f"| {name} | {ms:.1f} | {ms / first:.0%} | {speed} |")
    return lines


def round_flops(task: Task) -> int:
    """The operations of a round's matrix products."""
    return task.silos * task.steps * task.batch * FLOP_PER_ROW


def flops_of(task: Task, parts: list[str]) -> dict[str, float]:
    """The operations of a round's matrix products, of those parts that have some."""
    products = {
        f"matrix products of the {name}, alone": steps_of(task) * len(jax.devices()) * operations(name)
        for name in PRODUCTS
    }
    whole = (name for name in parts if name.startswith(("`simulate`", "loss and gradient")))
    return products | dict.fromkeys(whole, round_flops(task))


def operations(layers: str) -> int:
    """The operations that the task asks of these layers for a batch of 32."""
    done = sum(2 * m * k * n for m, k, n in PRODUCTS[layers])
    return done * 25 // 36 if "convolution" in layers else done


def steps_of(task: Task) -> int:
    """The batches of a round that one device trains on."""
    return -(-task.silos * task.steps // len(jax.devices()))


def ours(task: Task, algorithm: cf.Recipe) -> Callable[[], Any]:
    """A run of `ROUNDS` rounds, from silos to the model."""
    silos, params = cf.Silos.from_arrays(zip(*make_data(task), strict=True)), start(task)
    model = cf.models.lenet5()
    return lambda: cf.simulate(algorithm, model, silos, ROUNDS, params=params, metrics=(), record=()).personal(0)


def fixed_order(task: Task) -> cf.Recipe:
    """The recipe without shuffles: consecutive rows."""
    return cf.fedavg(lr=task.lr, batch=task.batch, steps=task.steps, weights="uniform", order="cyclic")


def pieces(batch: int) -> dict[str, tuple[Callable[..., Any], Any]]:
    """Parts of a step on a batch: functions of a tree of arrays, and such a tree."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)  # noqa: E731
    rows = cf.Batch(normal(batch, 784), rng.integers(0, 10, batch).astype(np.int32), np.ones(batch, bool))
    loss, params = cf.models.lenet5().loss, start(TASK)
    pictures = normal(1, 28, 28, batch), normal(6, 12, 12, batch)
    sums = normal(4, 6, 12, 12, batch), normal(4, 16, 4, 4, batch)
    slope = jax.grad(lambda both: sum(jnp.square(largest(x)).sum() for x in both))
    products = {
        f"matrix products of the {name}": (
            lambda pairs: [a @ b for a, b in pairs],
            [(normal(m, k), normal(k, n)) for m, k, n in (with_rows(shape, batch) for shape in shapes)],
        )
        for name, shapes in PRODUCTS.items()
    }
    return {
        "loss and gradient of the batches": (lambda given: jax.value_and_grad(loss)(*given), (params, rows)),
        "loss of the batches": (lambda given: loss(*given), (params, rows)),
        **products,
        "columns under the kernels (im2col)": (lambda both: [columns(x) for x in both], pictures),
        "largest of four and its gradient": (slope, sums),
    }


def with_rows(shape: Shape, batch: int) -> Shape:
    """The sizes of a product for another batch than 32."""
    m, k, n = (size * batch // 32 if size in (4608, 512, 32) else size for size in shape)
    return m, k, n


def columns(x: jax.Array) -> jax.Array:
    """The pixels under every four places of a kernel of 5 x 5."""
    h, w = (x.shape[1] - 4) // 2, (x.shape[2] - 4) // 2
    pairs = in_pairs(x, h + 2, w + 2)
    return jnp.stack([pairs[:, :, :, i : i + h, j : j + w] for i in range(3) for j in range(3)])


def on_all_devices(work: Callable[..., Any], given: Any, times: int) -> Callable[[], Any]:
    """The same work on every device at once, so many times; each time waits for the last."""

    def again(given: Any) -> jax.Array:
        def body(_, before: jax.Array) -> jax.Array:
            nudged = jax.tree.map(lambda a: a + before if a.dtype == jnp.float32 and a.size <= SMALL else a, given)
            out = lax.optimization_barrier(work(lax.optimization_barrier(nudged)))
            return 1e-30 * sum(leaf.reshape(-1)[0] for leaf in jax.tree.leaves(out))

        return lax.fori_loop(0, times, body, jnp.float32(0))[None]

    mesh, same = Mesh(np.array(jax.devices()), ("device",)), PartitionSpec()
    out = PartitionSpec("device")
    spread = jax.shard_map(again, mesh=mesh, in_specs=same, out_specs=out, check_vma=False)
    return partial(jax.jit(spread), jax.tree.map(jnp.asarray, given))


def large_product(task: Task) -> Callable[[], Any]:
    """A matrix product of as many operations as a round, by numpy with all cores."""
    rng = np.random.default_rng(0)
    rows = task.silos * task.steps * task.batch
    left, right = (rng.standard_normal(size, dtype=np.float32) for size in ((rows, LARGE[0]), LARGE))
    out = np.empty((rows, LARGE[1]), np.float32)
    return lambda: np.matmul(left, right, out=out)


def growth(agents: tuple[int, ...], repeats: int) -> list[str]:
    """A table: one round of federated averaging with more and more agents."""
    runs: dict[str, Callable[[], Any]] = {}
    for count in agents:
        task = TASK._replace(silos=count, rows=AGENT_ROWS, steps=AGENT_ROWS // TASK.batch)
        runs[str(count)] = ours(task, recipe(task))
    found = {count: ms / ROUNDS for count, ms in medians_ms(runs, repeats).items()}
    lines = ["| agents | ms per round | ms per agent |", "|---|---|---|"]
    return lines + [f"| {count} | {ms:.1f} | {ms / int(count):.2f} |" for count, ms in found.items()]


def memory(rounds: int) -> list[str]:
    """What a process of its own says of its memory."""
    command = [sys.executable, str(Path(__file__).resolve()), "--memory", str(rounds)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout.splitlines()


def train_many(rounds: int) -> None:
    """Train on digits, measured after every round as by default, and print the most memory that the process held."""
    try:
        silos = cf.data.mnist("A", agents=MANY_AGENTS, rows=MANY_ROWS)
    except DataNotFound as error:
        print(f"Skipped: {str(error).splitlines()[0]}")
        return
    history = cf.simulate(cf.fedavg(lr=TASK.lr, batch=TASK.batch), cf.models.lenet5(), silos, rounds)
    peak = peak_gb()
    kept = f"at most {MOST_GB:g} GB: {'kept' if peak < MOST_GB else '**missed**'}"
    tests = sum(silos.sizes("test")) // MANY_AGENTS
    print(
        f"{MANY_AGENTS} agents with {MANY_ROWS} MNIST digits each (and {tests} for test), {rounds} rounds of one pass, "
        f"measured after every round: the process held {peak:.2f} GB at most ({kept}). Accuracy came to "
        f"{float(np.mean(history.metrics['accuracy'][-1])):.2f}."
    )


def peak_gb() -> float:
    """The most memory that this process has held, as the system counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e9


def main() -> None:
    """Print the section, or what the training of many agents took."""
    if "--memory" in sys.argv:
        train_many(int(sys.argv[-1]))
        return
    quick = "--quick" in sys.argv
    repeats = 1 if quick else 9
    task = TASK._replace(silos=2, rows=64, steps=2) if quick else TASK
    lines = [
        "## A network", "",
        f"Task C on {len(jax.devices())} device(s). Shares are of the first line, where a call of `simulate` is shared "
        "out over its rounds; the parts alone are bare programs that do on all devices at once what a round does so "
        "often, and do not add up: in the whole they are fused, and share the cache. The operations are "
        "those of the matrix products, whatever else a part does.", "",
        *profile(task, repeats), "",
        f"A round, of {ROUNDS}, with more and more agents, {AGENT_ROWS} images each, {AGENT_ROWS // TASK.batch} "
        f"batches of {TASK.batch}. Agents that cannot be shared out evenly are trained on one device, "
        "the others on all of them.", "",
        *growth(AGENTS[:2] if quick else AGENTS, repeats), "",
        *memory(1 if quick else 3),
    ]  # fmt: skip
    print("\n".join(lines))


if __name__ == "__main__":
    main()
