"""PersonalizedClassifier and PersonalizedRegressor."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[missing-module-attribute]

from confrere.data.intake.tidy import Where
from confrere.data.new_rows import check_cells
from confrere.estimator.fitting import Fitted, Histories, SiloModel, fit_silo
from confrere.estimator.rows import (
    categories_of,
    frame_of,
    is_table,
    silo_name,
    silo_names,
    silos_of,
    tables_of,
)
from confrere.history import History
from confrere.models import Model, linear, logistic


class Personalized(BaseEstimator):
    """What both estimators share: a model for every silo, or for the user alone, from all silos' rows."""

    user: Any
    algorithm: Any
    random_state: Any
    models_: dict[str, SiloModel]
    weights_: dict[str, dict[str, float]]
    relevance_: dict[str, dict[str, float]]
    algorithm_: dict[str, str]
    notes_: tuple[str, ...]
    _encoding: Any

    def __init__(self, user: Any = None, algorithm: Any = "auto", random_state: Any = None):
        self.user = user
        self.algorithm = algorithm
        self.random_state = random_state

    @abstractmethod
    def _numbers(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Labels as numbers, and the classes that they count, if they do."""

    def _fit(self, X: Any, y: Any, silo: Any, model: Model) -> Self:
        given = self._checked(X, reset=True)
        numbers, classes = self._numbers(self._labels(y, given))
        names = silo_names(silo, len(numbers))
        frame = frame_of(given)
        tables = tables_of(
            frame, categories_of(given), numbers, None if classes is None else [str(c) for c in classes], depth=3
        )
        silos = silos_of(tables, names)
        users = list(silos.names) if self.user is None else [self._known_user(silos.names, names is not None)]
        seed = self._seed()
        found = {name: fit_silo(silos, silos.index(name), model, self.algorithm, seed) for name in users}
        self._columns, self._encoding, self._silent = tuple(frame.columns), silos.encoding, names is None
        self.notes_ = (*tables.plan.left_out.values(), *silos.notes)
        if classes is not None:
            self.classes_ = classes
        return self._keep(found)

    def _keep(self, found: dict[str, Fitted]) -> Self:
        self.models_ = {name: one.model for name, one in found.items()}
        self.weights_ = {name: dict(one.weights) for name, one in found.items()}
        self.relevance_ = {name: dict(one.relevance) for name, one in found.items()}
        self.algorithm_ = {name: one.algorithm for name, one in found.items()}
        self._rounds = {name: one.history for name, one in found.items()}
        return self

    @property
    def history_(self) -> Mapping[str, History]:
        """The rounds of exchange behind each silo's model; a pickle does not keep them.

        Those of a silo are made when `history_[silo]` is first asked for, and not before: the whole exchange is
        compiled and run, which can take many seconds for each silo.
        """
        check_is_fitted(self)
        if not hasattr(self, "_rounds"):
            raise AttributeError("the history is not kept in a pickle or a copy, which would hold every silo's rows")
        return Histories(self._rounds)

    def __getstate__(self) -> dict[str, Any]:  # type: ignore[override]
        return {name: value for name, value in super().__getstate__().items() if name != "_rounds"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[missing-attribute]
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: Any, reset: bool) -> Any:
        """X as it is if it is a table, else as an array of numbers; its width and names are checked or kept."""
        if not is_table(X):
            least = 2 if reset else 1
            return validate_data(self, X, reset=reset, ensure_all_finite="allow-nan", ensure_min_samples=least)
        if min(X.shape) == 0:
            raise ValueError(f"the table has {X.shape[0]} rows and {X.shape[1]} columns: there is nothing to work on")
        return validate_data(self, X, reset=reset, skip_check_array=True)

    def _labels(self, y: Any, X: Any) -> np.ndarray:
        """Labels, one for each row of X and none missing."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        check_consistent_length(X, labels)
        assert_all_finite(labels, input_name="y")
        if labels.dtype.kind == "O" and any(label is None for label in labels):
            raise ValueError("Input y contains None: leave out the rows without a label")
        return labels

    def _known_user(self, names: tuple[str, ...], told: bool) -> str:
        """The user's name, if it is one of the silos."""
        if not told:
            raise ValueError(f"the user is {self.user!r}, but nobody said whose rows these are: give silo=")
        user = silo_name(self.user)
        if user not in names:
            raise ValueError(f"the user {self.user!r} is none of the silos: {', '.join(names)}")
        return user

    def _seed(self) -> int:
        """The random state as the seed of a run."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _scores(self, X: Any, silo: Any) -> np.ndarray:
        """The scores [rows, outputs] that the right model gives each row."""
        check_is_fitted(self)
        given = self._checked(X, reset=False)
        frame = frame_of(given, self._columns)
        check_cells(frame, self._encoding, Where(None, np.arange(frame.height)))
        features = self._encoding.transform(frame, misfits="warn", depth=3)
        names = self._whose(silo_names(silo, len(features)))
        if isinstance(names, str):
            return self.models_[names].scores(features)
        scores = np.empty((len(features), len(next(iter(self.models_.values())).intercepts)))
        for name in np.unique(names):
            scores[names == name] = self.models_[name].scores(features[names == name])
        return scores

    def _whose(self, names: np.ndarray | None) -> str | np.ndarray:
        """The model for all rows, or for each."""
        fitted = list(self.models_)
        if self.user is not None or (names is None and len(fitted) == 1):
            return fitted[0]
        if names is None:
            raise ValueError(f"there is a model for each of {', '.join(fitted)}: say whose rows these are with silo=")
        if self._silent:
            raise ValueError("the model was fitted without silo=, so there is none for a silo: predict without it")
        unknown = np.flatnonzero(~np.isin(names, fitted))
        if len(unknown):
            raise ValueError(
                f"there is no model for the silo {names[unknown[0]]!r} (row {unknown[0]}, counted from 0); "
                f"there is one for {', '.join(fitted)}. In cross-validation, let every fold train on rows of each silo"
            )
        return names


class PersonalizedClassifier(ClassifierMixin, Personalized):
    """A logistic regression for every silo, each from its own rows and what it can learn from the other silos.

    Args:
        user: the silo for which a model is wanted; None: one for every silo.
        algorithm: "auto" (evidence-weighted borrowing), or what `personalise` takes: a name such as "weight_erosion",
            whose numbers are tuned on the silo's own rows, or a recipe.
        random_state: the seed of named algorithms; "auto" draws nothing.

    `fit(X, y, silo)` takes an array of numbers or a pandas, polars or pyarrow table, labels of any kind, and whose row
    each is. NaN is a missing value: it becomes the mean, and is indicated. Columns of text or of a category type are
    categories. Numbers are standardised with statistics that silos share, in arrays too. Without `silo` it is an
    ordinary classifier, trained alone at its ridge optimum.

    After fitting, `models_`, `weights_` (shares of the information, by silo), `relevance_`, `algorithm_` (what was
    chosen, and why) and `history_` have one entry for each silo that has a model; `notes_` says what was noticed about
    the table. In pipelines and cross-validation, `set_fit_request(silo=True)` (and `set_score_request`,
    `set_predict_request`) route the silos.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X, silo = rng.normal(size=(180, 3)), np.repeat(["north", "south", "west"], 60)
    >>> y = np.where(X @ [1.0, -1.0, 0.5] + rng.logistic(size=180) > 0, "ill", "well")
    >>> model = cf.PersonalizedClassifier().fit(X, y, silo=silo)
    >>> model.predict(X[:2], silo=["north", "south"]).tolist()
    ['ill', 'ill']
    >>> model.weights_["north"]["south"] > 0.2
    True
    >>> cf.PersonalizedClassifier().fit(X, y).algorithm_["all"]
    'auto (training alone, at the ridge optimum): there is no other silo to learn from.'
    """

    classes_: np.ndarray

    def _numbers(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y has only one class, {classes[0]}: there is nothing to learn")
        return numbers.astype(np.int64), classes

    def fit(self, X: Any, y: Any, silo: Any = None) -> Self:
        """Fit a model for every silo, or for the user; `silo` names each row's silo, or one for all rows."""
        return self._fit(X, y, silo, logistic())

    def predict_proba(self, X: Any, silo: Any = None) -> np.ndarray:
        """The probability of every class [rows, classes], by the user's model, else by that of each row's silo."""
        scores = self._scores(X, silo)
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, X: Any, silo: Any = None) -> np.ndarray:
        """The most probable class of every row."""
        place = self._scores(X, silo).argmax(axis=1)
        return self.classes_[place]

    def score(self, X: Any, y: Any, sample_weight: Any = None, silo: Any = None) -> float:  # type: ignore[override]
        """The accuracy."""
        return float(accuracy_score(y, self.predict(X, silo), sample_weight=sample_weight))


