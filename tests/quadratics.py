"""Least squares in silos as quadratic losses, so that what an algorithm does can be written down in numpy."""

from typing import NamedTuple

import numpy as np

import confrere as cf

MODEL = cf.models.linear()


class Quadratics(NamedTuple):
    """The losses w'H w/2 - h'w of n silos; the last coordinate is the intercept."""

    H: np.ndarray  # [n, d, d]
    h: np.ndarray  # [n, d]
    share: np.ndarray  # [n] the share of each silo in all rows

    def gradient(self, i, w):
        return self.H[i] @ w - self.h[i]


def regressions(sizes=(9, 7, 12), d=2, seed=0) -> tuple[cf.Silos, Quadratics]:
    """Silos of linear regressions whose true weights differ, and their losses."""
    rng = np.random.default_rng(seed)
    pairs = []
    for rows in sizes:
        X = rng.normal(size=(rows, d))
        pairs.append((X, X @ (1 + rng.normal(size=d)) + 0.3 * rng.normal(size=rows)))
    Z = [np.c_[X, np.ones(len(X))] for X, _ in pairs]
    H = np.stack([z.T @ z / len(z) for z in Z])
    h = np.stack([z.T @ y / len(z) for z, (_, y) in zip(Z, pairs, strict=True)])
    return cf.Silos.from_arrays(pairs), Quadratics(H, h, np.array(sizes) / sum(sizes))


def vectors(params) -> np.ndarray:
    """The parameters of linear models as vectors [..., d]."""
    return np.concatenate([np.asarray(params["w"])[..., 0], np.asarray(params["b"])], axis=-1)


def played(recipe, silos, rounds, **how):
    """The common model, if there is one, and everybody's own [n, d], after some rounds from zero."""
    start = {"w": np.zeros((len(silos.feature_names), 1)), "b": np.zeros(1)}
    history = cf.simulate(recipe, MODEL, silos, rounds, seed=3, metrics=(), record=(), params=start, **how)
    return vectors(history.state.inbox.shared["x"]), vectors(history.models)


def absences(rounds, n, seed=0):
    """Who is there when: at random, with a round of nobody and a last one of all."""
    active = np.random.default_rng(seed).uniform(size=(rounds, n)) > 0.4
    active[1], active[-1] = False, True
    return active


def present_shares(share, active):
    """The shares of those who are there, summing to one; None if nobody is."""
    counted = share * active
    return counted / counted.sum() if counted.sum() else None
