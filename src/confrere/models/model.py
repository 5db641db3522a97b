"""What a model is, and the losses that models share."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Batch, Tree

Task = Literal["classification", "regression"]
Init = Callable[[jax.Array, int, int], Tree]
Apply = Callable[[Tree, jax.Array], jax.Array]


class Model(NamedTuple):
    """A model as plain functions.

    init: (key, inputs, outputs) -> params, for rows of `inputs` numbers and `outputs` classes (1 in a regression);
    apply: (params, X [b, ...]) -> scores [b, outputs]; loss: (params, batch) -> the mean loss over live rows.
    serial: whether hosts had better run silos one after the other than side by side.
    """

    init: Init
    apply: Apply
    loss: Callable[[Tree, Batch], jax.Array]
    task: Task
    name: str
    serial: bool = False


def mean_over_live(values: jax.Array, live: jax.Array) -> jax.Array:
    """The mean over live rows, 0 if there is none; padding may hold anything, also NaN."""
    return jnp.where(live, values, 0).sum() / jnp.maximum(live.sum(), 1)


def blank_padding(batch: Batch) -> jax.Array:
    """X with padding set to 0, so that whatever it holds cannot reach a gradient."""
    real = batch.live if batch.real is None else batch.real
    return jnp.where(real.reshape(-1, *(1,) * (batch.X.ndim - 1)), batch.X, 0)


@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    """log(1 + exp(x)), whose slope is written with tanh: a fraction of the work of an exponential and a logarithm.

    The slope is exact to the last digits of 1; training asks for the slope alone, at every row of every step.
    """
    return jax.nn.softplus(x)


@softplus.defjvp
def _softplus_slope(primals, tangents):
    (x,), (dx,) = primals, tangents
    return softplus(x), dx * (0.5 + 0.5 * jnp.tanh(0.5 * x))


def cross_entropy(scores: jax.Array, y: jax.Array) -> jax.Array:
    """-log softmax(scores)[y], row by row [b]. Two classes are done in the sigmoid form, at half the work."""
    if scores.shape[-1] == 2:
        margin = scores[:, 1] - scores[:, 0]
        return softplus(jnp.where(y == 1, -margin, margin))
    return jax.nn.logsumexp(scores, axis=-1) - jnp.take_along_axis(scores, y[:, None], axis=-1)[:, 0]


def row_losses(task: Task, scores: jax.Array, y: jax.Array) -> jax.Array:
    """The loss of every row: cross-entropy, or half the squared error."""
    if task == "classification":
        return cross_entropy(scores, y)
    return 0.5 * jnp.square(scores[:, 0] - y)


def model_of(init: Init, apply: Apply, task: Task, name: str) -> Model:
    """A model whose loss follows from its task."""

    def loss(params: Tree, batch: Batch) -> jax.Array:
        y = jnp.where(batch.live, batch.y, 0)
        return mean_over_live(row_losses(task, apply(params, blank_padding(batch)), y), batch.live)

    return Model(init, apply, loss, task, name)


def dense(params: Tree, X: jax.Array) -> jax.Array:
    """X W + b."""
    return X @ params["w"] + params["b"]


def init_dense(key: jax.Array, inputs: int, outputs: int) -> Tree:
    """Truncated normal weights (two standard deviations) of standard deviation 1/sqrt(inputs), bias 0."""
    W = jax.random.truncated_normal(key, -2.0, 2.0, (inputs, outputs)) / jnp.sqrt(inputs)
    return {"w": W, "b": jnp.zeros(outputs)}
