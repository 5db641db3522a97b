"""One silo's model: training alone at the ridge optimum where there is nobody else, else `personalise`.

Alone, rows and features are padded to a few sizes, so that data sets of similar size share one compiled program: padded
rows count for nothing, and a feature that is zero everywhere changes no ridge optimum. (It would change what is said
about the shares of information, so that `personalise` gets the features as they are; it pads rows by itself.)
"""

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.algorithms import ridge_local
from confrere.answers import AnswerWarning, personalise
from confrere.borrowing.glm import QUICK_COMPILATION, base_precision, rows_of, scores_of, to_params
from confrere.borrowing.local import ridge_optimum
from confrere.core import Block, Tree
from confrere.data.silos import Silos
from confrere.history import History
from confrere.models import Model
from confrere.simulate import simulate
from confrere.simulation.inputs import outputs_of
from confrere.study.cases import round_up

ON_ITS_OWN = "auto (training alone, at the ridge optimum): there is no other silo to learn from."


@dataclass(frozen=True, eq=False)
class SiloModel:
    """The linear model of one silo: scores of rows of features, in double precision.

    >>> model = SiloModel("a", np.array([[2.0]]), np.array([1.0]), ("age",))
    >>> model.scores(np.array([[3.0]])).tolist()
    [[7.0]]
    """

    silo: str
    coefficients: np.ndarray  # [features, outputs]; outputs: one per class, or one number
    intercepts: np.ndarray  # [outputs]
    feature_names: tuple[str, ...]

    @classmethod
    def of(cls, params: Tree, silos: Silos, place: int) -> "SiloModel":
        """From a linear model's parameters, without those of padded features."""
        names = silos.feature_names
        w, b = (np.asarray(params[k], np.float64) for k in ("w", "b"))
        return cls(silos.names[place], w[: len(names)], b, names)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """X w + b [rows, outputs]."""
        return X @ self.coefficients + self.intercepts


class Fitted(NamedTuple):
    """A model, whose data it listened to, what chose it and why; and the rounds behind it, made when asked for."""

    model: SiloModel
    weights: Mapping[str, float]
    relevance: Mapping[str, float]
    algorithm: str
    history: Callable[[], History]


class Histories(Mapping[str, History]):
    """The rounds behind every silo's model, made for a silo when they are asked for.

    >>> rounds = Histories({"a": lambda: print("made"), "b": lambda: print("never")})
    >>> list(rounds), len(rounds), "b" in rounds
    (['a', 'b'], 2, True)
    >>> rounds["a"]
    made
    """

    def __init__(self, makers: Mapping[str, Callable[[], History]]):
        self._makers = makers

    def __getitem__(self, silo: str) -> History:
        return self._makers[silo]()

    def __contains__(self, silo: object) -> bool:  # type: ignore[missing-override-decorator]  # without making it
        return silo in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"Histories of {', '.join(self)}, made when asked for"


def fit_silo(silos: Silos, place: int, model: Model, algorithm: Any, seed: int) -> Fitted:
    """The model of one silo."""
    if isinstance(algorithm, str) and algorithm == "auto" and len(silos) == 1:
        return alone(silos, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswerWarning)
        answer = personalise(silos, place, algorithm, model, seed=seed)
    for caution in answer.cautions:  # its advice names arguments that the estimators lack
        warnings.warn(caution, AnswerWarning, stacklevel=2)
    return Fitted(
        SiloModel.of(answer.model.params, silos, place), answer.weights, answer.relevance,
        f"{answer.algorithm}: {answer.findings}", lambda: answer.history,
    )  # fmt: skip


def alone(silos: Silos, model: Model) -> Fitted:
    """The ridge optimum of the only silo."""
    name, outputs = silos.names[0], outputs_of(model, silos)
    block = with_spare_features(silos).block("train", spare_rows(silos.sizes("train")[0]))
    own = jax.tree.map(lambda a: a[0], block)
    y = np.asarray(own.y, np.int32 if model.task == "classification" else own.X.dtype)
    params = jax.device_get(_optimum(model, outputs, own._replace(y=y)))
    rounds = functools.partial(simulate, ridge_local(), model, silos, 1, metrics=())
    return Fitted(SiloModel.of(params, silos, 0), {name: 1.0}, {}, ON_ITS_OWN, functools.cache(rounds))


def optimum(model: Model, outputs: int, own: Block) -> Tree:
    """The parameters that `ridge_local()` gives a silo."""
    rows = rows_of(model, own)
    blank = {"w": jnp.zeros((own.X.shape[1], outputs), own.X.dtype), "b": jnp.zeros(outputs, own.X.dtype)}
    prior = base_precision(rows.X.shape[1], scores_of(blank, model)).astype(rows.X.dtype)
    return to_params(ridge_optimum(rows, model.task, prior), blank, model)


_optimum = jax.jit(optimum, static_argnums=(0, 1), compiler_options=QUICK_COMPILATION)


def with_spare_features(silos: Silos) -> Silos:
    """The same silos with features that are zero in every row, up to the next size out of a short list."""
    width = len(silos.feature_names)
    spare = spare_width(width) - width
    names = (*silos.feature_names, *(f"spare {k}" for k in range(spare)))
    wider = tuple(replace(s, X=np.pad(s.X, ((0, 0), (0, spare)))) for s in silos.silos)
    return replace(silos, silos=wider, feature_names=names, source=None, encoding=None)


def spare_width(width: int) -> int:
    """The next of 4, 16, 64, or an eighth more than there are."""
    return next((size for size in (4, 16, 64) if width <= size), round_up(width))


def spare_rows(rows: int) -> int:
    """The next of 64, 512, 4096, or an eighth more than there are."""
    return next((size for size in (64, 512, 4096) if rows <= size), round_up(rows))
