"""Gradients of silos, cut into the parts of a model: features and intercept of a linear one, layers of others."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Batch, Tree
from confrere.data.silos import Silos
from confrere.layers import layer_names, names_on
from confrere.models import Model
from confrere.study.cases import round_up

LINEAR = ("linear", "logistic")
INTERCEPT = "intercept"
RIDGE = 1.0  # of the model of both silos together, over the number of rows
LEAST_ROWS = 2  # of a silo whose rows are drawn anew


def training_rows(silos: Silos, place: int) -> tuple[np.ndarray, np.ndarray]:
    """A silo's training rows, as models take them."""
    block = silos.block("train", None, [place])
    count = int(np.asarray(block.size)[0])
    if count == 0:
        raise ValueError(f"silo {silos.names[place]!r} has no training rows: it has no gradient")
    return np.asarray(block.X)[0, :count], np.asarray(block.y)[0, :count]


def optimum_of_both(silos: Silos, places: Sequence[int], model: Model) -> Tree:
    """The ridge optimum of two silos' rows together, for a linear model."""
    if model.name not in LINEAR:
        raise ValueError(f"params: say at which model the gradients of {model.name} are taken, as history.personal(0)")
    from confrere.selection.linear import linear_rows, model_params
    from confrere.selection.pool import Pool

    with jax.enable_x64(True):
        rows = sum(silos.sizes("train")[p] for p in set(places))
        data = linear_rows(silos, model, RIDGE / max(rows, 1), "the optimum of both silos")
        pool = Pool({silos.names[p]: data.of(p) for p in places}, data.penalty, data.task, silos.names[places[0]])
        theta, _ = pool.optimum(list(pool.rows), np.zeros_like(data.penalty))
        return model_params(data, theta)


def part_names(params: Tree, model: Model, features: Sequence[str]) -> tuple[str, ...]:
    """The features and the intercept, or the layers."""
    if model.name in LINEAR:
        return (*features, INTERCEPT)
    return layer_names(params) or ("all parameters",)


def draws_of(rows: int, resamples: int, seed: int) -> np.ndarray:
    """Row numbers [1 + B, m]: the rows as they are, then drawn with replacement; no draws from a single row."""
    itself = np.arange(rows, dtype=np.int32)[None]
    if rows < LEAST_ROWS or resamples == 0:
        return itself
    drawn = np.random.default_rng(seed).integers(rows, size=(resamples, rows), dtype=np.int32)
    return np.concatenate([itself, drawn])


def gradients(model: Model, params: Tree, X: np.ndarray, y: np.ndarray, draws: np.ndarray) -> list[np.ndarray]:
    """The gradient of the mean loss over every draw of rows: per part an array [draws, numbers of the part].

    Rows are padded to a coarse list of sizes, so that few programs are needed.
    """
    room = round_up(len(y)) - len(y)
    X, y = (np.pad(a, [(0, room), *[(0, 0)] * (a.ndim - 1)]) for a in (X, y))
    draws = np.pad(draws, [(0, 0), (0, room)])
    found = jax.tree.map(np.asarray, _gradients(model, params, X, y, draws, len(y) - room))
    if model.name in LINEAR:
        whole = np.concatenate([found["w"], found["b"][:, None]], axis=1)  # [draws, features + 1, outputs]
        return [whole[:, j].astype(float) for j in range(whole.shape[1])]
    named = [(names_on(path), leaf) for path, leaf in jax.tree.leaves_with_path(found)]
    layers = layer_names(params) or (None,)
    flat = lambda leaf: leaf.reshape(len(leaf), -1).astype(float)  # noqa: E731
    return [np.concatenate([flat(v) for path, v in named if layer in (None, path[0])], axis=1) for layer in layers]


@functools.partial(jax.jit, static_argnums=0)
def _gradients(model: Model, params: Tree, X: jax.Array, y: jax.Array, draws: jax.Array, rows: jax.Array) -> Tree:
    live = jnp.arange(X.shape[0]) < rows
    return jax.lax.map(lambda rows: jax.grad(model.loss)(params, Batch(X[rows], y[rows], live)), draws)
