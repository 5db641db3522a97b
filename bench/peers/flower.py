"""Flower's simulation: its message API, its federated averaging, Ray with one actor per core.

The client computes with numpy, the cheapest that Flower can be given: the step of the plain numpy loop. A network is
trained with torch, one thread in each actor.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

os.environ["FLWR_HOME"] = str(Path(sys.prefix) / "flwr")  # not in the user's home
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import flwr
import numpy as np
import ray
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from tasks import SPEED, Lap, Task, arguments, make_data, mean_loss

from plain_loop import descend  # isort: skip (tasks says where it is)

Arrays = list[np.ndarray]
Data = Callable[[Task], tuple[np.ndarray, np.ndarray]]


def client_app(task: Task, data: Data) -> ClientApp:
    """A silo: trains from the model it receives and sends its own."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        x, y = data(task)
        silo = int(context.node_config["partition-id"])
        order = np.random.default_rng().permutation(task.rows)[: task.steps * task.batch]
        received = message.content["arrays"].to_numpy_ndarrays()
        trained = (train_network if task.network else train_softmax)(task, received, x[silo][order], y[silo][order])
        arrays, metrics = ArrayRecord(trained), MetricRecord({"num-examples": task.rows})
        return Message(content=RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    return app


def train_softmax(task: Task, received: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
    """The batches of one round, with numpy."""
    weights, bias = (array.copy() for array in received)
    target = np.eye(task.classes, dtype=np.float32)[y]
    for start in range(0, len(x), task.batch):
        batch = slice(start, start + task.batch)
        descend(weights, bias, x[batch], target[batch], task.lr)
    return [weights, bias]


def train_network(task: Task, received: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
    """The batches of one round, with torch."""
    import torch
    from torch_model import module

    torch.set_num_threads(1)
    net = module(task)
    with torch.no_grad():
        for parameter, array in zip(net.parameters(), received, strict=True):
            parameter.copy_(torch.from_numpy(array.copy()))
    optimizer = torch.optim.SGD(net.parameters(), lr=task.lr)
    rows, labels = torch.from_numpy(x).reshape(-1, 1, 28, 28), torch.from_numpy(y).long()
    for start in range(0, len(rows), task.batch):
        batch = slice(start, start + task.batch)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(rows[batch]), labels[batch]).backward()
        optimizer.step()
    return [parameter.detach().numpy() for parameter in net.parameters()]


def start_of(task: Task) -> Arrays:
    """The model that all begin from."""
    if task.network:
        from torch_model import module

        return [parameter.detach().numpy() for parameter in module(task).parameters()]
    return [np.zeros((task.features, task.classes), np.float32), np.zeros(task.classes, np.float32)]


def last_loss(task: Task, final: Arrays) -> float:
    """The loss of the last model."""
    if task.network:
        import torch
        from torch_model import torch_loss

        return torch_loss(task, [torch.from_numpy(array.copy()) for array in final])
    return mean_loss(task, *final)


class Timed(FedAvg):
    """Federated averaging that marks a lap after each round, and refuses a round that lacks a silo."""

    def __init__(self, task: Task, lap: Lap) -> None:
        # Flower counts the nodes before it waits for them: without `min_train_nodes` round 1 may have two.
        super().__init__(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=task.silos,
            min_available_nodes=task.silos,
        )
        self.silos, self.lap = task.silos, lap

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Check that every silo answered, take the mean, end the lap."""
        replies = list(replies)
        arrived = sum(not reply.has_error() for reply in replies)
        if arrived < self.silos:
            raise RuntimeError(f"round {server_round}: {arrived} of {self.silos} silos answered well")
        means = super().aggregate_train(server_round, replies)
        self.lap.mark()
        return means


def server_app(task: Task, rounds: int, lap: Lap, final: list[np.ndarray]) -> ServerApp:
    """The server: one warm-up round and `rounds` more; leaves the last model in `final`."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        del context
        begin = ArrayRecord(start_of(task))
        lap.mark()
        result = Timed(task, lap).start(grid=grid, initial_arrays=begin, num_rounds=rounds + 1)
        final.extend(result.arrays.to_numpy_ndarrays())

    return app


def main(name: str = "flower", data: Data = make_data) -> None:
    """Time Flower. `make_data` keeps its result in its module, so that each worker makes the data once."""
    given = arguments()
    # Ray's workers are processes of their own and must find the same modules.
    os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path[:2], SPEED])
    lap, final = Lap(), []
    run_simulation(
        server_app(given.task, given.rounds, lap, final),
        client_app(given.task, data),
        num_supernodes=given.task.silos,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0},
            "init_args": {"num_cpus": os.cpu_count(), "include_dashboard": False, "log_to_driver": False},
        },
    )
    version = f"flwr {flwr.__version__}, ray {ray.__version__}"
    if given.task.network:
        name, note = f"{name}_torch", "torch client, one thread in each worker"
    else:
        note = "numpy client"
    lap.report(name, given.task, version, loss=last_loss(given.task, final), note=note)


if __name__ == "__main__":
    main()
