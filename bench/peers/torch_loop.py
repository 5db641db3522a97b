"""A plain torch loop over silos and batches: one module, one optimiser, the server's model copied in."""

import sys
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch_model import data, module, torch_loss
from torch_threads import settle_threads

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, Task, arguments


class Averaging:
    """The server's model, and one round of it."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.x, self.y = data(task)
        self.model = module(task)
        self.server = [p.detach().clone() for p in self.model.parameters()]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=task.lr)

    def round(self) -> None:
        """Every silo trains from the server's model; the server takes the mean."""
        task = self.task
        local = list(self.model.parameters())
        total = [torch.zeros_like(p) for p in self.server]
        for x, y in zip(self.x, self.y, strict=True):
            with torch.no_grad():
                for p, q in zip(local, self.server, strict=True):
                    p.copy_(q)
            order = torch.randperm(task.rows)
            for start in range(0, task.steps * task.batch, task.batch):
                batch = order[start : start + task.batch]
                self.optimizer.zero_grad()
                cross_entropy(self.model(x[batch]), y[batch]).backward()
                self.optimizer.step()
            with torch.no_grad():
                for p, q in zip(total, local, strict=True):
                    p += q
        self.server = [p / task.silos for p in total]


def main() -> None:
    """Time the loop."""
    given = arguments(threads=True)
    threads = settle_threads(given.threads, lambda: Averaging(given.task).round)
    averaging = Averaging(given.task)
    lap = Lap(not_counted=threads.seconds).drive(averaging.round, given.rounds)
    loss = torch_loss(given.task, averaging.server)
    lap.report("torch_loop", given.task, f"torch {torch.__version__}", loss=loss, note=threads.note)


if __name__ == "__main__":
    main()
