"""Subjective explainability: what a clinician expects of some cases, and how well a model agrees with it.

    score = (1/t) sum over cases of (u(x) - h(x))^2                                                        (8.11)

with u the guess and h the prediction: an amount, or the probability of the second of two classes; with more classes the
squares are summed over classes. 0 is full agreement. Labels are not needed: the score says whether the model is
understandable to that clinician, not whether either is right. Jung: Federated learning, from theory to practice (2024),
section 8.4. Where this goes beyond the book: guesses of classes, and an interval from drawing the cases anew.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from confrere.selection.resampling import RESAMPLES, means_of_resamples, percentiles

if TYPE_CHECKING:
    import polars as pl

    from confrere.answers.predictor import Predictor

COLUMN = "guess"
LEAST = 5  # cases from which an interval is told


@dataclass(frozen=True, eq=False)
class Guesses:
    """Cases and what a clinician guesses for each: amounts [t], or the probabilities of the classes [t, classes].

    >>> Guesses.of([[0.5], [1.5]], [0.2, "ill"], classes=2, label_names=("well", "ill")).said.tolist()
    [[0.8, 0.2], [0.0, 1.0]]
    """

    X: np.ndarray  # [t, features]
    said: np.ndarray

    def __post_init__(self) -> None:
        wrong = np.argwhere(~np.isfinite(self.X))
        if len(wrong):
            case, feature = wrong[0].tolist()
            raise ValueError(
                f"case {case} (counted from 0): feature {feature} is {self.X[case, feature]:g}: fill it in, or leave "
                "the case out"
            )

    @classmethod
    def of(
        cls, X: Any, said: Sequence[Any], classes: int | None, label_names: Sequence[str] | None = None
    ) -> "Guesses":
        """From features and guesses; `classes` is None for amounts.

        Of two classes a guess is the probability of the second, or the name of one; of more it is a name or a number.
        """
        rows = np.asarray(X, float)
        if rows.ndim != 2 or len(rows) != len(said):
            raise ValueError(f"{len(said)} guesses for cases of the shape {rows.shape}: one guess per case is needed")
        if not len(said):
            raise ValueError("there is no guess: enter one case at least")
        if classes is None:
            return cls(rows, np.array([amount(value, k) for k, value in enumerate(said)]))
        return cls(rows, np.array([shares_of(value, k, classes, label_names) for k, value in enumerate(said)]))

    def __len__(self) -> int:
        return len(self.said)


def amount(value: Any, case: int) -> float:
    """A guess as a number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(f"case {case} (counted from 0): the guess {value!r} is no number")
    return number


def shares_of(value: Any, case: int, classes: int, names: Sequence[str] | None) -> np.ndarray:
    """A guess as probabilities of all classes."""
    known = list(names) if names is not None else [str(c) for c in range(classes)]
    if str(value) in known:
        return np.eye(classes)[known.index(str(value))]
    wanted = f"a probability of {known[1]!r} between 0 and 1, or one of " if classes == 2 else "one of "
    problem = f"case {case} (counted from 0): the guess {value!r} must be {wanted}{', '.join(known)}"
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(problem) from None
    if classes == 2 and 0 <= number <= 1:
        return np.array([1 - number, number])
    if classes > 2 and names is None and number in range(classes):
        return np.eye(classes)[int(number)]
    raise ValueError(problem)


def read_guesses(
    file: Any, predictor: "Predictor", classes: int | None, column: str = COLUMN, formulas: Any = None
) -> Guesses:
    """Guesses from a CSV, Parquet or JSON file (a list of objects), or a table: features of cases, and a guess each.

    `predictor` says how tables become features; `formulas` are derived columns, if the data has some.
    """
    from confrere.data.derive import derived
    from confrere.data.intake.options import did_you_mean
    from confrere.data.new_rows import by_name

    frame = table_of(file)
    what = str(file) if isinstance(file, str | Path) else "the table of guesses"
    if column not in frame.columns:
        raise ValueError(f"{what} has no column {column!r}{did_you_mean(column, frame.columns)}: write the guess there")
    missing = frame[column].is_null()
    if missing.any():
        raise ValueError(f"{what}: row {int(missing.arg_true()[0])} (counted from 0) has no {column}: fill it in")
    said = frame[column].to_list()
    with told_of_cases(what, predictor.user):
        rows = derived(frame.drop(column), formulas, predictor.user) if formulas else frame.drop(column)
        X = predictor.features(rows if predictor.encoding is not None else by_name(rows, predictor.feature_names, what))
        return Guesses.of(X, said, classes, predictor.label_names)


