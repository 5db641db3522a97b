"""FedJAX's own federated averaging, with its default (jit) backend and a haiku linear layer."""

import sys
from importlib import metadata
from pathlib import Path

import fedjax
import haiku
import jax
import jax.numpy as jnp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, Task, arguments, make_data, mean_loss


def build(task: Task) -> tuple[fedjax.FederatedAlgorithm, haiku.Params]:
    """The algorithm and the model at zero."""
    forward = haiku.transform(lambda x: haiku.Linear(task.classes, w_init=jnp.zeros)(x))
    layer = haiku.without_apply_rng(forward)

    def loss(params: haiku.Params, batch: dict[str, jax.Array], rng: jax.Array) -> jax.Array:
        del rng
        log_p = jax.nn.log_softmax(layer.apply(params, batch["x"]))
        return -jnp.take_along_axis(log_p, batch["y"][:, None], axis=1).mean()

    # `num_steps` ends the epoch after the task's batches, so that task L draws 161 of all its 330 rows; with
    # `drop_remainder` alone it would take two batches. Without a seed, each round shuffles anew.
    batches = fedjax.ShuffleRepeatBatchHParams(
        batch_size=task.batch, num_epochs=1, num_steps=task.steps, drop_remainder=True
    )
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(loss), fedjax.optimizers.sgd(task.lr), fedjax.optimizers.sgd(1.0), batches
    )
    return algorithm, layer.init(jax.random.PRNGKey(0), jnp.zeros((1, task.features)))


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
    (layer,) = averaging.state.params.values()
    version = f"fedjax {metadata.version('fedjax')}, jax {jax.__version__}"
    lap.report("fedjax_loop", given.task, version, loss=mean_loss(given.task, layer["w"], layer["b"]))


if __name__ == "__main__":
    main()