class PersonalizedRegressor(RegressorMixin, Personalized):
    """A linear regression for every silo, each from its own rows and what it can learn from the other silos.

    Arguments, `fit` and attributes are those of `PersonalizedClassifier`; labels are numbers.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X, silo = rng.normal(size=(180, 3)), np.repeat(["north", "south", "west"], 60)
    >>> y = 50 + X @ [3.0, -2.0, 1.0] + rng.normal(size=180)
    >>> model = cf.PersonalizedRegressor(user="north").fit(X, y, silo=silo)
    >>> round(model.score(X, y), 1), list(model.models_)
    (0.9, ['north'])
    """

    def _numbers(self, y: np.ndarray) -> tuple[np.ndarray, None]:
        try:
            return y.astype(np.float64), None
        except (TypeError, ValueError) as problem:
            raise ValueError(f"y must hold numbers: {problem}; for classes use PersonalizedClassifier") from problem

    def fit(self, X: Any, y: Any, silo: Any = None) -> Self:
        """Fit a model for every silo, or for the user; `silo` names each row's silo, or one for all rows."""
        return self._fit(X, y, silo, linear())

    def predict(self, X: Any, silo: Any = None) -> np.ndarray:
        """The number predicted for every row, by the user's model, else by that of each row's silo."""
        return self._scores(X, silo)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None, silo: Any = None) -> float:  # type: ignore[override]
        """The coefficient of determination, R²."""
        return float(r2_score(y, self.predict(X, silo), sample_weight=sample_weight))
