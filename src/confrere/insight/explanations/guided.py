"""Training that heeds a clinician's guesses, in the user's silo alone, with any algorithm.

    loss of the user's silo = (its own loss + rho G) / (1 + rho)                                           (8.12)
    G = half the mean squared difference of guess and prediction (amounts), or the mean cross-entropy of the guessed
        probabilities (classes): the loss of the guesses as if they were labels

rho = 0 is the plain loss, 1 heeds the guesses as much as all rows together, and a large rho follows them alone. Jung:
Federated learning, from theory to practice (2024), section 8.4. Where this departs from it: the sum is divided by
1 + rho, so that learning rates keep their meaning; and for classes the cross-entropy stands for the squared
difference, as it is convex and smallest where the prediction is the guess.

Algorithms know losses of batches, not whose rows they are: so the rows get one more column, 1 in the user's silo and 0
elsewhere, which the model takes off again. The guesses never leave the user's silo but in what it sends anyway.
"""

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows
from confrere.core import Batch, Tree
from confrere.data.silos import Silos
from confrere.insight.explanations.guesses import Guesses
from confrere.models import Model

FLAG = "whose row it is"


def flagged(silos: Silos, user: int) -> Silos:
    """The silos with one more column: 1 for the user's rows, 0 for others'."""
    own = [replace(s, X=np.column_stack([s.X, np.full(len(s.y), float(i == user))])) for i, s in enumerate(silos.silos)]
    names = (*silos.feature_names, FLAG)
    return replace(silos, silos=tuple(own), feature_names=names, source=None, encoding=None)


def guided(model: Model, guesses: Guesses, rho: float) -> Model:
    """The model whose loss heeds guesses on rows that are marked as the user's (see `flagged`).

    Guesses are few: they become part of the compiled program.
    """
    X = np.ascontiguousarray(guesses.X, np.float32)
    said = np.ascontiguousarray(guesses.said, np.float32)
    return _guided(model, X.tobytes(), X.shape, said.tobytes(), said.shape, float(rho))


@functools.lru_cache(maxsize=8)
def _guided(model: Model, X: bytes, cases: tuple[int, ...], said: bytes, shape: tuple[int, ...], rho: float) -> Model:
    rows = np.frombuffer(X, np.float32).reshape(cases)
    wanted = np.frombuffer(said, np.float32).reshape(shape)

    def loss(params: Tree, batch: Batch) -> jax.Array:
        mine = jnp.where(batch.live, batch.X[:, -1], 0).max()
        plain = model.loss(params, batch._replace(X=batch.X[:, :-1]))
        heeding = (plain + rho * guess_loss(model, params, rows, wanted)) / (1 + rho)
        return jnp.where(mine > 0, heeding, plain)

    return model._replace(
        init=lambda key, inputs, outputs: model.init(key, inputs - 1, outputs),
        apply=lambda params, X: model.apply(params, X[:, :-1]),
        loss=loss,
    )


def guess_loss(model: Model, params: Tree, X: np.ndarray, said: np.ndarray) -> jax.Array:
    """G at some parameters."""
    scores = model.apply(params, jnp.asarray(X))
    if model.task == "regression":
        return 0.5 * jnp.square(scores[:, 0] - said).mean()
    return -(said * jax.nn.log_softmax(scores, axis=1)).sum(axis=1).mean()


def as_rows(guesses: Guesses, rho: float, rows: int, task: str) -> Rows:
    """Guesses as weighted rows, for models that go straight to their optimum.

    The sum of the user's losses gets rho m/t times the loss of each of t guesses: m (loss + rho G). A guess of classes
    is one row per class, weighted by its probability.
    """
    each = rho * max(rows, 1) / len(guesses)
    X = np.column_stack([guesses.X, np.ones(len(guesses))])
    if task == "regression":
        return Rows(*map(jnp.asarray, (X, guesses.said, np.full(len(X), each))))
    classes = guesses.said.shape[1]
    y = np.tile(np.arange(classes), len(X))
    return Rows(*map(jnp.asarray, (np.repeat(X, classes, axis=0), y.astype(np.int32), each * guesses.said.reshape(-1))))
