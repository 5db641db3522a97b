"""LeNet-5 as a plain numpy loop, with the gradient written out. Needs numpy only.

Pictures are [channels, height, width, rows], a convolution is one matrix product. The parameters have confrere's names
and shapes: kernels [5, 5, inputs, outputs], weights [inputs, outputs], the first dense layer's inputs in the order
channel, row of the picture, column.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Params = dict[str, dict[str, Array]]

SHAPES: dict[str, tuple[int, ...]] = {
    "conv1": (5, 5, 1, 6),
    "conv2": (5, 5, 6, 16),
    "dense1": (256, 120),
    "dense2": (120, 84),
    "dense3": (84, 10),
}
FLOP_PER_ROW = 1_517_040  # of the matrix products: forward, and the gradients of all but the pictures
LARGE = (860, 882)  # one matrix product of as many operations: rows x 860 by 860 x 882
PIECE = 500  # rows whose loss is found at a time


def start(seed: int = 0) -> Params:
    """The network that all begin from: uniform between -1/sqrt(fan-in) and 1/sqrt(fan-in).

    >>> sum(array.size for layer in start().values() for array in layer.values())
    44426
    """
    rng = np.random.default_rng(seed)

    def layer(shape: tuple[int, ...]) -> dict[str, Array]:
        bound = 1 / np.sqrt(np.prod(shape[:-1]))
        return {
            name: rng.uniform(-bound, bound, size).astype(np.float32) for name, size in (("w", shape), ("b", shape[-1]))
        }

    return {name: layer(shape) for name, shape in SHAPES.items()}


def columns(x: Array) -> Array:
    """The pixels under each place of a kernel of 5 x 5: x [c, h, w, b] -> [25 c, (h - 4) (w - 4) b]."""
    c, h, w, _ = x.shape
    shifted = [x[:, i : i + h - 4, j : j + w - 4] for i in range(5) for j in range(5)]
    return np.stack(shifted).reshape(25 * c, -1)


def back_to_pixels(d_columns: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of pixels [c, h, w, b] from that of their columns: a sum of shifted pictures."""
    c, h, w, b = shape
    d_x = np.zeros(shape, np.float32)
    pieces = d_columns.reshape(25, c, h - 4, w - 4, b)
    for place, piece in enumerate(pieces):
        i, j = divmod(place, 5)
        d_x[:, i : i + h - 4, j : j + w - 4] += piece
    return d_x


def convolve(layer: dict[str, Array], x: Array) -> tuple[Array, tuple[Array, Array]]:
    """Convolution, maximum of 2 x 2, bias, ReLU; and what the gradient needs: the columns, and where a maximum was."""
    outputs, size = layer["w"].shape[-1], x.shape[1] - 4
    seen = columns(x)
    pairs = (layer["w"].reshape(-1, outputs).T @ seen).reshape(outputs, size // 2, 2, size // 2, 2, -1)
    upper, lower = (np.maximum(pairs[:, :, i, :, 0], pairs[:, :, i, :, 1]) for i in (0, 1))
    best = np.maximum(upper, lower)
    out = np.maximum(best + layer["b"][:, None, None, None], 0)
    return out, (seen, (pairs == best[:, :, None, :, None]) & (out > 0)[:, :, None, :, None])


def convolve_back(layer: dict[str, Array], kept: tuple[Array, Array], d_out: Array) -> tuple[dict[str, Array], Array]:
    """The gradients of kernel and bias, and those of the convolution's outputs [outputs, places]."""
    seen, chosen = kept
    outputs = len(d_out)
    d_sum: Array = np.where(chosen, d_out[:, :, None, :, None], np.float32(0)).reshape(outputs, -1)
    return {"w": (seen @ d_sum.T).reshape(layer["w"].shape), "b": d_sum.sum(axis=1)}, d_sum


def scores(params: Params, rows: Array) -> tuple[Any, list[Any]]:
    """The scores [classes, b] of rows [b, 784], and what the gradient needs, layer by layer."""
    x = np.ascontiguousarray(rows.T).reshape(1, 28, 28, -1)
    kept: list[Any] = []
    for name in ("conv1", "conv2"):
        x, seen = convolve(params[name], x)
        kept.append(seen)
    x = x.reshape(256, -1)
    for name in ("dense1", "dense2", "dense3"):
        kept.append(x)
        x = params[name]["w"].T @ x + params[name]["b"][:, None]
        x = x if name == "dense3" else np.maximum(x, 0)
    return x, kept


def gradient(params: Params, rows: Array, y: NDArray[np.int32]) -> Params:
    """The gradient of the batch's mean cross-entropy."""
    d_x, kept = scores(params, rows)
    d_x -= d_x.max(axis=0)
    np.exp(d_x, out=d_x)
    d_x /= d_x.sum(axis=0)
    d_x[y, np.arange(len(y))] -= 1
    d_x /= len(y)
    found: Params = {}
    for name, x in zip(("dense3", "dense2", "dense1"), kept[:1:-1], strict=True):
        found[name] = {"w": x @ d_x.T, "b": d_x.sum(axis=1)}
        d_x = (params[name]["w"] @ d_x) * (x > 0)
    found["conv2"], d_sum = convolve_back(params["conv2"], kept[1], d_x.reshape(16, 4, 4, -1))
    d_x = back_to_pixels(params["conv2"]["w"].reshape(-1, 16) @ d_sum, (6, 12, 12, len(y)))
    found["conv1"], _ = convolve_back(params["conv1"], kept[0], d_x)
    return found


def network_loss(params: Any, x: Array, y: NDArray[np.int32]) -> float:
    """Cross-entropy over all rows x[silos, rows, 784], y[silos, rows]: did a contestant train?

    >>> zero = {name: {"w": 0 * layer["w"], "b": 0 * layer["b"]} for name, layer in start().items()}
    >>> round(network_loss(zero, np.ones((1, 2, 784), np.float32), np.zeros((1, 2), np.int32)), 4)
    2.3026
    """
    params = {name: {part: np.asarray(array) for part, array in layer.items()} for name, layer in params.items()}
    rows, labels = x.reshape(-1, x.shape[-1]), y.reshape(-1)
    total = 0.0
    for first in range(0, len(rows), PIECE):
        found, label = scores(params, rows[first : first + PIECE])[0], labels[first : first + PIECE]
        total += float((np.logaddexp.reduce(found, axis=0) - found[label, np.arange(len(label))]).sum())
    return total / len(rows)


class NetworkAveraging:
    """The server's network, and one round of it. `task` says the sizes; x[silos, rows, 784], y[silos, rows]."""

    def __init__(self, task: Any, x: Array, y: NDArray[np.int32]) -> None:
        self.task, self.x, self.y = task, x, y
        self.rng = np.random.default_rng(1)
        self.params = start()

    def round(self) -> None:
        """Every silo trains from the server's network; the server takes the mean."""
        task, server = self.task, self.params
        total = {name: {part: np.zeros_like(a) for part, a in layer.items()} for name, layer in server.items()}
        for x, y in zip(self.x, self.y, strict=True):
            own = {name: {part: a.copy() for part, a in layer.items()} for name, layer in server.items()}
            order = self.rng.permutation(task.rows)
            for first in range(0, task.steps * task.batch, task.batch):
                batch = order[first : first + task.batch]
                _add(own, gradient(own, x[batch], y[batch]), -task.lr)
            _add(total, own, 1 / task.silos)
        self.params = total


def _add(params: Params, change: Params, rate: float) -> None:
    """Add `rate` times the change, in place."""
    for name, layer in params.items():
        for part, array in layer.items():
            array += np.float32(rate) * change[name][part]
