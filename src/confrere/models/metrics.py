"""Metrics of one silo's rows, padded rows left out; every one is defined for every silo, also an empty one.

A metric is a function (scores [m, outputs], y [m], live [m]) -> number. Over several silos the simulator averages
them by their number of rows, so that one passenger never counts for half a test set.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from confrere.models.model import Task, cross_entropy, mean_over_live


def accuracy(scores: jax.Array, y: jax.Array, live: jax.Array) -> jax.Array:
    """The share of rows whose largest score is at the label."""
    return mean_over_live((scores.argmax(axis=-1) == y) * 1.0, live)


def balanced_accuracy(scores: jax.Array, y: jax.Array, live: jax.Array) -> jax.Array:
    """The mean over the classes that occur of the share of their rows that are right."""
    member = (y[:, None] == jnp.arange(scores.shape[-1])) & live[:, None]
    right = (scores.argmax(axis=-1) == y)[:, None] & member
    count = member.sum(axis=0)
    recall = right.sum(axis=0) / jnp.maximum(count, 1)
    return jnp.where(count > 0, recall, 0).sum() / jnp.maximum((count > 0).sum(), 1)


def log_loss(scores: jax.Array, y: jax.Array, live: jax.Array) -> jax.Array:
    """The mean cross-entropy, natural logarithm."""
    return mean_over_live(cross_entropy(jnp.where(live[:, None], scores, 0), y), live)


def auroc(scores: jax.Array, y: jax.Array, live: jax.Array) -> jax.Array:
    """The chance that a row of a class scores above a row of the others, ties counting half.

    With more than two classes: the mean over the classes for which both kinds of rows occur (one against the
    rest). Where no class has both kinds of rows it is 0.5.
    """
    if scores.shape[-1] == 2:
        return one_against_rest(scores[:, 1] - scores[:, 0], y == 1, live)[0]
    probability = jax.nn.softmax(scores, axis=-1)
    member = y[:, None] == jnp.arange(scores.shape[-1])
    area, known = jax.vmap(one_against_rest, (1, 1, None))(probability, member, live)
    mean = jnp.where(known, area, 0).sum() / jnp.maximum(known.sum(), 1)
    return jnp.where(known.any(), mean, 0.5)


def one_against_rest(score: jax.Array, positive: jax.Array, live: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The area under the ROC curve by ranks, and whether both kinds of rows occur."""
    positive, negative = positive & live, ~positive & live
    value = jnp.where(live, score, jnp.inf)
    ordered = jnp.sort(jnp.where(negative, value, jnp.inf))
    below = jnp.searchsorted(ordered, value, side="left")
    upto = jnp.searchsorted(ordered, value, side="right")
    pairs = positive.sum(dtype=score.dtype) * negative.sum(dtype=score.dtype)
    wins = jnp.where(positive, (below + upto) / 2, 0).sum()
    return jnp.where(pairs > 0, wins / jnp.maximum(pairs, 1), 0.5), pairs > 0


def brier(scores: jax.Array, y: jax.Array, live: jax.Array) -> jax.Array:
    """The mean squared distance of the probabilities from what happened, which calibration and sharpness make up.

    Of two classes the second alone counts, as is usual (0 to 1); of more, all are summed (0 to 2).
    """
    probability = jax.nn.softmax(jnp.where(live[:, None], scores, 0), axis=-1)
    apart = jnp.square(probability - (y[:, None] == jnp.arange(scores.shape[-1])))
    return mean_over_live(apart[:, 1] if scores.shape[-1] == 2 else apart.sum(axis=-1), live)


def rmse(scores: jax.Array, y: jax.Array, live: jax.Array) -> jax.Array:
    """The root of the mean squared error."""
    return jnp.sqrt(mean_over_live(jnp.square(scores[:, 0] - y), live))


METRICS: dict[str, Callable[[jax.Array, jax.Array, jax.Array], jax.Array]] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "log_loss": log_loss,
    "auroc": auroc,
    "brier": brier,
    "rmse": rmse,
}


def metrics_of(task: Task) -> tuple[str, ...]:
    """The metrics that mean something for a task; they are what is measured unless said otherwise."""
    return ("rmse",) if task == "regression" else tuple(name for name in METRICS if name != "rmse")
