"""The tasks' models in torch, as lists of parameters and a function of them: softmax regression and LeNet-5."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.nn.functional import conv2d, linear, max_pool2d, relu

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tasks import Task, loss_of, make_data

from plain_network import SHAPES, start  # isort: skip (tasks says where it is)


def module(task: Task) -> torch.nn.Module:
    """The model that all begin from, as torch's own layers."""
    if not task.network:
        layer = torch.nn.Linear(task.features, task.classes)
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        return layer
    net = _lenet5()
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), start_of(task), strict=True):
            parameter.copy_(value)
    return net


def start_of(task: Task) -> list[torch.Tensor]:
    """The parameters that all begin from, for `scores`: weights and bias, layer by layer."""
    if not task.network:
        return [torch.zeros(task.features, task.classes), torch.zeros(task.classes)]
    layers = start().values()
    return [torch.from_numpy(a).permute(*_torch_axes(a.ndim)).contiguous() for x in layers for a in (x["w"], x["b"])]


def scores(params: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The scores of a batch, as a function of the parameters."""
    if len(params) == 2:
        return x @ params[0] + params[1]
    for layer in (0, 2):
        x = max_pool2d(relu(conv2d(x, params[layer], params[layer + 1])), 2)
    x = x.flatten(1)
    for layer in (4, 6):
        x = relu(linear(x, params[layer], params[layer + 1]))
    return linear(x, params[8], params[9])


def data(task: Task) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of all silos, images as [silos, rows, 1, 28, 28], and the labels."""
    x, y = (torch.from_numpy(array) for array in make_data(task))
    return x.reshape(task.silos, task.rows, 1, 28, 28) if task.network else x, y.long()


def torch_loss(task: Task, params: Sequence[torch.Tensor]) -> float:
    """The loss over all rows, found by the function that all share; parameters of `module` or for `scores`."""
    if not task.network:
        weights, bias = (p.detach().numpy() for p in params)
        return loss_of(task, {"w": weights if len(weights) == task.features else weights.T, "b": bias})
    arrays = [p.detach().permute(*_our_axes(p.ndim)).numpy() for p in params]
    pairs = zip(SHAPES, arrays[::2], arrays[1::2], strict=True)
    return loss_of(task, {name: {"w": w, "b": b} for name, w, b in pairs})


def _lenet5() -> torch.nn.Module:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def _torch_axes(ndim: int) -> tuple[int, ...]:
    """[5, 5, inputs, outputs] -> [outputs, inputs, 5, 5], and a transpose of weights."""
    return {1: (0,), 2: (1, 0), 4: (3, 2, 0, 1)}[ndim]


def _our_axes(ndim: int) -> tuple[int, ...]:
    return {1: (0,), 2: (1, 0), 4: (2, 3, 1, 0)}[ndim]
