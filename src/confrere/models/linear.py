"""Linear and logistic regression."""

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from confrere.core import Batch, Tree
from confrere.models.model import Model, blank_padding, dense, init_dense, mean_over_live, model_of, softplus


@functools.cache
def linear() -> Model:
    """Linear regression with bias; the loss is half the mean squared error.

    >>> import jax, confrere as cf
    >>> model = cf.models.linear()
    >>> jax.tree.map(lambda a: a.shape, model.init(jax.random.key(0), 3, 1))
    {'b': (1,), 'w': (3, 1)}
    """
    return model_of(init_dense, dense, "regression", "linear")


def logistic(start: Literal["random", "zero"] = "random") -> Model:
    """Softmax regression with bias; the loss is the mean cross-entropy (natural logarithm).

    Weights begin at random, or at zero, as the loss is convex; the bias always begins at zero.

    >>> import jax, confrere as cf
    >>> model = cf.models.logistic()
    >>> jax.tree.map(lambda a: a.shape, model.init(jax.random.key(0), 9, 2))
    {'b': (2,), 'w': (9, 2)}
    """
    if start not in ("random", "zero"):
        raise ValueError(f"start must be 'random' or 'zero', not {start!r}")
    return _logistic(start)


@functools.cache
def _logistic(start: str) -> Model:
    general = model_of(init_dense if start == "random" else init_zero, dense, "classification", "logistic")

    def loss(params: Tree, batch: Batch) -> jax.Array:
        return two_class_loss(params, batch) if params["b"].shape == (2,) else general.loss(params, batch)

    return general._replace(loss=loss)


def init_zero(key: jax.Array, inputs: int, outputs: int) -> Tree:
    """Weights and bias 0."""
    return {"w": jnp.zeros((inputs, outputs)), "b": jnp.zeros(outputs)}


def two_class_loss(params: Tree, batch: Batch) -> jax.Array:
    """Cross-entropy from the difference of the two columns: all that matters, at half the work.

    The weights stand in front of the rows, so that many models on the same rows give [models, rows] as it is needed.
    """
    w = params["w"][:, 1] - params["w"][:, 0]
    margin = jnp.einsum("d,md->m", w, blank_padding(batch)) + (params["b"][1] - params["b"][0])
    return mean_over_live(softplus((1 - 2 * batch.y) * margin), batch.live)
