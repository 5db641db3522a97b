"""Linear and logistic models of silos in double precision: rows, penalties and losses.

The objective of a set of rows is their mean loss + l2/2 w'A0w, A0 being 1 for a coefficient (2 with more than two
classes), 0.1 of that for the intercept of a classifier, and 0 for that of a regression, whose labels may be far from 0.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows, base_precision, check_linear, losses, rows_of, scores_of, to_params
from confrere.core import Tree
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.simulation.inputs import outputs_of, params_spec

MOST_PARAMETERS = 2000  # whose curvature, a square of numbers, is still handled


class Linear(NamedTuple):
    """The training rows of all silos, padded alike [n, m, ...], and what their models have in common."""

    model: Model
    rows: Rows
    penalty: np.ndarray  # [D] the diagonal of l2 A0
    params: Tree  # the shapes of the model's parameters

    @property
    def task(self) -> str:
        """Classification or regression."""
        return self.model.task

    def of(self, silo: int) -> Rows:
        """One silo's rows."""
        return jax.tree.map(lambda a: a[silo], self.rows)


def linear_rows(silos: Silos, model: Model, l2: float, why: str) -> Linear:
    """All silos' training rows for a model that is linear in its parameters; in double precision if that is on."""
    check_linear(model, why)
    params = params_spec(model, len(silos.feature_names), outputs_of(model, silos))
    scores = scores_of(params, model)
    width = len(silos.feature_names) + 1
    if width * scores > MOST_PARAMETERS:
        raise ValueError(
            f"{why} handles curvatures of {MOST_PARAMETERS} parameters at most, and this model has {width * scores}: "
            "choose fewer features"
        )
    precision = np.array(base_precision(width, scores), float).reshape(width, scores)
    if model.task == "regression":
        precision[-1] = 0
    rows = jax.vmap(lambda block: rows_of(model, block))(jax.tree.map(jnp.asarray, silos.block("train")))
    return Linear(model, rows, l2 * precision.reshape(-1), params)


@functools.partial(jax.jit, static_argnames="task")
def row_losses(rows: Rows, theta: jax.Array, task: str) -> jax.Array:
    """The loss of every row [m], padding included."""
    return losses(rows, rows.X @ theta.reshape(rows.X.shape[1], -1), task)


def model_params(data: Linear, theta: np.ndarray) -> Tree:
    """A parameter vector as the model's own parameters, in single precision, as they are sent."""
    return jax.tree.map(lambda a: np.asarray(a, np.float32), to_params(jnp.asarray(theta), data.params, data.model))