@contextlib.contextmanager
def told_of_cases(what: str, user: str) -> Iterator[None]:
    """Say of a mistake that it is in the guesses, and not in the user's own table, whose rows are read alike."""
    try:
        yield
    except ValueError as problem:
        said = str(problem).removeprefix(f"silo {user!r}, ")
        raise ValueError(said if said.startswith(what) else f"{what}: {said}") from problem


def table_of(file: Any) -> "pl.DataFrame":
    """A file or a table; of JSON, a list of objects."""
    import polars as pl

    from confrere.data.intake.read import read

    if not isinstance(file, str | Path) or Path(file).suffix.lower() != ".json":
        return read(file)
    try:
        rows = json.loads(Path(file).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise ValueError(f"{file} cannot be read: {problem}") from problem
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{file} must be a list of objects, one per case: [{{'age': 60, 'guess': 0.3}}, ...]")
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


class Case(NamedTuple):
    """One case: what was guessed and predicted (of classes, the probability of the second, or of the guessed one)."""

    guess: float
    prediction: float
    square: float


@dataclass(frozen=True, eq=False)
class Agreement:
    """How well a model agrees with a clinician's guesses: (8.11), with its 95 % interval (NaN: none)."""

    score: float
    low: float
    high: float
    same: int | None  # cases in which the most probable class is the same; None for amounts
    cases: tuple[Case, ...] = field(repr=False)
    words: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        from confrere.insight.explanations.path import finite

        return finite({
            "score": self.score, "interval": [self.low, self.high], "same": self.same, "count": len(self.cases),
            "cases": [case._asdict() for case in self.cases], "words": list(self.words),
        })  # fmt: skip

    def __str__(self) -> str:
        return " ".join(self.words)


def agreement(model: "Predictor", guesses: Guesses, seed: int = 0) -> Agreement:
    """The score of a model by a clinician's guesses: 0 if it predicts just what was expected.

    >>> import numpy as np, confrere as cf
    >>> X = np.random.default_rng(0).normal(size=(2, 60, 2))
    >>> silos = cf.Silos.from_arrays([(x, x[:, 0] > 0) for x in X])
    >>> answer = cf.personalise(silos, 0)
    >>> guesses = cf.insight.Guesses.of([[3.0, 0.0], [-3.0, 0.0]], [0.9, 0.9], classes=2)
    >>> found = cf.insight.agreement(answer.model, guesses)
    >>> found.same, [case.square < 0.25 for case in found.cases]
    (1, [True, False])
    """
    amounts = model.model.task == "regression"
    said = guesses.said
    told = np.asarray(model.predict(guesses.X) if amounts else model.predict_proba(guesses.X), float)
    if told.shape != said.shape:
        raise ValueError(f"the guesses have the shape {said.shape}, but the predictions {told.shape}")
    if amounts:
        squares, shown = np.square(said - told), (said, told)
    elif told.shape[1] == 2:
        squares, shown = np.square(said - told)[:, 1], (said[:, 1], told[:, 1])
    else:
        place = np.arange(len(said)), said.argmax(axis=1)
        squares, shown = np.square(said - told).sum(axis=1), (said[place], told[place])
    low, high = np.nan, np.nan
    if len(squares) >= LEAST:
        ends = percentiles(means_of_resamples(squares[None], RESAMPLES, seed)[0])
        low, high = float(ends[0]), float(ends[1])
    same = None if amounts else int((said.argmax(axis=1) == told.argmax(axis=1)).sum())
    cases = tuple(Case(float(u), float(h), float(s)) for u, h, s in zip(*shown, squares, strict=True))
    score = float(squares.mean())
    return Agreement(score, low, high, same, cases, in_words(score, low, high, same, len(squares)))


def in_words(score: float, low: float, high: float, same: int | None, count: int) -> tuple[str, ...]:
    """The score as a distance that a clinician can imagine."""
    typical = f"{100 * np.sqrt(score):.0f} percentage points" if same is not None else f"{np.sqrt(score):.3g}"
    reach = f"95 %: {low:.3g} to {high:.3g}" if np.isfinite(low) else f"no interval: {LEAST} cases are needed for one"
    said = [f"Model and guesses differ by {typical}, typically (mean square {score:.3g}; {reach})."]
    if same is not None:
        said.append(f"In {same} of {count} cases the most probable class is the same.")
    return tuple(said)
