"""An autoencoder that silos train together, so that their latent vectors can be compared (book 7.3).

    minimise over encoder e and decoder d the mean over all rows of |x - d(e(x))|^2,    e: d -> k, d: k -> d

by federated training: every silo sends the gradient of its own reconstruction error, weighted by its rows, and a server
takes one step of Adam with their mean. Rows are first brought to mean 0 and deviation 1 over all silos, for which each
tells its count, sums and sums of squares. The decoder has the encoder's weights transposed. So
without a hidden layer the columns of the encoder end as an orthonormal basis of the first k principal components, and
distances between latent vectors are those between the rows' projections.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_single_numbers, those_given
from confrere.core import Batch, Tree
from confrere.models.model import Model, blank_padding, init_dense, mean_over_live
from confrere.networks.rows import silo_rows


class Autoencoder(NamedTuple):
    """A trained autoencoder: `encode` takes rows [m, d] to latent vectors [m, k], `decode` takes these back."""

    params: Tree
    centre: np.ndarray  # [d]
    scale: np.ndarray  # [d]

    def encode(self, rows: Any) -> np.ndarray:
        """The latent vectors of rows."""
        standard = (np.asarray(rows, float) - self.centre) / self.scale
        return np.asarray(encoded(self.params, jnp.asarray(standard)))

    def decode(self, latent: Any) -> np.ndarray:
        """Rows that have such latent vectors."""
        return np.asarray(decoded(self.params, jnp.asarray(latent))) * self.scale + self.centre


def autoencoder(
    rows: Sequence[Any], latent: int = 2, hidden: int | None = None, rounds: int = 1000, lr: float = 0.02, seed: int = 0
) -> Autoencoder:
    """Train an autoencoder on the rows of all silos [m_i, d], none of which leaves its silo.

    `latent` is the length of a latent vector; `hidden` the width of a layer of tanh in encoder and decoder, which are
    linear without it. Reveals each silo's count, sums and sums of squares of its rows, and one gradient per round.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> rows = [rng.normal(size=(30, 4)) + shift for shift in (0, 0, 3)]
    >>> trained = cf.networks.autoencoder(rows, latent=1, rounds=200)
    >>> z = cf.networks.latent_vectors(rows, trained.encode)
    >>> z.shape, cf.networks.Network.nearest(z[:, 0], k=1).edges.tolist()[0]
    ((3, 1), [0, 1])
    """
    from confrere.algorithms.adaptive import fedopt  # recipes over networks import this package
    from confrere.data.silos import Silos
    from confrere.simulate import simulate

    check_counts(latent=latent, rounds=rounds, **those_given(hidden=hidden))
    check_single_numbers(lr=lr)
    given = silo_rows(rows)
    centre, scale = standards(given)
    silos = Silos.from_arrays([((a - centre) / scale, np.zeros(len(a))) for a in given])
    steps = fedopt(lr=1.0, server="adam", server_lr=lr, b2=0.999, eps=1e-8, batch=None, steps=1)
    history = simulate(steps, model(latent, hidden), silos, rounds, seed, metrics=(), record=())
    return Autoencoder(jax.tree.map(lambda a: a[0], history.models), centre, scale)


def standards(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every column over all silos; a constant one has the deviation 1."""
    count = sum(len(a) for a in rows)
    centre = np.sum([a.sum(axis=0) for a in rows], axis=0) / count
    squares = np.sum([np.square(a - centre).sum(axis=0) for a in rows], axis=0) / count
    seen = squares > 1e-20 * (1 + centre**2)
    return centre, np.where(seen, np.sqrt(squares), 1.0)


def encoded(params: Tree, X: jax.Array) -> jax.Array:
    """Latent vectors, by a linear layer or by one of tanh and a linear one."""
    if "shift" not in params:
        return X @ params["w"]
    return jnp.tanh(X @ params["w"] + params["shift"]) @ params["v"]


def decoded(params: Tree, latent: jax.Array) -> jax.Array:
    """Rows from latent vectors, by the same weights backwards."""
    if "shift" not in params:
        return latent @ params["w"].T
    return jnp.tanh(latent @ params["v"].T + params["back"]) @ params["w"].T + params["level"]


@functools.cache
def model(latent: int, hidden: int | None) -> Model:
    """The autoencoder as a model of rows whose label is not looked at."""

    def init(key: jax.Array, inputs: int, outputs: int) -> Tree:
        first, second = jax.random.split(key)
        if hidden is None:
            return {"w": init_dense(first, inputs, latent)["w"]}
        weights = {"w": init_dense(first, inputs, hidden)["w"], "v": init_dense(second, hidden, latent)["w"]}
        return {**weights, "shift": jnp.zeros(hidden), "back": jnp.zeros(hidden), "level": jnp.zeros(inputs)}

    def apply(params: Tree, X: jax.Array) -> jax.Array:
        return decoded(params, encoded(params, X))

    def loss(params: Tree, batch: Batch) -> jax.Array:
        X = blank_padding(batch)
        return mean_over_live(jnp.square(X - apply(params, X)).mean(axis=1), batch.live)

    return Model(init, apply, loss, "regression", "autoencoder")
