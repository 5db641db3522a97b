"""A multilayer perceptron."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from confrere.core import Tree
from confrere.models.model import Model, Task, dense, init_dense, model_of
from confrere.models.norms import EPSILON


def mlp(hidden: Sequence[int] = (32,), task: Task = "classification", norm: bool = False) -> Model:
    """Dense layers with ReLU between them; `hidden` gives the width of each layer but the last.

    With `norm` the numbers of a row are normalised in every hidden layer (Ba, Kiros, Hinton: Layer normalization,
    2016), with a scale and a shift under the name `norm`, which `fedbn` keeps in the silo.

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
    return _mlp(widths, task, bool(norm))


@functools.cache
def _mlp(widths: tuple[int, ...], task: Task, norm: bool) -> Model:
    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        ends = (inputs, *widths, outputs)
        keys = jax.random.split(key, len(ends) - 1)
        params = {f"layer{i}": init_dense(keys[i], ends[i], ends[i + 1]) for i in range(len(ends) - 1)}
        for i, width in enumerate(widths if norm else ()):
            params[f"layer{i}"]["norm"] = {"scale": jnp.ones(width), "shift": jnp.zeros(width)}
        return params

    def apply(params: Tree, X: jax.Array) -> jax.Array:
        for i in range(len(widths)):
            h = dense(params[f"layer{i}"], X)
            X = jax.nn.relu(normalised_rows(params[f"layer{i}"]["norm"], h) if norm else h)
        return dense(params[f"layer{len(widths)}"], X)

    return model_of(init, apply, task, "mlp")


def normalised_rows(params: Tree, h: jax.Array) -> jax.Array:
    """Every row [..., width] with mean 0 and variance 1, scaled and shifted."""
    centred = h - h.mean(-1, keepdims=True)
    var = jnp.square(centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(var + EPSILON) * params["scale"] + params["shift"]
