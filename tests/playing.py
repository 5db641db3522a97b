"""Runs outside the simulator, round by round, and least squares in numpy to compare them with."""

import jax
import jax.numpy as jnp
import numpy as np

import confrere as cf

LINEAR = cf.models.linear()


def play(recipe, silos, rounds, params, model=LINEAR, active=None):
    """The states after every round and their records; the start is the first state."""
    algorithm = recipe.make(model.loss, **recipe.hyper)
    data = jax.tree.map(jnp.asarray, silos.block())
    update = jax.jit(lambda state, here: algorithm.update(state, data, jax.random.key(0), here))
    states, records = [algorithm.init(params, data)], []
    for r in range(rounds):
        state, record = update(states[-1], np.ones(len(silos), bool) if active is None else active[r])
        states, records = [*states, state], [*records, record]
    return states, records


def flat(params):
    """The parameters of linear models [..., d + 1], the intercept last."""
    return np.concatenate([np.asarray(params["w"])[..., 0], np.asarray(params["b"])], axis=-1)


def design(silo):
    return np.c_[silo.X, np.ones(len(silo.y))]


def loss_of(w, X, y):
    return 0.5 * np.mean((X @ w - y) ** 2)


def slope_of(w, X, y):
    return X.T @ (X @ w - y) / len(y)


def regressions(weights, sizes, noise=0.1, seed=0):
    """Silos of linear regressions, each with true weights of its own."""
    rng = np.random.default_rng(seed)
    pairs = []
    for w, rows in zip(np.asarray(weights, float), sizes, strict=True):
        X = rng.normal(size=(rows, len(w)))
        pairs.append((X, X @ w + noise * rng.normal(size=rows)))
    return cf.Silos.from_arrays(pairs)


def zeros(features=3):
    return {"w": jnp.zeros((features, 1)), "b": jnp.zeros(1)}
