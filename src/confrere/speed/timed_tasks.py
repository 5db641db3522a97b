"""The tasks that are timed, and their data. Needs numpy only.

All tasks are federated averaging, all silos taking part. In each round each silo shuffles its rows anew, without
replacement, and takes its batches from the front:

    L   4 silos of 330 rows, 12 features; one batch of 161 rows per round: the cost of a round's bookkeeping
    S   1000 silos of 100 rows, 20 features; one epoch of five batches of 20 per round: the cost of many silos
    C   10 silos of 1000 images of 28 x 28 pixels; 31 batches of 32 per round: the cost of a network

L and S train a two-class softmax regression with bias, started from zero; C trains LeNet-5 (`plain_network.py`).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Task(NamedTuple):
    """The sizes of a task. `rounds` is how many are timed unless something else is asked for."""

    name: str
    silos: int
    rows: int
    features: int
    classes: int
    batch: int
    steps: int
    rounds: int
    lr: float
    network: bool = False
    """Whether LeNet-5 is trained on images, in place of a softmax regression."""

    def in_words(self) -> str:
        """What a round is.

        >>> TASKS["L"].in_words()
        '4 silos, 330 rows of 12 features each; one batch of 161 per silo and round'
        """
        batches = "one batch" if self.steps == 1 else f"{self.steps} batches"
        kind = "images of 28 x 28 pixels" if self.network else f"rows of {self.features} features"
        rows = f"{self.silos} silos, {self.rows} {kind} each"
        return f"{rows}; {batches} of {self.batch} per silo and round{', LeNet-5' if self.network else ''}"


TASKS: dict[str, Task] = {
    "L": Task("L", silos=4, rows=330, features=12, classes=2, batch=161, steps=1, rounds=300, lr=0.1),
    "S": Task("S", silos=1000, rows=100, features=20, classes=2, batch=20, steps=5, rounds=20, lr=0.1),
    "C": Task("C", silos=10, rows=1000, features=784, classes=10, batch=32, steps=31, rounds=5, lr=0.05, network=True),
}


@lru_cache
def make_data(task: Task, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Rows x[silos, rows, features] and labels y[silos, rows]: one law for all the silos.

    A noisy linear law or, for a network, a picture of each class in noise.

    >>> x, y = make_data(TASKS["L"])
    >>> x.shape, y.shape
    ((4, 330, 12), (4, 330))
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((task.silos, task.rows, task.features), dtype=np.float32)
    if task.network:
        y = rng.integers(0, task.classes, x.shape[:2]).astype(np.int32)
        pictures = rng.standard_normal((task.classes, task.features), dtype=np.float32)
        return x + pictures[y], y
    law = rng.standard_normal(task.features, dtype=np.float32)
    noise = 0.5 * rng.standard_normal(x.shape[:2], dtype=np.float32)
    return x, (x @ law + noise > 0).astype(np.int32)


def mean_loss(task: Task, weights: NDArray[np.float32], bias: NDArray[np.float32]) -> float:
    """Cross-entropy of weights[features, classes] and bias[classes] over all rows: did a contestant train?

    >>> round(mean_loss(TASKS["L"], np.zeros((12, 2)), np.zeros(2)), 4)
    0.6931
    """
    x, y = make_data(task)
    scores = x.astype(np.float64) @ np.asarray(weights, np.float64) + np.asarray(bias, np.float64)
    chosen = np.take_along_axis(scores, y[..., None], axis=-1)[..., 0]
    return float(np.mean(np.logaddexp.reduce(scores, axis=-1) - chosen))
