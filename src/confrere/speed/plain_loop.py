"""A plain numpy loop over silos and batches: what a careful researcher writes in an afternoon. Needs numpy only."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def descend(weights: Array, bias: Array, x: Array, target: Array, lr: float) -> None:
    """One step of descent on a batch's mean cross-entropy, in place; target[rows, classes] is one-hot.

    >>> weights, bias = np.zeros((1, 2), np.float32), np.zeros(2, np.float32)
    >>> descend(weights, bias, np.ones((1, 1), np.float32), np.eye(2, dtype=np.float32)[:1], lr=1.0)
    >>> weights.tolist(), bias.tolist()
    ([[0.5, -0.5]], [0.5, -0.5])
    """
    scores = x @ weights
    scores += bias
    scores -= scores.max(axis=1, keepdims=True)
    residual = np.exp(scores, out=scores)
    residual /= residual.sum(axis=1, keepdims=True)
    residual -= target
    residual *= lr / len(x)
    weights -= x.T @ residual
    bias -= residual.sum(axis=0)


class Averaging:
    """The server's model, and one round of it. `task` says the sizes; x[silos, rows, features], y[silos, rows]."""

    def __init__(self, task: Any, x: Array, y: NDArray[np.int32]) -> None:
        self.task = task
        self.x = x
        self.target = np.eye(task.classes, dtype=np.float32)[y]
        self.rng = np.random.default_rng(1)
        self.weights = np.zeros((task.features, task.classes), np.float32)
        self.bias = np.zeros(task.classes, np.float32)

    @property
    def params(self) -> dict[str, Array]:
        """The model, by confrere's names."""
        return {"w": self.weights, "b": self.bias}

    def round(self) -> None:
        """Every silo trains from the server's model; the server takes the mean."""
        task = self.task
        sum_weights, sum_bias = np.zeros_like(self.weights), np.zeros_like(self.bias)
        used = task.steps * task.batch
        for i in range(task.silos):
            weights, bias = self.weights.copy(), self.bias.copy()
            order = self.rng.permutation(task.rows)[:used]
            x, target = self.x[i][order], self.target[i][order]
            for start in range(0, used, task.batch):
                batch = slice(start, start + task.batch)
                descend(weights, bias, x[batch], target[batch], task.lr)
            sum_weights += weights
            sum_bias += bias
        self.weights, self.bias = sum_weights / task.silos, sum_bias / task.silos
