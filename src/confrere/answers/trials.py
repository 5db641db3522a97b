"""Trials: algorithms cross-validated on one user's training rows, and measured on its test rows if it has any.

The study's own machinery, for a single case.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from confrere.data.silos import Silos
from confrere.models import Model, metrics_of
from confrere.recipe import Recipe
from confrere.study.cases import Case, Others, cases_of
from confrere.study.contenders import Contender, contenders
from confrere.study.runner import Counter, Settings, cross_validate
from confrere.study.study import settings_of

FOLDS = 5
ROUNDS = 30
Progress = Callable[[int, int], None]


class Trial(NamedTuple):
    """One algorithm with one set of numbers, and its cross-validated loss after the last round."""

    name: str
    numbers: dict[str, float]
    score: float
    contender: Contender

    def recipe(self, user: int) -> Recipe:
        """The recipe with these numbers."""
        hyper: dict[str, Any] = dict(self.numbers) | ({"user": user} if self.contender.personal else {})
        return Recipe(self.contender.make, self.contender.static, hyper, self.contender.name)


def settings(model: Model, others: Others) -> Settings:
    """How algorithms are tried: five folds, the loss that is trained as the criterion."""
    return settings_of(model, metrics_of(model.task), None, "cv", FOLDS, others, False, 1e9)


def case_of(silos: Silos, user: int, model: Model, others: Others, seed: int) -> Case:
    """The user's case."""
    if silos.sizes("train")[user] == 0:
        raise ValueError(
            f"{silos.names[user]} has no training rows, so that nothing can be tuned for it: only algorithm='auto' "
            "with a linear model has an answer"
        )
    return cases_of(seed, silos, [user], others, model, FOLDS)[0]


def trials(
    case: Case, how: Settings, algorithms: Mapping[str, Any], grid: Mapping[str, Any], rounds: int,
    progress: Progress | None = None,
) -> list[list[Trial]]:  # fmt: skip
    """Per algorithm, every set of numbers with its score (NaN where it diverged)."""
    found = contenders(algorithms, grid, {}, rounds)
    count = Counter(progress, sum(FOLDS * len(c.candidates) for c in found))
    return [tried(case, how, c, count) for c in found]


def tried(case: Case, how: Settings, contender: Contender, count: Counter) -> list[Trial]:
    """Every set of numbers of one algorithm."""
    [(_, scores)] = cross_validate(how, contender, case.shape, [case], count, 1, always=True)
    return [
        Trial(contender.name, dict(point), float(scores[k, -1]), contender)
        for k, point in enumerate(contender.candidates)
    ]


def best(some: list[Trial]) -> Trial:
    """The trial with the lowest score; the first, if none is finite."""
    return some[int(np.nanargmin([t.score for t in some]))] if np.isfinite([t.score for t in some]).any() else some[0]
