"""Question 3: what did the model learn, and how does it differ from one trained alone?

For linear models the coefficients, as in Figure 2 of the Weight Erosion paper; for others, permutation importance
(L. Breiman, Random forests, Machine Learning 45, 2001): how much worse predictions get when a column is shuffled.
"""

import functools
from typing import Any

import jax
import numpy as np

from confrere.answers.predictor import Predictor
from confrere.borrowing.glm import QUICK_COMPILATION, base_precision, rows_of, scores_of, to_params
from confrere.borrowing.local import ridge_optimum
from confrere.core import Block, Tree
from confrere.data.columns import columns_of
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.report.contents import Effect, Learned
from confrere.report.metrics import number, signed
from confrere.report.predictions import label_of, loss_of, outcome
from confrere.report.steps import AS_GIVEN, Meanings, Step, steps_of
from confrere.study.cases import round_up

SHUFFLES = 10
INTERCEPT = "intercept"
NOTABLE = 0.05  # coefficients below say nothing about a direction


def trained_alone(predictor: Predictor, silos: Silos, user: int, ridge: float = 1.0) -> Predictor | None:
    """The model that the user trains alone, the ridge optimum of its training rows; None if the model has none."""
    if predictor.model.name not in ("linear", "logistic") or silos.sizes("train")[user] == 0:
        return None
    block = silos.block("train", round_up(max(silos.sizes("train"))))
    own = jax.tree.map(lambda a: a[user], block)
    fitted = jax.device_get(_optimum(predictor.model, predictor.params, own, ridge))
    return Predictor.of(predictor.model, [(1.0, fitted)], silos, user)


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK_COMPILATION)
def _optimum(model: Model, like: Tree, own: Block, ridge: jax.Array) -> Tree:
    rows = rows_of(model, own)
    prior = ridge * base_precision(rows.X.shape[1], scores_of(like, model)).astype(rows.X.dtype)
    return to_params(ridge_optimum(rows, model.task, prior), like, model)


def learned(
    predictor: Predictor, by_itself: Predictor | None, silos: Silos, user: int, meanings: Meanings | None = None,
    label: str | None = None,
) -> Learned:  # fmt: skip
    """Coefficients where there is one set of them and one score, else permutation importance."""
    one_score = predictor.model.task == "regression" or len(silos.label_names or (0, 1)) == 2
    if predictor.model.name in ("linear", "logistic") and one_score and len(predictor.members) == 1:
        return coefficients(predictor, by_itself, silos, user, meanings, label or label_of(silos))
    return importance(predictor, by_itself, silos, user)


def coefficients(
    predictor: Predictor, by_itself: Predictor | None, silos: Silos, user: int, meanings: Meanings | None, label: str
) -> Learned:
    """The coefficients of both models, those of the intercepts last."""
    steps = [*steps_of(silos, user, meanings).items(), (INTERCEPT, Step(""))]
    ours = slopes(predictor)
    theirs = [None] * len(steps) if by_itself is None else slopes(by_itself)
    effects = tuple(
        Effect(name, step.factor * a, None if b is None else step.factor * b, step.words)
        for (name, step), a, b in zip(steps, ours, theirs, strict=True)
    )
    per = (
        AS_GIVEN
        if silos.encoding is None
        else "per standard deviation of a number, one group against the other for the rest"
    )
    if predictor.model.task == "regression":
        unit = f"change of the predicted {label} {per}"
        reading = f"To the right: a higher value of the feature raises the predicted {label}."
    else:
        unit = f"log-odds of {outcome(silos, 1)} {per}"
        reading = f"To the right: the feature speaks for {outcome(silos, 1)}; to the left: for {outcome(silos, 0)}."
    return Learned("coefficients", unit, effects, (*difference_in_words(effects), reading))


def slopes(predictor: Predictor) -> list[float]:
    """The coefficients of the label, or of the log-odds of the second class, and the intercept."""
    w, b = np.asarray(predictor.params["w"], float), np.asarray(predictor.params["b"], float)
    both = np.concatenate([w, b[None]])
    if both.shape[1] > 1:
        return [float(v) for v in both[:, 1] - both[:, 0]]
    found = predictor.units.spread * both[:, 0]
    found[-1] += predictor.units.centre
    return [float(v) for v in found]


def difference_in_words(effects: tuple[Effect, ...]) -> list[str]:
    """The strongest features, the largest difference from training alone, and what changed its direction.

    >>> difference_in_words((Effect("age", 1.0, 0.5), Effect("sex", -2.0, -1.9)))[0]
    'The model leans most on sex (−2.00) and age (+1.00).'
    """
    features = [e for e in effects if e.name != INTERCEPT] or list(effects)
    strongest = sorted(features, key=lambda e: -abs(e.together))[:3]
    listed = [f"{e.name} ({signed(e.together, 2)}{', ' * bool(e.per)}{e.per})" for e in strongest]
    said = [f"The model leans most on {', '.join(listed[:-1])} and {listed[-1]}." if listed[1:] else
            f"The model leans on {listed[0]}."]  # fmt: skip
    known = [(e, e.alone) for e in features if e.alone is not None]
    if not known:
        return said
    most, was = max(known, key=lambda pair: abs(pair[0].together - pair[1]))
    if round(most.together, 2) == round(was, 2):
        return [*said, "It is the same as a model trained alone."]
    said.append(
        f"Learning together changed {most.name} most: {signed(was, 2)} alone, {signed(most.together, 2)} together."
    )
    turned = [e.name for e, a in known if e.together * a < 0 and min(abs(e.together), abs(a)) > NOTABLE]
    if turned:
        said.append(f"The direction is another one than alone for {', '.join(turned)}.")
    return said


def importance(predictor: Predictor, by_itself: Predictor | None, silos: Silos, user: int) -> Learned:
    """How much the loss on test rows (training rows, if there are none) rises when a column is shuffled."""
    part = "test" if silos.sizes("test")[user] else "train"
    X, y = silos[user].rows(part)
    columns = columns_of(silos)
    rises = functools.partial(rises_of, X=X, y=y, columns=columns)
    ours = rises(predictor)
    theirs = [None] * len(columns) if by_itself is None else rises(by_itself)
    effects = tuple(Effect(name, a, b) for name, a, b in zip(columns, ours, theirs, strict=True))
    what = "rise of the squared error" if predictor.model.task == "regression" else "rise of the log-loss"
    unit = f"{what} on {part} rows when the column is shuffled ({SHUFFLES} times)"
    top = max(effects, key=lambda e: e.together)
    said = f"Predictions suffer most when {top.name} is shuffled: a {what} of {number(top.together)}."
    return Learned("importance", unit, effects, (said,))


def rises_of(predictor: Predictor, X: np.ndarray, y: np.ndarray, columns: dict[str, list[int]]) -> list[float]:
    """The mean rise of the loss for every column; the same shuffles for every model."""
    before = loss_of(predictor, X, y)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(y)) for _ in range(SHUFFLES)]

    def shuffled(places: list[int], order: Any) -> np.ndarray:
        changed = np.array(X)
        changed[:, places] = X[order][:, places]
        return changed

    return [
        float(np.mean([loss_of(predictor, shuffled(places, order), y) - before for order in orders]))
        for places in columns.values()
    ]
