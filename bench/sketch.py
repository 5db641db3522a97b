"""The sketch that this library grew from: the tasks as bare JAX programs, with no contract, mask or record.

Its ratios to the peers are the least that the library has to reach, so it runs beside them. On task S the silos are
on one device or on all of them, whichever is faster. Task C is in `sketch_network.py`.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from sketch_network import network
from tasks import Lap, Task, arguments, loss_of, make_data

jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

LAPS = {"C": 5}
TRIALS = 3

Run = Callable[[], Any]


def shuffles(key: jax.Array, silos: int, rows: int) -> jax.Array:
    """A shuffle of each silo's rows: random words that carry the row in their low bits, sorted."""
    low = jnp.uint32((1 << (rows - 1).bit_length()) - 1)
    words = (jax.random.bits(key, (silos, rows)) & ~low) | jnp.arange(rows, dtype=jnp.uint32)
    return (jnp.sort(words, axis=1) & low).astype(jnp.int32)


def one_batch(task: Task, rounds: int) -> Run:
    """Task L: a softmax regression, one batch of each silo in a round."""
    x, y = (jnp.asarray(array) for array in make_data(task))
    targets = jax.nn.one_hot(y, task.classes)

    def step(model: Any, x: jax.Array, target: jax.Array, order: jax.Array) -> Any:
        weights, bias = model
        error = (jax.nn.softmax(x[order] @ weights + bias) - target[order]) / task.batch
        return weights - task.lr * (x[order].T @ error), bias - task.lr * error.sum(0)

    @jax.jit
    def run(x: jax.Array, targets: jax.Array, keys: jax.Array) -> Any:
        def play_round(model: Any, key: jax.Array) -> tuple[Any, None]:
            order = shuffles(key, task.silos, task.rows)[:, : task.batch]
            models = jax.vmap(step, in_axes=(None, 0, 0, 0))(model, x, targets, order)
            return jax.tree.map(lambda leaf: leaf.mean(0), models), None

        start = jnp.zeros((task.features, task.classes)), jnp.zeros(task.classes)
        return lax.scan(play_round, start, keys)[0]

    return partial(run, x, targets, jax.random.split(jax.random.key(0), rounds))


def many_silos(task: Task, rounds: int, devices: int) -> Run:
    """Task S: two classes as one sigmoid; features, the constant and the label in one row, so that one gather does."""
    x, y = make_data(task)
    rows = jnp.asarray(np.concatenate([x, np.ones_like(x[..., :1]), y[..., None].astype(np.float32)], axis=-1))

    def train(weights: jax.Array, rows: jax.Array, order: jax.Array) -> jax.Array:
        def step(weights: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            x, label = rows[batch][:, :-1], rows[batch][:, -1]
            error = (jax.nn.sigmoid((x * weights).sum(1)) - label) / task.batch
            return weights - 2 * task.lr * (x * error[:, None]).sum(0), None

        return lax.scan(step, weights, order.reshape(task.steps, task.batch))[0]

    def run(rows: jax.Array, keys: jax.Array) -> jax.Array:
        def play_round(weights: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            order = shuffles(jax.random.fold_in(key, lax.axis_index("device")), task.silos // devices, task.rows)
            mean = jax.vmap(train, in_axes=(None, 0, 0))(weights, rows, order).mean(0)
            return lax.pmean(mean, "device"), None

        return lax.scan(play_round, jnp.zeros(task.features + 1), keys)[0]

    mesh, shard = Mesh(np.array(jax.devices()[:devices]), ("device",)), PartitionSpec("device")
    whole = PartitionSpec()
    sharded = jax.shard_map(run, mesh=mesh, in_specs=(shard, whole), out_specs=whole, check_vma=False)
    return partial(jax.jit(sharded), rows, jax.random.split(jax.random.key(0), rounds))


def named(model: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights and bias by confrere's names."""
    return {"w": model[0], "b": model[1]}


def two_classes(weights: np.ndarray) -> dict[str, np.ndarray]:
    """The sigmoid's weights as a softmax's: half of them for one class, the opposite for the other."""
    half = np.stack([-weights, weights], axis=-1) / 2
    return named((half[:-1], half[-1]))


def seconds(run: Run) -> float:
    """The fastest of a few calls, after one to compile."""
    jax.block_until_ready(run())
    times = []
    for _ in range(TRIALS):
        began = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Time the sketch."""
    given = arguments()
    note = ""
    if given.task.network:
        run, model = network(given.task, given.rounds), dict
    elif given.task.steps == 1:
        run, model = one_batch(given.task, given.rounds), named
    else:
        counts = sorted({1, len(jax.devices())})
        runs = {count: many_silos(given.task, given.rounds, count) for count in counts}
        best = min(counts, key=lambda count: seconds(runs[count]))
        run, model = runs[best], two_classes
        note = f"devices: {best}, the fastest of {counts}; the choice is within the first round"
    last: list[Any] = []

    def play() -> None:
        last[:] = [jax.block_until_ready(run())]

    lap = Lap().drive(play, LAPS.get(given.task.name, 15))
    loss = loss_of(given.task, model(jax.device_get(last[0])))
    lap.report("sketch", given.task, f"jax {jax.__version__}", rounds_per_lap=given.rounds, loss=loss, note=note)


if __name__ == "__main__":
    main()
