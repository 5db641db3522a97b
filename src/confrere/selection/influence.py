"""Influence: how much the loss on the user's own test rows would rise if a silo were left out of the common model.

    phi_i = L_T(theta without i) - L_T(theta)            above 0: silo i helps
    phi_i = L_T(theta) - L_T(theta with i)               for a candidate i that is not in the pool yet

theta is the optimum of the pool (see `pool`), T are rows of the user that take no part in it: its validation rows, or
one training row in `every`. Theta without i is not trained anew, but is one Newton step on the remaining objective,

    step_i = n_i / (n - n_i) (sum over j != i of n_j H_j / (n - n_i) + A)^-1 (g_i + A theta)

with g_i and H_i the mean gradient and curvature of silo i at theta. To first order in n_i (Koh, Liang: Understanding
black-box predictions via influence functions, 2017) it is (n_i / n) <H^-1 grad L_T, g_i>, which is right for single
rows (`row_influence`), but not for a silo, whose leaving is no small change.

Grimberg: semester project report (2020), section 2.2, leaves the method open; this is our completion of it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows
from confrere.checks import check_counts, check_numbers, check_switches
from confrere.data.silo import fold_numbers
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.selection.asking import LEAST, NO_ANSWER, Others, asked, start_with
from confrere.selection.linear import Linear, linear_rows, row_losses
from confrere.selection.pool import Heard, Pool
from confrere.selection.resampling import RESAMPLES, means_of_resamples, percentiles
from confrere.selection.selection import Selection
from confrere.selection.words import between, signed

UNUSABLE = "it did not answer, or what it sent cannot come from rows: it is left out"


class Judge(NamedTuple):
    """The user's rows that judge, and the pool that they take no part in."""

    data: Linear
    test: Rows
    pool: Pool
    user: str

    def losses(self, theta: np.ndarray) -> np.ndarray:
        """The loss of every judging row [t] at theta."""
        live = np.asarray(self.test.weight) > 0
        return np.asarray(row_losses(self.test, theta, self.data.task))[live]


