"""A multilayer perceptron."""

import functools
from collections.abc import Sequence

import jax

from confrere.core import Tree
from confrere.models.model import Model, Task, dense, init_dense, model_of


def mlp(hidden: Sequence[int] = (32,), task: Task = "classification") -> Model:
    """Dense layers with ReLU between them; `hidden` gives the width of each layer but the last.

    Amounts (`task="regression"`) far from 0 and 1 make its training diverge: `personalise` and `Study` standardise them
    on the way; `simulate` takes them as they are.

    >>> import jax, confrere as cf
    >>> model = cf.models.mlp([8])
    >>> sorted(model.init(jax.random.key(0), 3, 2))
    ['layer0', 'layer1']
    """
    if task not in ("classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', not {task!r}")
    widths = tuple(int(w) for w in hidden)
    if any(w < 1 for w in widths):
        raise ValueError(f"hidden must be widths above 0, not {list(hidden)}")
    return _mlp(widths, task)


@functools.cache
def _mlp(widths: tuple[int, ...], task: Task) -> Model:
    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        ends = (inputs, *widths, outputs)
        keys = jax.random.split(key, len(ends) - 1)
        return {f"layer{i}": init_dense(keys[i], ends[i], ends[i + 1]) for i in range(len(ends) - 1)}

    def apply(params: Tree, X: jax.Array) -> jax.Array:
        for i in range(len(widths)):
            X = jax.nn.relu(dense(params[f"layer{i}"], X))
        return dense(params[f"layer{len(widths)}"], X)

    return model_of(init, apply, task, "mlp")
