"""torch.func.vmap over the silos: the fastest that torch offers for many small models without a compiler."""

import sys
from pathlib import Path

import torch
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy
from torch_threads import settle_threads

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, Task, arguments, make_data, mean_loss

Model = tuple[torch.Tensor, torch.Tensor]


def batch_loss(model: Model, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of one silo's batch."""
    weights, bias = model
    return cross_entropy(x @ weights + bias, y)


class Averaging:
    """The server's model, and one round of it."""

    def __init__(self, task: Task) -> None:
        x, y = make_data(task)
        self.task = task
        self.x, self.y = torch.from_numpy(x), torch.from_numpy(y).long()
        self.server: Model = (torch.zeros(task.features, task.classes), torch.zeros(task.classes))
        self.gradients = vmap(grad(batch_loss))
        self.silo = torch.arange(task.silos)[:, None]

    def round(self) -> None:
        """All silos take each step together; the server takes the mean."""
        task = self.task
        used = task.steps * task.batch
        weights, bias = (p.expand(task.silos, *p.shape) for p in self.server)
        # The rank of random numbers is a shuffle of its own for each silo.
        order = torch.argsort(torch.rand(task.silos, task.rows), dim=1)[:, :used]
        x, y = self.x[self.silo, order], self.y[self.silo, order]
        for start in range(0, used, task.batch):
            batch = slice(start, start + task.batch)
            d_weights, d_bias = self.gradients((weights, bias), x[:, batch], y[:, batch])
            weights, bias = weights - task.lr * d_weights, bias - task.lr * d_bias
        self.server = (weights.mean(0), bias.mean(0))


def main() -> None:
    """Time the batched program."""
    given = arguments(threads=True)
    threads = settle_threads(given.threads, lambda: Averaging(given.task).round)
    averaging = Averaging(given.task)
    lap = Lap(not_counted=threads.seconds).drive(averaging.round, given.rounds)
    weights, bias = (p.numpy() for p in averaging.server)
    loss = mean_loss(given.task, weights, bias)
    lap.report("torch_vmap", given.task, f"torch {torch.__version__}", loss=loss, note=threads.note)


if __name__ == "__main__":
    main()
