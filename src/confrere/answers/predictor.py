"""The model that serves: one set of parameters, or several whose predictions are averaged."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from confrere.core import Tree
from confrere.data.intake.read import read
from confrere.data.intake.tidy import Where
from confrere.data.new_rows import check_cells
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.study.cases import round_up
from confrere.study.units import AS_THEY_ARE, Units

if TYPE_CHECKING:
    from confrere.insight.explanations.uncertainty import Interval, Uncertainty


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictions for new rows: an array with the silos' features, or a table if the silos came from one."""

    model: Model
    members: tuple[tuple[float, Tree], ...]  # weight and parameters, on the scale of `units`; the weights sum to 1
    user: str
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...] | None
    encoding: Any = field(default=None, repr=False)  # how tables become features
    units: Units = AS_THEY_ARE  # what an amount that the model tells stands for
    uncertainty: "Uncertainty | None" = field(default=None, repr=False)  # replicas, if any were made

    @classmethod
    def of(
        cls, model: Model, members: list[tuple[float, Tree]], silos: Silos, user: int, units: Units = AS_THEY_ARE
    ) -> "Predictor":
        """For a user of some silos."""
        encoding = None if silos.encoding is None else silos.encoding.for_silo(silos.names[user])
        return cls(model, tuple(members), silos.names[user], silos.feature_names, silos.label_names, encoding, units)

    @property
    def params(self) -> Tree:
        """The parameters, if there is one set of them. A network's amounts are told on the scale of `units`."""
        if len(self.members) != 1:
            raise ValueError(f"this answer averages {len(self.members)} models; see `members`")
        return self.members[0][1]

    def predict_interval(self, rows: Any, level: float = 0.95) -> "Interval":
        """How sure each prediction is: low and high of the amount, or of the probability of every class.

        For amounts the interval is for the label of a new row. For classes it is for the probability, and `possible`
        says which labels must be reckoned with at this level. `personalise(..., uncertainty=50)` makes a model that
        has intervals; `words` says what they rest on, and whether held-out rows calibrated them.
        """
        if self.uncertainty is None:
            raise ValueError("this model has no intervals: make it with personalise(..., uncertainty=50)")
        return self.uncertainty.interval(self, rows, level)

    def features(self, rows: Any, misfits: Literal["refuse", "allow"] = "refuse") -> np.ndarray:
        """Rows as features [rows, features]; what does not fit is refused: of a table also levels that nobody named,
        gaps where training had none and absurd numbers, unless they are allowed.
        """
        if self.encoding is not None and not isinstance(rows, (np.ndarray, list, jax.Array)):
            frame = read(rows)
            check_cells(frame, self.encoding, Where(self.user, np.arange(frame.height)))
            return self.encoding.transform(frame, silo=self.user, misfits=misfits)
        X = np.asarray(rows, float)
        if X.ndim != 2 or X.shape[1] != len(self.feature_names):
            raise ValueError(
                f"rows must have the {len(self.feature_names)} features {', '.join(self.feature_names[:5])}"
                f"{', ...' if len(self.feature_names) > 5 else ''}, but their shape is {X.shape}"
            )
        wrong = np.argwhere(~np.isfinite(X))
        if len(wrong):
            raise ValueError(f"row {wrong[0][0]}: {self.feature_names[wrong[0][1]]} is not finite; fill it in")
        return X

    def applied(self, function: Callable[..., jax.Array], rows: Any) -> list[tuple[float, np.ndarray]]:
        """Every member's weight and what a function makes of its parameters and the rows, padded to a coarse list of
        sizes so that few programs are needed."""
        X = self.features(rows)
        padded = np.zeros((round_up(len(X)), X.shape[1]), X.dtype)
        padded[: len(X)] = X
        return [(weight, np.asarray(function(self.model, params, padded))[: len(X)]) for weight, params in self.members]

    def scores(self, rows: Any) -> list[tuple[float, np.ndarray]]:
        """Every member's weight and scores; amounts in their own units."""
        return [(weight, self.units.back(scores)) for weight, scores in self.applied(_scores, rows)]

    def predict_proba(self, rows: Any) -> np.ndarray:
        """The probability of every class [rows, classes]."""
        if self.model.task != "classification":
            raise ValueError("a regression has no classes: use predict")
        return sum(weight * proba for weight, proba in self.applied(_shares, rows))  # type: ignore[return-value]

    def predict(self, rows: Any) -> np.ndarray:
        """The most probable class of every row (its name, if classes have names), or the predicted number."""
        if self.model.task == "regression":
            return sum(weight * scores[:, 0] for weight, scores in self.scores(rows))  # type: ignore[return-value]
        classes = self.predict_proba(rows).argmax(axis=1)
        return classes if self.label_names is None else np.array(self.label_names)[classes]


@functools.partial(jax.jit, static_argnums=0)
def _scores(model: Model, params: Tree, X: jax.Array) -> jax.Array:
    return model.apply(params, X)


@functools.partial(jax.jit, static_argnums=0)
def _shares(model: Model, params: Tree, X: jax.Array) -> jax.Array:
    return jax.nn.softmax(model.apply(params, X), axis=1)
