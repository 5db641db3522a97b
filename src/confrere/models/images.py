"""What the models of images share: rows as pictures, layers, and scores of many rows piece by piece."""

from collections.abc import Callable
from math import prod, sqrt

import jax
import jax.numpy as jnp

from confrere.core import Batch, Tree
from confrere.models.model import Init, Model, blank_padding, mean_over_live, row_losses

Shape = tuple[int, int, int]  # height, width, channels
Layer = tuple[jax.Array, jax.Array | float]  # what a layer gives, and its term of the loss (see `norms`)
Forward = Callable[[Tree, jax.Array, jax.Array | None], Layer]
PIECE = 128  # rows at a time: the columns of more would fill the memory


def check_shape(shape: Shape, least: int) -> Shape:
    """Height, width and channels as whole numbers, the image large enough for the network."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != 3 or min(sizes[:2]) < least or sizes[2] < 1:
        raise ValueError(f"shape must be height, width (at least {least}) and channels, not {tuple(shape)!r}")
    return sizes[0], sizes[1], sizes[2]


def check_inputs(inputs: int, shape: Shape, name: str) -> None:
    """The rows must be images of the shape that the model was made for."""
    if inputs != prod(shape):
        raise ValueError(
            f"{name} was made for images of shape {shape}, {prod(shape)} numbers a row, but rows have {inputs}: "
            "say shape=(height, width, channels) when you make it"
        )


def as_pictures(X: jax.Array, shape: Shape) -> jax.Array:
    """Rows [b, h w c] as pictures [c, h, w, b]."""
    return X.reshape(-1, *shape).transpose(3, 1, 2, 0)


def dense_columns(params: Tree, x: jax.Array) -> jax.Array:
    """W' x + b for rows that are columns [inputs, b]."""
    return params["w"].T @ x + params["b"][:, None]


def uniform(key: jax.Array, shape: tuple[int, ...], fan_in: int) -> jax.Array:
    """Uniform between -1/sqrt(fan_in) and 1/sqrt(fan_in), as torch begins."""
    return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0) / sqrt(fan_in)


def init_conv(key: jax.Array, k: int, inputs: int, outputs: int) -> Tree:
    """A kernel [k, k, inputs, outputs] and its bias."""
    of_w, of_b = jax.random.split(key)
    fan_in = k * k * inputs
    return {"w": uniform(of_w, (k, k, inputs, outputs), fan_in), "b": uniform(of_b, (outputs,), fan_in)}


def init_linear(key: jax.Array, inputs: int, outputs: int) -> Tree:
    """Weights [inputs, outputs] and bias."""
    of_w, of_b = jax.random.split(key)
    return {"w": uniform(of_w, (inputs, outputs), inputs), "b": uniform(of_b, (outputs,), inputs)}


def image_model(init: Init, forward: Forward, name: str, together: bool) -> Model:
    """A classifier from forward(params, X, live) -> (scores [b, outputs], a term of the loss whose value is 0).

    `live` is None for predictions. Rows are scored piece by piece, in training too, unless they are normalised
    `together`: then the batch is one piece.
    """

    def scores(params: Tree, X: jax.Array) -> jax.Array:
        return in_pieces(lambda piece: forward(params, piece, None)[0], X)

    def loss(params: Tree, batch: Batch) -> jax.Array:
        X, y = blank_padding(batch), jnp.where(batch.live, batch.y, 0)
        found, term = forward(params, X, batch.live) if together else (scores(params, X), 0.0)
        return mean_over_live(row_losses("classification", found, y), batch.live) + term

    return Model(init, scores, loss, "classification", name, serial=True)


def in_pieces(apply: Callable[[jax.Array], jax.Array], X: jax.Array) -> jax.Array:
    """apply(X), some rows at a time where there are many; what its gradient needs is then computed again."""
    rows = X.shape[0]
    pieces = -(-rows // PIECE)
    if pieces <= 1:
        return apply(X)
    size = -(-rows // pieces)
    full = jnp.pad(X, ((0, pieces * size - rows), *((0, 0),) * (X.ndim - 1)))
    out = jax.lax.map(jax.checkpoint(apply), full.reshape(pieces, size, *X.shape[1:]))
    return out.reshape(pieces * size, -1)[:rows]
