"""Measures that are not the same both ways: transfer loss and influence.

    T_ij = mean loss of j's model on i's rows - cross-validated loss of j's model at home        (Ndoye, `selection`)

The mean of both ways is free of how hard each silo's patients are to tell apart: T_ij + T_ji is what i's patients lose
under j's model instead of their own, and j's under i's. It is the dissimilarity, 0 where it is below.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from confrere.data.silos import Silos
from confrere.insight.similarity.fitting import losses_under
from confrere.insight.similarity.measured import Measured, both_ways
from confrere.insight.similarity.measures import RESAMPLED, measure_of
from confrere.insight.similarity.own import NUMBER, Told, counts_of, secret, told
from confrere.models import Model
from confrere.selection import influence
from confrere.selection.linear import Linear
from confrere.selection.ndoye import folds_of, held_out_losses
from confrere.selection.resampling import TAIL
from confrere.selection.selection import Crossing

FOLDS = 4


class Home(NamedTuple):
    """What a model loses a row on rows of its own silo that it had not seen, and the standard error of that."""

    loss: float
    error: float


def at_home(data: Linear, silos: Silos, name: str, seed: int) -> Home:
    """The cross-validated loss of one silo's model."""
    fold = folds_of(silos, name, FOLDS, seed)
    lost = held_out_losses(data.of(silos.index(name)), fold, data.penalty, data.task)
    return Home(float(lost.mean()), float(lost.std() / np.sqrt(len(lost))))


def transfers(
    data: Linear, silos: Silos, models: Mapping[str, Told], offs: Mapping[str, np.ndarray], resamples: int, seed: int
) -> Measured:
    """The transfer loss of every silo's model in every other silo; `offs` are draws of the models [B, D]."""
    n, who = len(silos), list(models)
    T, draws = np.full((n, n), np.nan), np.full((resamples, n, n), np.nan)
    home = {name: at_home(data, silos, name, seed) for name in who}
    off = {name: secret(seed, name, "home").normal(size=resamples) for name in who}
    for user in who:
        i = silos.index(user)
        rows, m = data.of(i), silos.sizes("train")[i]
        counts = counts_of(m, resamples, secret(seed, user, "judge"))
        others = [name for name in who if name != user]
        values = np.zeros((1 + resamples, len(others)))
        for k, name in enumerate(others):
            thetas = models[name].vector + np.concatenate([np.zeros((1, len(data.penalty))), offs[name]])
            lost = np.asarray(losses_under(rows, thetas, data.task))[:, :m]
            values[:, k] = (lost * counts).sum(axis=1) / m - home[name].loss
            values[1:, k] -= home[name].error * off[name]
        places = [silos.index(name) for name in others]
        T[i, places] = values[0]
        draws[:, i, places] = varied(told(values), resamples, seed, user)
    return asymmetric("transfer", data.task, T, draws, crossings_of(models, len(data.penalty), n, resamples))


def varied(said: Told, resamples: int, seed: int, user: str) -> np.ndarray:
    """Draws [B, k] of what a user told of the others."""
    return said.vector + said.draws(resamples, secret(seed, user, "transfer"))


def crossings_of(models: Mapping[str, Told], parameters: int, silos: int, resamples: int) -> tuple[Crossing, ...]:
    """Every model with its variation and its loss to all others, and what they found back."""
    found = []
    others = len(models) - 1
    for name, said in models.items():
        model = NUMBER * (parameters * (1 + len(said.factors)) + 2)
        answers = NUMBER * others * (1 + (min(others, resamples) if resamples > 1 else 0))
        down = sum(NUMBER * (parameters * (1 + len(o.factors)) + 2) for n, o in models.items() if n != name)
        found.append(Crossing(name, "its model, how it varies and its loss at home; the others' models; what they lost",
                              model + answers, down))  # fmt: skip
    return tuple(found)


def asymmetric(
    name: str, task: str, matrix: np.ndarray, draws: np.ndarray, crossings: tuple[Crossing, ...]
) -> Measured:
    """A measure that is kept as it is in both directions, with the mean of both as dissimilarity."""
    found = measure_of(name, task)
    off = draws - draws.mean(axis=0) if len(draws) else draws
    low, high = (matrix + end for end in np.percentile(off, [TAIL, 100 - TAIL], axis=0)) if len(off) else (
        np.full_like(matrix, np.nan), np.full_like(matrix, np.nan)
    )  # fmt: skip
    alike = both_ways(matrix)
    there = ~np.isnan(alike).all(axis=1)
    alike[there, there] = 0.0
    moved = both_ways(draws)
    noise = np.abs((off + np.swapaxes(off, 1, 2)) / 2)
    for values in (moved, noise):
        values[:, there, there] = 0.0
    return Measured(
        name, found.title, found.unit, matrix, low, high, False, alike, moved, noise, found.reveals, RESAMPLED,
        crossings,
    )  # fmt: skip


def influences(silos: Silos, who: Sequence[str], model: Model, l2: float, resamples: int, seed: int) -> Measured:
    """How much every silo would miss every other one; those who are not asked take no part."""
    n = len(silos)
    matrix, low, high = (np.full((n, n), np.nan) for _ in range(3))
    up, down = dict.fromkeys(who, 0), dict.fromkeys(who, 0)
    for user in who:
        silent = [name for name in silos.names if name not in who]
        found = influence(
            silos, user, model, l2=l2, others="train", silent=silent, min_count=1, resamples=max(resamples, 1),
            seed=seed,
        )  # fmt: skip
        i = silos.index(user)
        matrix[i] = found.scores
        if resamples:
            low[i], high[i] = found.low, found.high
        for c in found.crossings:
            up[c.silo], down[c.silo] = up[c.silo] + c.up, down[c.silo] + c.down
    words = measure_of("influence", model.task)
    what = "rows, loss, gradient and curvature around a common model, for every user in turn"
    crossings = tuple(Crossing(name, what, up[name], down[name]) for name in who)
    nothing = np.zeros((0, n, n))
    return Measured(
        "influence", words.title, words.unit, matrix, low, high, False, None, nothing, nothing, words.reveals,
        "the judging rows of each user drawn anew, the models as they were", crossings,
    )  # fmt: skip
