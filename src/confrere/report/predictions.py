"""Predictions on a user's test rows, as the questions about patients need them."""

from typing import NamedTuple

import numpy as np

from confrere.answers.predictor import Predictor
from confrere.data.silos import Silos

TINY = 1e-12


class Predicted(NamedTuple):
    """Row by row: what was predicted and what happened, on one scale.

    Two classes: the probability of the second one, and whether it is the label. More classes: the probability of the
    most probable one, and whether it is the label. A regression: the predicted and the true number. `right`: whether
    the most probable class is the label; in a regression, the absolute error.
    """

    predicted: np.ndarray
    observed: np.ndarray
    right: np.ndarray
    classes: bool  # whether these are shares


def label_of(silos: Silos) -> str:
    """The name of what is predicted.

    >>> label_of(Silos.from_arrays([([[0.0], [1.0]], [0, 1])]))
    'the label'
    """
    return "the label" if silos.encoding is None else silos.encoding.label


def outcome(silos: Silos, place: int) -> str:
    """A class in words: with the name of the label, if there is one.

    >>> outcome(Silos.from_arrays([([[0.0], [1.0]], [0, 1])]), 1)
    '1'
    """
    name = silos.label_names[place] if silos.label_names else str(place)
    return name if silos.encoding is None else f"{silos.encoding.label} = {name}"


def predict(predictor: Predictor, X: np.ndarray, y: np.ndarray) -> Predicted:
    """A model on rows."""
    if predictor.model.task == "regression":
        guess = np.asarray(predictor.predict(X), float)
        return Predicted(guess, np.asarray(y, float), np.abs(guess - y), classes=False)
    proba = np.asarray(predictor.predict_proba(X), float)
    label = np.asarray(y).astype(int)
    right = (proba.argmax(axis=1) == label).astype(float)
    if proba.shape[1] == 2:
        return Predicted(proba[:, 1], (label == 1).astype(float), right, classes=True)
    return Predicted(proba.max(axis=1), right, right, classes=True)


def loss_of(predictor: Predictor, X: np.ndarray, y: np.ndarray) -> float:
    """The mean log-loss, or the mean squared error."""
    if predictor.model.task == "regression":
        return float(np.mean(np.square(np.asarray(predictor.predict(X), float) - y)))
    proba = np.asarray(predictor.predict_proba(X), float)
    return float(-np.log(np.maximum(proba[np.arange(len(y)), np.asarray(y).astype(int)], TINY)).mean())


def scores_on(predictor: Predictor, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The scores on test rows: Brier score, log-loss and accuracy, or the errors of a regression."""
    found = predict(predictor, X, y)
    if not found.classes:
        return {"rmse": float(np.sqrt(loss_of(predictor, X, y))), "mae": float(found.right.mean())}
    proba = np.asarray(predictor.predict_proba(X), float)
    label = np.eye(proba.shape[1])[np.asarray(y).astype(int)]
    # of two classes the second alone counts, as is usual; of more, all
    square = np.square(proba - label)[:, 1] if proba.shape[1] == 2 else np.square(proba - label).sum(axis=1)
    return {"accuracy": float(found.right.mean()), "brier": float(square.mean()), "log_loss": loss_of(predictor, X, y)}