def influence(
    silos: Silos,
    user: int | str,
    model: Model | None = None,
    *,
    exact: bool = False,
    pool: Sequence[str] | None = None,
    every: int = 3,
    l2: float = 0.01,
    others: Others = "all",
    silent: Sequence[str] = (),
    min_count: int = LEAST,
    heard: Heard | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Selection:
    """Rank silos by how much the user's loss would rise without them; higher is better, below 0 a silo does harm.

    Args:
        model: linear or logistic regression, by default the one for the labels.
        exact: train anew without each silo, in place of one Newton step: the answer that the step approximates.
        pool: silos that learn together already; the others are candidates, judged by what adding them would gain. By
            default everybody is in the pool.
        every: one training row of the user in so many judges, unless there are validation rows: then those do.
        l2: of the objective mean loss + l2/2 |w|^2.
        others: "all": the other silos use all their rows; "train": their training rows only.
        silent: silos that never answered: they are left out, and training can start without them.
        min_count: silos with fewer training rows are not asked, as what they sent would be about so few.
        heard: (silo, curvature) -> what arrives in place of what it says, e.g. to play a silo that lies.
        resamples: draws of the judging rows behind the intervals; the models stay as they are.

    By default those with a score above 0 are kept; see `Selection` for other choices.

    >>> import confrere as cf
    >>> found = cf.selection.influence(cf.data.titanic("age-strict"), user="0-20")
    >>> found.lower_is_better, found.ranking[0]
    (False, 'unknown')
    """
    check_switches(exact=exact)
    check_counts(resamples=resamples)
    silos, place, model = start_with(silos, user, model, others)
    who, without = asked(silos, place, silent, min_count)
    with jax.enable_x64(True):
        judge = judge_of(silos, place, model, l2, every, heard, seed)
        members = [silos.names[place], *(who if pool is None else in_pool(silos, place, pool, who))]
        differences = influences(judge, members, who, exact)
    without |= {name: NO_ANSWER if heard is None else UNUSABLE for name in who if name not in differences}
    return assembled(silos, place, differences, set(members), without, judge.pool, resamples, seed)


def in_pool(silos: Silos, user: int, pool: Sequence[str], who: Sequence[str]) -> list[str]:
    """The members of the pool that answer, the user apart."""
    if isinstance(pool, str):
        raise TypeError(f"pool must be a list of names, as in [{pool!r}]")
    named = {silos.names[silos.index(name)] for name in pool} - {silos.names[user]}
    return [name for name in who if name in named]


def judge_of(silos: Silos, user: int, model: Model, l2: float, every: int, heard: Heard | None, seed: int) -> Judge:
    """The pool, and the user's rows that judge, which are taken out of it."""
    check_numbers(l2=l2)
    check_counts(every=every)
    data = linear_rows(silos, model, l2, "influence")
    rows = {name: data.of(i) for i, name in enumerate(silos.names)}
    name, own = silos.names[user], rows[silos.names[user]]
    if silos.sizes("validation")[user]:
        X, y = silos[user].rows("validation")
        X = jnp.concatenate([jnp.asarray(X, own.X.dtype), jnp.ones((len(y), 1), own.X.dtype)], axis=1)
        test = Rows(X, jnp.asarray(y, own.y.dtype), jnp.ones(len(y), own.X.dtype))
    else:
        judges = judging_rows(silos, user, every, seed, own.y.shape[0])
        test = own._replace(weight=own.weight * judges)
        rows[name] = own._replace(weight=own.weight * ~judges)
    return Judge(data, test, Pool(rows, data.penalty, model.task, name, heard), name)


def judging_rows(silos: Silos, user: int, every: int, seed: int, length: int) -> np.ndarray:
    """Which of the user's training rows judge [length]: one in `every`, class by class."""
    y = silos[user].rows("train")[1]
    if every < 2 or len(y) < every:
        raise ValueError(
            f"silo {silos.names[user]!r} has {len(y)} training rows, of which one in every={every} judges: every must "
            "be 2 or more, and at most as many as rows"
        )
    judges = np.zeros(length, bool)
    judges[: len(y)] = fold_numbers(y, every, np.random.default_rng(seed)) == 0
    return judges


def influences(judge: Judge, members: Sequence[str], who: Sequence[str], exact: bool) -> dict[str, np.ndarray]:
    """By silo, how much more each judging row [t] loses without it than with it."""
    theta, told = judge.pool.optimum(members, np.zeros_like(judge.data.penalty))
    candidates = judge.pool.ask([name for name in who if name not in members], theta)
    base = judge.losses(theta)
    found: dict[str, np.ndarray] = {}
    for name in who:
        if name not in told and name not in candidates:
            continue
        kept = {n: c for n, c in told.items() if n != name} | {n: c for n, c in candidates.items() if n == name}
        moved = judge.pool.optimum(list(kept), theta)[0] if exact else judge.pool.newton(kept.values(), theta)
        change = judge.losses(moved) - base
        found[name] = change if name in told else -change
    return found


def assembled(
    silos: Silos, user: int, differences: Mapping[str, np.ndarray], members: set[str], without: Mapping[str, str],
    pool: Pool, resamples: int, seed: int,
) -> Selection:  # fmt: skip
    """The selection, those who help kept."""
    nothing = dict.fromkeys(silos.names, np.nan)
    low, high = nothing.copy(), nothing.copy()
    scores = nothing | {name: float(rows.mean()) for name, rows in differences.items()}
    if differences:
        ends = percentiles(means_of_resamples(np.stack(list(differences.values())), resamples, seed))
        for values, end in zip((low, high), ends, strict=True):
            values.update(zip(differences, map(float, end), strict=True))
    reasons = dict(without)
    for name in differences:
        change = f"{signed(scores[name])} a row ({between(low[name], high[name])})"
        does = verdict(scores[name], low[name], high[name])
        said = "without it the user's loss would rise by" if name in members else "if it joined, the loss would fall by"
        reasons[name] = f"{said} {change}: {does}"
    column = lambda values: np.array([values[name] for name in silos.names], float)  # noqa: E731
    prior = np.array([1.0 if i == user or n in differences else 0.0 for i, n in enumerate(silos.names)])
    return Selection(
        "influence", silos.names, user, column(scores), column(low), column(high), False, reasons, pool.crossings(),
        "the judging rows resampled, the models as they were", "rise of the user's loss a row without the silo", prior,
    ).above(0.0)  # fmt: skip


def verdict(score: float, low: float, high: float) -> str:
    """What a score says, and whether its interval leaves a doubt.

    >>> verdict(0.1, 0.05, 0.2), verdict(-0.1, -0.3, 0.1)
    ('it helps', 'it seems to do harm, but chance may explain it')
    """
    if score == 0:
        return "it makes no difference"
    if low > 0 or high < 0:
        return "it helps" if score > 0 else "it does harm"
    return f"it seems to {'help' if score > 0 else 'do harm'}, but chance may explain it"
