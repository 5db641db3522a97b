"""The named algorithms beside an answer, on the same folds of the user's training rows and the same test rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from confrere import algorithms
from confrere.answers.named import numbers_in_words
from confrere.answers.predictor import Predictor
from confrere.answers.trials import Progress, best, case_of, settings, trials
from confrere.data.silos import Silos
from confrere.models import METRICS, Model
from confrere.recipe import Recipe
from confrere.simulate import simulate
from confrere.study.cases import Case, Others

if TYPE_CHECKING:
    import polars as pl

LINEAR = ("evidence", "ridge_local", "local", "fedavg", "fine_tuned", "weight_erosion")
OTHER = ("local", "fedavg", "fine_tuned", "ditto", "weight_erosion")


def compared(
    silos: Silos, user: int, model: Model, others: Others, seed: int, rounds: int, grid: Mapping[str, Any],
    answer: Predictor, progress: Progress | None, *, auto: Recipe | None = None, score: float | None = None,
    moved: bool = False,
) -> "pl.DataFrame":  # fmt: skip
    """One row per algorithm: the loss on held-out training rows, its numbers, and the metrics on test rows.

    Each algorithm is shown at the numbers that did best on the held-out rows, so that its own loss there is a little
    flattered; test rows took no part. The first row is the answer itself, with its `score`, if it has one, or with that
    of `auto`, the recipe of evidence that it came from, cross-validated once more around its own cross-validation,
    unless its intercept was `moved` afterwards.
    """
    import polars as pl

    case, how = case_of(silos, user, model, others, seed), settings(model, others)
    names = LINEAR if model.name in ("linear", "logistic") else OTHER
    given: dict[str, Any] = {name: getattr(algorithms, name) for name in names}
    if auto is not None:
        given["evidence"] = auto
    by_algorithm = trials(case, how, given, grid, rounds, progress)
    rows = [{"algorithm": "this answer", how.criterion: score, "numbers": "", **on_test_rows(case, answer)}]
    for some in by_algorithm:
        trial = best(some)
        history = simulate(
            trial.recipe(user), model, case.silos, trial.contender.rounds, seed, user=user, metrics=(), record=()
        )
        fitted = Predictor.of(model, [(1.0, history.personal(user))], silos, user, case.units)
        rows.append({
            "algorithm": trial.name, how.criterion: trial.score, "numbers": numbers_in_words(trial.numbers),
            **on_test_rows(case, fitted),
        })  # fmt: skip
    if auto is not None and not moved:
        rows[0][how.criterion] = rows[1][how.criterion]
    return pl.DataFrame(rows, infer_schema_length=None)


def on_test_rows(case: Case, fitted: Predictor) -> dict[str, float]:
    """The metrics on the user's test rows; none if there are none."""
    X, y = case.silos[case.user].rows("test")
    if not len(y):
        return {}
    if fitted.model.task == "regression":
        return {"test_rmse": float(np.sqrt(np.mean(np.square(fitted.predict(X) - case.units.back(y)))))}
    scores = jnp.log(jnp.maximum(fitted.predict_proba(X), 1e-30))
    classes, live = jnp.asarray(y, jnp.int32), jnp.ones(len(y), bool)
    return {f"test_{name}": float(METRICS[name](scores, classes, live)) for name in ("accuracy", "log_loss", "auroc")}
