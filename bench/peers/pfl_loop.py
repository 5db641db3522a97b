"""Apple's pfl: its simulated backend and federated averaging on a torch model.

One torch thread for softmax regression, whose operations are too small to share (`torch_loop.py` is hardly faster with
two). For a network as many as are best in `torch_loop.py`, whose operations are the same.
"""

import sys
from pathlib import Path

import pfl
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data import FederatedDataset
from pfl.data.dataset import Dataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch.nn.functional import cross_entropy
from torch_loop import Averaging
from torch_model import data, module, torch_loss
from torch_threads import Choice, settle_threads

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Lap, Task, arguments

NEVER = 10**9


class Scored(torch.nn.Module):
    """The task's model, with the loss and the metrics that pfl asks of a model."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.model = module(task)

    def loss(self, x: torch.Tensor, y: torch.Tensor, eval: bool = False) -> torch.Tensor:
        """Mean cross-entropy of a batch."""
        return cross_entropy(self.model(x), y)

    @torch.no_grad()
    def metrics(self, x: torch.Tensor, y: torch.Tensor, eval: bool = False) -> dict[str, Weighted]:
        """The loss once more: pfl evaluates in the first round, which is the warm-up."""
        return {"loss": Weighted(float(cross_entropy(self.model(x), y, reduction="sum")), len(y))}


class Timer(TrainingProcessCallback):
    """Marks a lap after every round."""

    def __init__(self, lap: Lap) -> None:
        self.lap = lap

    def on_train_begin(self, *, model: PyTorchModel) -> Metrics:
        """Start the first lap."""
        self.lap.mark()
        return Metrics()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """End a lap; do not stop."""
        self.lap.mark()
        return False, Metrics()


def silos_of(task: Task) -> FederatedDataset:
    """The silos as pfl's users. pfl keeps the order of the rows, so they are shuffled each time it asks."""
    rows, labels = data(task)
    generator = torch.Generator().manual_seed(1)
    used = task.steps * task.batch

    def shuffled(silo: int) -> Dataset:
        order = torch.randperm(task.rows, generator=generator)[:used]
        return Dataset(raw_data=[rows[silo][order], labels[silo][order]])

    return FederatedDataset(shuffled, get_user_sampler("minimize_reuse", list(range(task.silos))))


def train(task: Task, rounds: int, lap: Lap) -> Scored:
    """One warm-up round and `rounds` more."""
    net = Scored(task)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds + 1,
            evaluation_frequency=NEVER,
            train_cohort_size=task.silos,
            val_cohort_size=None,
        ),
        backend=SimulatedBackend(training_data=silos_of(task), val_data=None),
        model=PyTorchModel(
            net,
            local_optimizer_create=torch.optim.SGD,
            central_optimizer=torch.optim.SGD(net.parameters(), 1.0),
        ),
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=task.lr, local_batch_size=task.batch
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[Timer(lap)],
        send_metrics_to_platform=False,
    )
    return net


def main() -> None:
    """Time pfl."""
    given = arguments()
    threads = Choice("threads: 1")
    if given.task.network:
        threads = settle_threads(None, lambda: Averaging(given.task).round)
    else:
        torch.set_num_threads(1)
    lap = Lap(not_counted=threads.seconds)
    net = train(given.task, given.rounds, lap)
    version = f"pfl {pfl.__version__}, torch {torch.__version__}"
    loss = torch_loss(given.task, list(net.parameters()))
    lap.report("pfl_loop", given.task, version, loss=loss, note=threads.note)


if __name__ == "__main__":
    main()
