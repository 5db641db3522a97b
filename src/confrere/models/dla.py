"""Deep Layer Aggregation for small images.

Fisher Yu, Dequan Wang, Evan Shelhamer, Trevor Darrell: Deep layer aggregation (CVPR 2018). A tree joins two halves,
each a residual block of two 3 x 3 convolutions or a tree of its own, through a root: a 1 x 1 convolution of both.

This is the "simple" form that repositories for CIFAR-10 use: three plain 3 x 3 convolutions, then four trees with 1, 2,
2 and 1 levels, the last three halving the image, the mean over what is left of it and a linear layer. It departs from
the paper in that roots join the two halves only, not the inputs of deeper trees nor the outputs of earlier blocks.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Tree
from confrere.models.convolution import Kernel, check_kernel, conv
from confrere.models.images import (
    Layer,
    Shape,
    as_pictures,
    check_inputs,
    check_shape,
    dense_columns,
    image_model,
    init_linear,
    uniform,
)
from confrere.models.model import Model
from confrere.models.norms import Norm, check_norm, init_norm, normalised

TREES = ((2, 4, 1, 1), (4, 8, 2, 2), (8, 16, 2, 2), (16, 32, 1, 2))  # channels in and out per width, levels, stride
Keys = Iterator[jax.Array]


class How(NamedTuple):
    """How all layers do it: the norm, the convolution, and which rows of the batch count (None: predict)."""

    norm: Norm
    kernel: Kernel
    live: jax.Array | None


def dla(shape: Shape = (32, 32, 3), width: int = 16, norm: Norm = "group", kernel: Kernel = "auto") -> Model:
    """Simple Deep Layer Aggregation, for rows of height x width x channels pixels.

    `width` is the number of channels of the first layers, and those of the last are 32 times as many: 16 as published
    (15.1 million parameters), 2 to 4 for a CPU. `norm` is "group", or "batch" with running statistics among the
    parameters (see `confrere.models.norms`); `kernel` as for `lenet5`.

    >>> import jax, confrere as cf
    >>> shapes = jax.eval_shape(lambda key: cf.models.dla(width=2).init(key, 3072, 10), jax.random.key(0))
    >>> sum(leaf.size for leaf in jax.tree.leaves(shapes))
    239004
    """
    check_kernel(kernel)
    check_norm(norm)
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise ValueError(f"width must be a whole number of 1 or more, not {width!r}")
    return _dla(check_shape(shape, 8), width, norm, kernel)


@functools.cache
def _dla(shape: Shape, width: int, norm: Norm, kernel: Kernel) -> Model:
    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        check_inputs(inputs, shape, "DLA")
        keys = iter(jax.random.split(key, 64))
        ends = [shape[2], width, width, 2 * width]
        stem = {f"stem{i}": init_unit(keys, norm, 3, ends[i], ends[i + 1]) for i in range(3)}
        trees = {
            f"tree{i}": init_tree(keys, norm, a * width, b * width, levels, stride)
            for i, (a, b, levels, stride) in enumerate(TREES)
        }
        return {**stem, **trees, "head": init_linear(next(keys), TREES[-1][1] * width, outputs)}

    def forward(params: Tree, X: jax.Array, live: jax.Array | None) -> Layer:
        how = How(norm, kernel, live)
        x, term = as_pictures(X, shape), 0.0
        for i in range(3):
            x, more = unit(params[f"stem{i}"], x, how)
            x, term = jax.nn.relu(x), term + more
        for i, (_, _, levels, stride) in enumerate(TREES):
            x, more = tree(params[f"tree{i}"], x, how, levels, stride)
            term = term + more
        return dense_columns(params["head"], x.mean(axis=(1, 2))).T, term

    return image_model(init, forward, "dla", together=norm == "batch")


def init_unit(keys: Keys, norm: Norm, k: int, inputs: int, outputs: int) -> Tree:
    """A convolution, whose bias the norm would undo, and the norm."""
    w = uniform(next(keys), (k, k, inputs, outputs), k * k * inputs)
    return {"conv": {"w": w}, "norm": init_norm(norm, outputs)}


def init_block(keys: Keys, norm: Norm, inputs: int, outputs: int, stride: int) -> Tree:
    """Two convolutions, and a third for the way past them where that changes the shape."""
    params = {"first": init_unit(keys, norm, 3, inputs, outputs), "second": init_unit(keys, norm, 3, outputs, outputs)}
    if stride != 1 or inputs != outputs:
        params["past"] = init_unit(keys, norm, 1, inputs, outputs)
    return params


def init_tree(keys: Keys, norm: Norm, inputs: int, outputs: int, levels: int, stride: int) -> Tree:
    """Two halves and their root."""
    if levels == 0:
        return init_block(keys, norm, inputs, outputs, stride)
    return {
        "left": init_tree(keys, norm, inputs, outputs, levels - 1, stride),
        "right": init_tree(keys, norm, outputs, outputs, levels - 1, 1),
        "root": init_unit(keys, norm, 1, 2 * outputs, outputs),
    }


def unit(params: Tree, x: jax.Array, how: How, stride: int = 1) -> Layer:
    """A convolution that keeps the size but for its stride, normalised."""
    w = params["conv"]["w"]
    return normalised(how.norm, params["norm"], conv(x, w, stride, w.shape[0] // 2, how.kernel), how.live)


def block(params: Tree, x: jax.Array, how: How, stride: int) -> Layer:
    """relu(f(x) + x), where f is two convolutions."""
    y, first = unit(params["first"], x, how, stride)
    y, second = unit(params["second"], jax.nn.relu(y), how)
    past, third = unit(params["past"], x, how, stride) if "past" in params else (x, 0.0)
    return jax.nn.relu(y + past), first + second + third


def tree(params: Tree, x: jax.Array, how: How, levels: int, stride: int) -> Layer:
    """The root of the left half's output and of what the right half makes of it."""
    if levels == 0:
        return block(params, x, how, stride)
    left, first = tree(params["left"], x, how, levels - 1, stride)
    right, second = tree(params["right"], left, how, levels - 1, 1)
    joined, third = unit(params["root"], jnp.concatenate([left, right]), how)
    return jax.nn.relu(joined), first + second + third
