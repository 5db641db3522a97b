"""Gradients: how long silos keep their weight in a short probe run of Weight Erosion, as a ranking.

    score_i = mean over the rounds of the probe of alpha_i             1: as near as the user itself; higher is better

The weights are those of `weights.erosion`, with full gradients, so that neither order nor chance decides, and large
silos are treated as small ones. The mean over rounds still tells silos apart whose weights all end at 0.

Grimberg: semester project report (2020), section 4.5. There the weights are known only after training; a probe of few
rounds shows them before, at the price of its messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from confrere.algorithms import weight_erosion
from confrere.checks import check_counts
from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.history import History
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.selection.asking import LEAST, NOT_FINITE, Others, asked, start_with
from confrere.selection.resampling import about_the_score, percentiles
from confrere.selection.selection import Crossing, Selection
from confrere.selection.words import between
from confrere.simulate import simulate


def gradients(
    silos: Silos,
    user: int | str,
    model: Model | None = None,
    *,
    rounds: int = 20,
    lr: float = 0.3,
    p_d: float = 0.02,
    p_s: float = 0.0,
    others: Others = "all",
    silent: Sequence[str] = (),
    min_count: int = LEAST,
    resamples: int = 20,
    heard: Callable[[Recipe], Recipe] | None = None,
    seed: int = 0,
) -> Selection:
    """Rank silos by their mean weight in a short run of Weight Erosion; higher is better.

    Args:
        model: by default logistic regression for classes, linear regression for amounts, begun at zero.
        rounds, lr, p_d, p_s: of the probe, see `weight_erosion`; with full gradients p_s wears all silos alike.
        others: "all": the other silos use all their rows; "train": their training rows only.
        silent: silos that never answered: they are left out, and training can start without them.
        min_count: silos with fewer training rows are not asked, as what they sent would be about so few.
        resamples: probes on rows drawn anew with replacement in every silo, behind the intervals; their messages are
            counted, too. 0: no interval.
        heard: recipe of the probe -> what is run in its place, e.g. `transforms.attacked` to play a silo that lies.

    By default those before the largest gap are kept; see `Selection` for other choices, and `graded` to take the
    weights as they are.

    >>> import confrere as cf
    >>> cf.selection.gradients(cf.data.titanic("age-some"), user="0-35 a", resamples=0).ranking
    ['36+', '0-35 b', 'unknown']
    """
    check_counts(rounds=rounds)
    check_counts(0, resamples=resamples)
    silos, place, model = start_with(silos, user, model, others)
    who, without = asked(silos, place, silent, min_count)
    active = np.tile([name in who or i == place for i, name in enumerate(silos.names)], (rounds, 1))

    def probe(rows: Silos) -> History:
        recipe = weight_erosion(user=place, lr=lr, p_d=p_d, p_s=p_s)
        run = recipe if heard is None else heard(recipe)
        return simulate(run, model, rows, rounds, seed, active=active, metrics=(), record=("weights", "distance"))

    history = probe(silos)
    rng = np.random.default_rng(seed)
    drawn = [mean_weights(probe(resampled(silos, rng))) for _ in range(resamples)]
    broken = [name for name in who if not history.arrived[:, silos.index(name)].all()]
    without |= dict.fromkeys(broken, NOT_FINITE)
    return assembled(silos, place, history, drawn, without)


def mean_weights(history: History) -> np.ndarray:
    """The mean weight of every silo over the rounds [n]."""
    assert history.weights is not None
    return history.weights[:, 0].mean(axis=0)


def resampled(silos: Silos, rng: np.random.Generator) -> Silos:
    """The same silos with as many training rows, drawn with replacement; equal silos still differ by the draw."""

    def one(silo: Silo) -> Silo:
        X, y = silo.rows("train")
        rows = rng.integers(len(y), size=len(y)) if len(y) else np.zeros(0, int)
        return Silo(silo.name, X[rows], y[rows], np.zeros(len(y), np.int8))

    return replace(silos, silos=tuple(map(one, silos.silos)), source=None)


def assembled(
    silos: Silos, user: int, history: History, drawn: Sequence[np.ndarray], without: dict[str, str]
) -> Selection:
    """The selection, those before the largest gap kept."""
    hidden = np.array([i == user or name in without for i, name in enumerate(silos.names)])
    scores = np.where(hidden, np.nan, mean_weights(history))
    draws = np.stack(drawn, axis=1) if drawn else np.zeros((len(scores), 0))
    low, high = percentiles(np.clip(about_the_score(mean_weights(history), draws), 0, 1))
    low, high = (np.where(hidden, np.nan, end) for end in (low, high))
    reasons = dict(without)
    assert history.weights is not None
    assert history.distance is not None
    for i in np.flatnonzero(~hidden):
        distance, last = history.distance[:, 0, i].mean(), history.weights[-1, 0, i]
        reach = f" ({between(low[i], high[i])})"
        reasons[silos.names[i]] = (
            f"its gradients were {distance:.2f} times the user's own away from the user's, in the mean over "
            f"{history.rounds} rounds: its mean weight was {scores[i]:.4f}{reach}, and {last:.3f} at the end; "
            "distance and end have no interval"
        )
    runs = 1 + len(drawn)
    what = f"a model down and a gradient up, in {runs} probes of {history.rounds} rounds"
    up, down = (jnp.asarray(b).sum(axis=0) * runs for b in (history.bytes_up, history.bytes_down))
    crossings = tuple(
        Crossing(n, what, int(up[i]), int(down[i])) for i, n in enumerate(silos.names) if i != user and up[i] > 0
    )
    prior = np.array([1.0 if i == user or not hidden[i] else 0.0 for i in range(len(silos))])
    return Selection(
        "gradients", silos.names, user, scores, low, high, False, reasons, crossings,
        "all silos' rows resampled, the median moved to the score" if drawn else "none were made",
        "mean weight over the rounds of the probe", prior,
    ).drop()  # fmt: skip
