"""Models without a closed form, trained by gradient descent: every silo with every fold left out, side by side."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.algorithms import local
from confrere.core import Tree
from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.models.model import row_losses
from confrere.simulate import simulate


class Descent(NamedTuple):
    """Steps of full gradients with momentum, inside a silo."""

    lr: float = 0.1
    steps: int = 200
    momentum: float = 0.9


def offers_by_descent(
    silos: Silos, folding: Mapping[str, np.ndarray], folds: int, model: Model, l2: float, how: Descent, seed: int
) -> dict[str, tuple[Tree, float]]:
    """By silo: its model, and its mean loss on rows that were held out, fold by fold. No row leaves its silo."""
    parts: list[Silo] = []
    for name, fold in folding.items():
        X, y = silos[name].rows("train")
        for left_out in range(-1, folds):  # -1: nothing is left out
            rows = fold != left_out
            parts.append(Silo(f"{name}, fold {left_out}", X[rows], y[rows], np.zeros(int(rows.sum()), np.int8)))
    if not parts:
        return {}
    alone = replace(silos, silos=tuple(parts), source=None, encoding=None, shared=())
    recipe = local(lr=how.lr, momentum=how.momentum, l2=l2 or None)
    trained = simulate(recipe, model, alone, how.steps, seed, metrics=(), record=())
    found = {}
    for k, (name, fold) in enumerate(folding.items()):
        params = [trained.personal(k * (folds + 1) + j) for j in range(folds + 1)]
        X, y = silos[name].rows("train")
        labels = jnp.asarray(y, jnp.int32 if model.task == "classification" else jnp.float32)
        held_out = [row_losses(model.task, model.apply(p, jnp.asarray(X, jnp.float32)), labels) for p in params[1:]]
        total = sum(float(np.asarray(rows)[fold == j].sum()) for j, rows in enumerate(held_out))
        found[name] = (jax.tree.map(np.asarray, params[0]), total / len(y))
    return found
