"""Auto for models without a usable curvature: the average over cross-validated candidates.

    a_c = exp(-n * loss of c on held-out rows), normalised;   prediction = sum of a_c * prediction of c

over training alone, fine-tuned FedAvg, a path of Ditto and a path of Weight Erosion, each at several learning rates.
"""

from typing import Any, NamedTuple

import numpy as np

from confrere import algorithms
from confrere.answers.named import kept_weight, listened_to, numbers_in_words
from confrere.answers.replicas import Run
from confrere.answers.sent import in_runs
from confrere.answers.trials import FOLDS, Progress, Trial, case_of, settings, trials
from confrere.core import Tree
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.history import History
from confrere.models import Model
from confrere.simulate import simulate
from confrere.study.cases import Case, Others
from confrere.study.units import Units, told_of_labels

LEARNING_RATES = (0.03, 0.1, 0.3)
PULLS = (0.03, 0.3, 3.0)
EROSIONS = (0.003, 0.01, 0.03, 0.1)
RIDGE = 1.0  # the penalty on all parameters, over the number of rows
NEGLIGIBLE = 0.01  # candidates below are left out, and the others weigh more


class Averaged(NamedTuple):
    """The members of the average, and what is said about them."""

    members: list[tuple[float, Tree]]
    weights: dict[str, float]
    relevance: dict[str, float]
    candidates: dict[str, float]
    scores: dict[str, float]
    score: float
    alone: float
    history: History  # of the candidate that counts most
    units: Units  # of the amounts that the members tell
    shared: tuple[Shared, ...]  # what left the silos, all runs counted
    runs: tuple[Run, ...]  # behind the members
    seen: Silos  # that they ran on


def candidates(rows: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The algorithms of the average, and the values of their numbers."""
    l2 = RIDGE / max(rows, 1)
    grid = {
        "local": {"lr": LEARNING_RATES, "l2": [l2]},
        "fine_tuned": {"lr": LEARNING_RATES, "l2": [l2]},
        "ditto": {"lr": LEARNING_RATES, "pull": PULLS, "l2": [l2]},
        "weight_erosion": {"lr": LEARNING_RATES, "p_d": EROSIONS, "l2": [l2]},
    }
    return {name: getattr(algorithms, name) for name in grid}, grid


def exponential_weights(scores: np.ndarray, rows: int, task: str) -> np.ndarray:
    """exp(-n * score), normalised; for a regression the score is the RMSE, and n times its logarithm counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = rows * (np.log(np.maximum(scores, 1e-12)) if task == "regression" else scores)
    loss = np.where(np.isfinite(loss), loss, np.inf)
    if not np.isfinite(loss).any():
        return np.full(len(scores), 1 / len(scores))
    weights = np.exp(-(loss - loss.min()))
    weights = np.where(weights < NEGLIGIBLE * weights.sum(), 0, weights)
    return weights / weights.sum()


def by_average(
    silos: Silos, user: int, model: Model, others: Others, seed: int, rounds: int, progress: Progress | None
) -> Averaged:
    """Cross-validate the candidates, and train those that count on all rows."""
    case, how = case_of(silos, user, model, others, seed), settings(model, others)
    algorithms_of, grid = candidates(case.train_rows)
    by_algorithm = trials(case, how, algorithms_of, grid, rounds, progress)
    every = [trial for some in by_algorithm for trial in some]
    shares = exponential_weights(np.array([t.score for t in every]), case.train_rows, model.task)
    chosen = [(float(a), trial) for a, trial in zip(shares, every, strict=True) if a > 0]
    chosen.sort(key=lambda pair: -pair[0])
    runs = [simulate(t.recipe(user), model, case.silos, rounds, seed, user=user, metrics=()) for _, t in chosen]
    heard = [listened_to(history, silos, user) for history in runs]
    weights = {name: sum(a * h[name] for (a, _), h in zip(chosen, heard, strict=True)) for name in silos.names}
    alone = min((t.score for t in by_algorithm[0] if np.isfinite(t.score)), default=float("nan"))
    return Averaged(
        [(a, history.personal(user)) for (a, _), history in zip(chosen, runs, strict=True)],
        weights,
        eroded_relevance(chosen, by_algorithm[-1], runs, silos, user, case.silos, model, rounds, seed),
        {label(t): a for a, t in chosen},
        {label(t): t.score for t in every},
        float(sum(a * t.score for a, t in chosen)),
        alone,
        runs[0],
        case.units,
        (*told_of_labels(case.silos, model), *sent_in_all(case, model, by_algorithm, [t for _, t in chosen])),
        tuple(Run(trial.recipe(user), rounds) for _, trial in chosen),
        case.silos,
    )


def sent_in_all(case: Case, model: Model, by_algorithm: list[list[Trial]], chosen: list[Trial]) -> tuple[Shared, ...]:
    """What left the silos in all runs: trials of every candidate on folds, training the chosen ones, seeing erosion."""
    found: list[Shared] = []
    for some in by_algorithm:
        trained = sum(trial.name == some[0].name for trial in chosen)
        if some[0].name == "weight_erosion":
            trained = max(trained, 1)  # run for the relevance, at least
        found += in_runs(case, model, some[0].contender, FOLDS * len(some), trained)
    return tuple(found)


def eroded_relevance(
    chosen: list[tuple[float, Trial]], erosions: list[Trial], runs: list[History], silos: Silos, user: int,
    seen: Silos, model: Model, rounds: int, seed: int,
) -> dict[str, float]:  # fmt: skip
    """How much weight each silo kept in Weight Erosion, in the run that counts most, or else in the best one."""
    for (_, trial), history in zip(chosen, runs, strict=True):
        if trial.name == "weight_erosion":
            return kept_weight(history, silos, user)
    finite = [t for t in erosions if np.isfinite(t.score)] or erosions
    trial = min(finite, key=lambda t: t.score)
    return kept_weight(simulate(trial.recipe(user), model, seen, rounds, seed, user=user, metrics=()), silos, user)


def label(trial: Trial) -> str:
    """A candidate's name with its numbers."""
    return f"{trial.name} ({numbers_in_words(trial.numbers)})"
