"""The sketch of task C: LeNet-5 as a bare JAX program, silo after silo on every device, a call for every round."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tasks import Task, make_data

from plain_network import start  # isort: skip (tasks says where it is)


def conv(x: jax.Array, w: jax.Array) -> jax.Array:
    """x [c, h, w, b] and the kernel [k, k, c, d] -> [d, h', w', b]: the columns under the kernel, and one product."""
    k, _, c, d = w.shape
    h, width = x.shape[1] - k + 1, x.shape[2] - k + 1
    columns = jnp.stack([x[:, i : i + h, j : j + width] for i in range(k) for j in range(k)])
    return (w.reshape(k * k * c, d).T @ columns.reshape(k * k * c, -1)).reshape(d, h, width, -1)


def pool(x: jax.Array) -> jax.Array:
    """The largest of every 2 x 2 pixels."""
    c, h, w, b = x.shape
    return x.reshape(c, h // 2, 2, w // 2, 2, b).max((2, 4))


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    """Mean cross-entropy of a batch."""
    x = x.reshape(-1, 28, 28, 1).transpose(3, 1, 2, 0)
    for name in ("conv1", "conv2"):
        x = pool(jax.nn.relu(conv(x, params[name]["w"]) + params[name]["b"][:, None, None, None]))
    x = x.reshape(256, -1)
    for name in ("dense1", "dense2", "dense3"):
        x = params[name]["w"].T @ x + params[name]["b"][:, None]
        x = x if name == "dense3" else jax.nn.relu(x)
    return -jnp.take_along_axis(jax.nn.log_softmax(x.T), y[:, None], 1).mean()


def network(task: Task, rounds: int) -> Callable[[], Any]:
    """Task C: the rounds as a function to time."""

    def train(params: Any, x: jax.Array, y: jax.Array, key: jax.Array) -> Any:
        def step(params: Any, batch: jax.Array) -> tuple[Any, None]:
            slope = jax.grad(loss)(params, x[batch], y[batch])
            return jax.tree.map(lambda a, g: a - task.lr * g, params, slope), None

        order = jax.random.permutation(key, task.rows)[: task.steps * task.batch]
        return lax.scan(step, params, order.reshape(task.steps, task.batch))[0]

    def play_round(params: Any, x: jax.Array, y: jax.Array, keys: jax.Array) -> Any:
        trained = lax.map(lambda silo: train(params, *silo), (x, y, keys))
        return jax.tree.map(lambda a: lax.pmean(a.mean(0), "device"), trained)

    devices = len(jax.devices()) if task.silos % len(jax.devices()) == 0 else 1
    mesh = Mesh(np.array(jax.devices()[:devices]), ("device",))
    shard, whole = PartitionSpec("device"), PartitionSpec()
    given = (whole, shard, shard, shard)
    one_round = jax.jit(jax.shard_map(play_round, mesh=mesh, in_specs=given, out_specs=whole, check_vma=False))
    place = lambda tree, spec: jax.device_put(tree, NamedSharding(mesh, spec))  # noqa: E731
    x, y = (place(array, shard) for array in make_data(task))
    first, key = place(start(), whole), jax.random.key(0)
    keys = [place(jax.random.split(jax.random.fold_in(key, r), task.silos), shard) for r in range(rounds)]

    def run() -> Any:
        params = first
        for of_round in keys:
            params = one_round(params, x, y, of_round)
        return params

    return run
