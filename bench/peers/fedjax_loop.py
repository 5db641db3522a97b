"""FedJAX's own federated averaging, with its default (jit) backend and a haiku linear layer, or LeNet-5."""

import sys
from importlib import metadata
from pathlib import Path

import fedjax
import haiku
import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, Task, arguments, loss_of, make_data

from plain_network import SHAPES, start  # isort: skip (tasks says where it is)

LAYERS = dict(zip(("conv2_d", "conv2_d_1", "linear", "linear_1", "linear_2"), SHAPES, strict=True))


def lenet5(x: jax.Array) -> jax.Array:
    """The network, in haiku's layers."""
    smaller = haiku.MaxPool((2, 2, 1), (2, 2, 1), "VALID")
    return haiku.Sequential([
        haiku.Reshape((28, 28, 1)),
        haiku.Conv2D(6, 5, padding="VALID"), jax.nn.relu, smaller, haiku.Conv2D(16, 5, padding="VALID"), jax.nn.relu,
        smaller, haiku.Flatten(), haiku.Linear(120), jax.nn.relu, haiku.Linear(84), jax.nn.relu, haiku.Linear(10),
    ])(x)  # fmt: skip


def flattened(weights: np.ndarray, channels_last: bool) -> np.ndarray:
    """The first dense layer's weights with its inputs in haiku's order, channels last, or back in ours."""
    if channels_last:
        return weights.reshape(16, 4, 4, -1).transpose(1, 2, 0, 3).reshape(256, -1)
    return weights.reshape(4, 4, 16, -1).transpose(2, 0, 1, 3).reshape(256, -1)


def start_of_network() -> haiku.Params:
    """The network that all begin from, with haiku's names."""
    ours = start()
    ours["dense1"]["w"] = flattened(ours["dense1"]["w"], channels_last=True)
    return jax.tree_util.tree_map(jnp.asarray, {theirs: ours[name] for theirs, name in LAYERS.items()})


def last_loss(task: Task, params: haiku.Params) -> float:
    """The loss of the last model, by our names."""
    found = jax.device_get(params)
    if not task.network:
        (layer,) = found.values()
        return loss_of(task, layer)
    ours = {name: dict(found[theirs]) for theirs, name in LAYERS.items()}
    ours["dense1"]["w"] = flattened(ours["dense1"]["w"], channels_last=False)
    return loss_of(task, ours)


def build(task: Task) -> tuple[fedjax.FederatedAlgorithm, haiku.Params]:
    """The algorithm and the model that all begin from."""
    forward = lenet5 if task.network else lambda x: haiku.Linear(task.classes, w_init=jnp.zeros)(x)
    model = haiku.without_apply_rng(haiku.transform(forward))

    def loss(params: haiku.Params, batch: dict[str, jax.Array], rng: jax.Array) -> jax.Array:
        del rng
        log_p = jax.nn.log_softmax(model.apply(params, batch["x"]))
        return -jnp.take_along_axis(log_p, batch["y"][:, None], axis=1).mean()

    # `num_steps` ends the epoch after the task's batches, so that task L draws 161 of all its 330 rows; with
    # `drop_remainder` alone it would take two batches. Without a seed, each round shuffles anew.
    batches = fedjax.ShuffleRepeatBatchHParams(
        batch_size=task.batch, num_epochs=1, num_steps=task.steps, drop_remainder=True
    )
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(loss), fedjax.optimizers.sgd(task.lr), fedjax.optimizers.sgd(1.0), batches
    )
    if task.network:
        return algorithm, start_of_network()
    return algorithm, model.init(jax.random.PRNGKey(0), jnp.zeros((1, task.features)))


class Averaging:
    """The server's state, and one round of it."""

    def __init__(self, task: Task) -> None:
        x, y = make_data(task)
        self.algorithm, params = build(task)
        self.state = self.algorithm.init(params)
        self.key = jax.random.PRNGKey(1)
        silos = [fedjax.ClientDataset({"x": rows, "y": labels}) for rows, labels in zip(x, y, strict=True)]
        self.silos = [(str(i).encode(), silo) for i, silo in enumerate(silos)]

    def round(self) -> None:
        """One call of the algorithm on all the silos, waited for."""
        self.key, *keys = jax.random.split(self.key, len(self.silos) + 1)
        clients = [(name, data, key) for (name, data), key in zip(self.silos, keys, strict=True)]
        self.state, _ = self.algorithm.apply(self.state, clients)
        jax.block_until_ready(self.state.params)


def main() -> None:
    """Time FedJAX."""
    given = arguments()
    averaging = Averaging(given.task)
    lap = Lap().drive(averaging.round, given.rounds)
    version = f"fedjax {metadata.version('fedjax')}, jax {jax.__version__}"
    lap.report("fedjax_loop", given.task, version, loss=last_loss(given.task, averaging.state.params))


if __name__ == "__main__":
    main()
