"""LeNet-5 as others may have meant it: other activations, pools, padding and beginnings, and another small network.

Slower than `confrere.models.lenet5`, whose maximum is part of its convolution; for comparisons only.
"""

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Tree
from confrere.models.convolution import conv, max_pool
from confrere.models.images import as_pictures, dense_columns, image_model, init_conv, init_linear
from confrere.models.model import Model

SHAPE = (28, 28, 1)


class Variant(NamedTuple):
    """How a LeNet-5 differs from the library's, which is ReLU, maxima, no padding and torch's beginning."""

    tanh: bool = False
    mean_pool: bool = False
    padding: int = 0  # of the images
    glorot: bool = False  # uniform to sqrt(6 / (fan-in + fan-out)), biases 0


def mean_pool(x: jax.Array) -> jax.Array:
    """The mean of every 2 x 2 pixels."""
    c, h, w, b = x.shape
    return x.reshape(c, h // 2, 2, w // 2, 2, b).mean(axis=(2, 4))


def glorot(key: jax.Array, layer: Tree) -> Tree:
    """The same layer, begun otherwise: weights [..., inputs, outputs], of which leading axes are places of a kernel."""
    w = layer["w"]
    places = w.size // (w.shape[-1] * w.shape[-2])
    bound = sqrt(6 / (places * (w.shape[-2] + w.shape[-1])))
    return {"w": jax.random.uniform(key, w.shape, w.dtype, -bound, bound), "b": jnp.zeros_like(layer["b"])}


@cache
def lenet(variant: Variant) -> Model:
    """LeNet-5 for digits, in one of the variants."""
    side = ((28 + 2 * variant.padding - 4) // 2 - 4) // 2
    bend: Callable[[jax.Array], jax.Array] = jnp.tanh if variant.tanh else jax.nn.relu
    pool = mean_pool if variant.mean_pool else max_pool

    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        keys = jax.random.split(key, 5)
        layers = {
            "conv1": init_conv(keys[0], 5, 1, 6), "conv2": init_conv(keys[1], 5, 6, 16),
            "dense1": init_linear(keys[2], 16 * side**2, 120), "dense2": init_linear(keys[3], 120, 84),
            "dense3": init_linear(keys[4], 84, outputs),
        }  # fmt: skip
        if variant.glorot:
            layers = {name: glorot(k, layer) for k, (name, layer) in zip(keys, layers.items(), strict=True)}
        return layers

    def forward(params: Tree, X: jax.Array, live: jax.Array | None) -> tuple[jax.Array, float]:
        x = as_pictures(X, SHAPE)
        for name, padding in (("conv1", variant.padding), ("conv2", 0)):
            x = conv(x, params[name]["w"], padding=padding) + params[name]["b"][:, None, None, None]
            x = pool(bend(x))
        x = x.reshape(-1, x.shape[-1])
        for name in ("dense1", "dense2"):
            x = bend(dense_columns(params[name], x))
        return dense_columns(params["dense3"], x).T, 0.0

    return image_model(init, forward, f"lenet5 {variant}", together=False)


@cache
def predecessor() -> Model:
    """The network of the authors' earlier report: three 3 x 3 convolutions of stride 2 (32, 64, 128), 128, 10; ReLU."""

    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        keys = jax.random.split(key, 5)
        ends = (1, 32, 64, 128)
        layers = {f"conv{i}": init_conv(keys[i], 3, ends[i], ends[i + 1]) for i in range(3)}
        return {**layers, "dense1": init_linear(keys[3], 2048, 128), "dense2": init_linear(keys[4], 128, outputs)}

    def forward(params: Tree, X: jax.Array, live: jax.Array | None) -> tuple[jax.Array, float]:
        x = as_pictures(X, SHAPE)
        for i in range(3):
            layer = params[f"conv{i}"]
            x = jax.nn.relu(conv(x, layer["w"], stride=2, padding=1) + layer["b"][:, None, None, None])
        x = jax.nn.relu(dense_columns(params["dense1"], x.reshape(-1, x.shape[-1])))
        return dense_columns(params["dense2"], x).T, 0.0

    return image_model(init, forward, "three convolutions", together=False)
