"""Question 5: how sure is it? Calibration on the test rows of one split, with intervals, and what was tuned on what."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from confrere.answers.named import numbers_in_words
from confrere.answers.predictor import Predictor
from confrere.data.silos import Silos
from confrere.report.contents import Group, Sureness
from confrere.report.grouping import group_of, out_of, told_of
from confrere.report.metrics import algorithm_title, amount, in_a_sentence, metric_of
from confrere.report.predictions import Predicted, outcome, predict, scores_on

ROWS_PER_BIN, MOST_BINS = 20, 6
FEW = 100  # test rows below which a warning is given
TOGETHER, ALONE, CONSTANT = "together", "alone", "always the share among training rows"


def sureness(
    predictor: Predictor, by_itself: Predictor | None, silos: Silos, user: int, config: Mapping[str, Any],
    people: str, min_group: int, label: str,
) -> tuple[Sureness, Predicted | None]:  # fmt: skip
    """The user's test rows in the order of what was predicted, and the scores there."""
    X, y = silos[user].rows("test")
    train = silos.sizes("train")[user]
    tuned = tuning_in_words(config)
    measured = what_is_measured(predictor, silos, label)
    if not len(y):
        why = f"No {people} of {silos.names[user]} were set aside for test: calibration cannot be told."
        return Sureness(train, 0, measured, {}, (), (why, *tuned)), None
    found = predict(predictor, X, y)
    models = {TOGETHER: scores_on(predictor, X, y)}
    if by_itself is not None:
        models[ALONE] = scores_on(by_itself, X, y)
    if found.classes:
        models[CONSTANT] = constant_scores(silos, user, silos.classes())
    scores = {metric: {name: values[metric] for name, values in models.items()} for metric in models[TOGETHER]}
    bins = bins_of(found, max(ROWS_PER_BIN, min_group))
    said = (*calibration_in_words(found, bins, scores, people, measured), *tuned)
    return Sureness(train, len(y), measured, scores, bins, said), found


def what_is_measured(predictor: Predictor, silos: Silos, label: str) -> str:
    """What is predicted and observed, in words."""
    if predictor.model.task == "regression":
        return label
    return outcome(silos, 1) if silos.classes() == 2 else f"the most probable class of {label}"


def constant_scores(silos: Silos, user: int, classes: int) -> dict[str, float]:
    """The scores of always predicting the shares of the classes among the user's training rows."""
    _, known = silos[user].rows("train")
    _, y = silos[user].rows("test")
    shares = (np.bincount(known.astype(int), minlength=classes) + 1.0) / (len(known) + classes)
    label = np.eye(classes)[y.astype(int)]
    square = np.square(shares - label)
    return {
        "accuracy": float((y == shares.argmax()).mean()),
        "brier": float(square[:, 1].mean() if classes == 2 else square.sum(axis=1).mean()),
        "log_loss": float(-np.log(shares[y.astype(int)]).mean()),
    }


def bins_of(found: Predicted, rows_per_bin: int) -> tuple[Group, ...]:
    """Rows in the order of what was predicted, in groups of equal size, of so many rows at least.

    >>> values = np.arange(45.0)
    >>> [b.rows for b in bins_of(Predicted(values, values, values, False), 20)]
    [23, 22]
    """
    count = max(1, min(MOST_BINS, len(found.predicted) // rows_per_bin))
    order = np.argsort(found.predicted, kind="stable")
    groups = []
    for k, places in enumerate(np.array_split(order, count)):
        rows = np.zeros(len(order), bool)
        rows[places] = True
        groups.append(group_of(f"{k + 1} of {count}", found, rows))
    return tuple(groups)


def calibration_in_words(
    found: Predicted, bins: tuple[Group, ...], scores: Mapping[str, Mapping[str, float]], people: str, measured: str
) -> list[str]:
    """The whole, the parts, the scores, and how far all that can be trusted."""
    whole = group_of("all", found, np.ones(len(found.predicted), bool))
    predicted, observed = told_of(whole, found.classes)
    side = out_of(whole)
    fit = f"predictions are too {side} on the whole" if side else "the prediction lies within the interval"
    said = [
        f"On average over {whole.rows} test {people}, {predicted} was predicted for {measured} and "
        f"{observed} observed: {fit}."
    ]
    if len(bins) > 1:
        fitting = sum(not out_of(b) for b in bins)
        said.append(
            f"With the test {people} in {len(bins)} groups by what was predicted, the prediction lies within the "
            f"interval of what was observed in {fitting} of {len(bins)}."
        )
    for metric in ("brier", "log_loss") if found.classes else ("rmse",):
        listed = ", ".join(f"{amount(metric, value)} {name}" for name, value in scores[metric].items())
        said.append(f"{metric_of(metric).title} on these rows (lower is better): {listed}.")
    if whole.rows < FEW:
        said.append(f"{whole.rows} test {people} are few: read intervals, not points.")
    return said


def tuning_in_words(config: Mapping[str, Any]) -> list[str]:
    """What was chosen by what, and on which rows."""
    every = config["algorithms"]
    open_ = [algorithm_title(name) for name in every if len(every[name]["candidates"]) > 1]
    rest = {name: every[name]["candidates"] for name in every if len(every[name]["candidates"]) <= 1}
    fixed = {name: numbers_in_words(some[0]) for name, some in rest.items() if some and some[0]}
    nothing = [algorithm_title(name) for name in rest if name not in fixed]
    said = []
    if open_ and config.get("tune") == "cv":
        said.append(
            f"Tuned: {', '.join(open_)}, by {in_a_sentence(config['criterion'])} in {config['folds']} folds of the "
            "user's own training rows. Test rows took no part in any choice."
        )
    if fixed:
        listed = ", ".join(f"{algorithm_title(name)} ({numbers})" for name, numbers in fixed.items())
        said.append(f"Not tuned, but fixed: {listed}.")
    if nothing:
        said.append(f"Nothing to tune: {', '.join(nothing)}.")
    return said
