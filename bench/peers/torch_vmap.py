"""torch.func.vmap over the silos: the fastest that torch offers for many small models without a compiler."""

import sys
from pathlib import Path

import torch
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy
from torch_model import data, scores, start_of, torch_loss
from torch_threads import settle_threads

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, Task, arguments


def batch_loss(model: list[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of one silo's batch."""
    return cross_entropy(scores(model, x), y)


class Averaging:
    """The server's model, and one round of it."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.x, self.y = data(task)
        self.server = start_of(task)
        self.gradients = vmap(grad(batch_loss))
        self.silo = torch.arange(task.silos)[:, None]

    def round(self) -> None:
        """All silos take each step together; the server takes the mean."""
        task = self.task
        used = task.steps * task.batch
        models = [p.expand(task.silos, *p.shape) for p in self.server]
        # The rank of random numbers is a shuffle of its own for each silo.
        order = torch.argsort(torch.rand(task.silos, task.rows), dim=1)[:, :used]
        x, y = self.x[self.silo, order], self.y[self.silo, order]
        for start in range(0, used, task.batch):
            batch = slice(start, start + task.batch)
            slopes = self.gradients(models, x[:, batch], y[:, batch])
            models = [p - task.lr * slope for p, slope in zip(models, slopes, strict=True)]
        self.server = [p.mean(0) for p in models]


def main() -> None:
    """Time the batched program."""
    given = arguments(threads=True)
    threads = settle_threads(given.threads, lambda: Averaging(given.task).round)
    averaging = Averaging(given.task)
    lap = Lap(not_counted=threads.seconds).drive(averaging.round, given.rounds)
    loss = torch_loss(given.task, averaging.server)
    lap.report("torch_vmap", given.task, f"torch {torch.__version__}", loss=loss, note=threads.note)


if __name__ == "__main__":
    main()
