"""Adaptive optimizers on the server, against loops in numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.algorithms.adaptive import OPTIMIZERS
from tests.quadratics import absences, played, present_shares, regressions

ROUNDS = 7
MOMENTS = {"server_lr": 0.2, "b1": 0.8, "b2": 0.95, "eps": 0.01}


def adam(x, g, m, v, t, server_lr, b1, b2, eps):
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
    return x - server_lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps), m, v


def yogi(x, g, m, v, t, server_lr, b1, b2, eps):
    m, v = b1 * m + (1 - b1) * g, v - (1 - b2) * np.sign(v - g**2) * g**2
    return x - server_lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps), m, v


def adagrad(x, g, m, v, t, server_lr, eps):
    v = v + g**2
    return x - server_lr * g / np.sqrt(v + eps**2), m, v


def sgd(x, g, m, v, t, server_lr, b1=0.0):
    m = b1 * m + g
    return x - server_lr * m, m, v


SERVERS = {  # server: its step, what its moments start from, its numbers
    "adam": (adam, 0.0, MOMENTS),
    "yogi": (yogi, 1e-6, MOMENTS),
    "adagrad": (adagrad, 0.0, {"server_lr": 0.2, "eps": 0.01}),
    "sgd": (sgd, 0.0, {"server_lr": 0.8, "b1": 0.5}),
}


def fedopt_in_numpy(losses, active, step, start, lr, steps, numbers):
    """Reddi et al. (2021), Algorithm 2: the mean of x - y_i is the server's gradient; nobody there: nothing moves."""
    x = np.zeros(losses.h.shape[1])
    m, v, t = np.full_like(x, start), np.full_like(x, start), 0
    for here in active:
        share, y = present_shares(losses.share, here), np.tile(x, (len(here), 1))
        if share is None:
            continue
        for i in range(len(here)):
            for _ in range(steps):
                y[i] = y[i] - lr * losses.gradient(i, y[i])
        t += 1
        x, m, v = step(x, x - share @ y, m, v, t, **numbers)
    return x


@pytest.mark.parametrize("server", SERVERS)
def test_the_server_steps_by_the_mean_local_update(x64, server):
    silos, losses = regressions()
    step, start, numbers = SERVERS[server]
    active = absences(ROUNDS, 3)
    x, _ = played(cf.fedopt(lr=0.1, server=server, **numbers, batch=None, steps=2), silos, ROUNDS, active=active)
    np.testing.assert_allclose(x, fedopt_in_numpy(losses, active, step, start, 0.1, 2, numbers), rtol=1e-9)


def test_plain_steps_of_the_server_are_fedavg(x64):
    silos, how = regressions()[0], {"lr": 0.1, "batch": None, "steps": 2}
    x, _ = played(cf.fedopt(server="sgd", **how), silos, ROUNDS)
    np.testing.assert_allclose(x, played(cf.fedavg(**how), silos, ROUNDS)[0], rtol=1e-13)


def test_a_gradient_of_zero_does_not_move_the_server():
    for server in ("adam", "adagrad", "sgd"):
        numbers = cf.fedopt(lr=0.1, server=server).hyper
        tx = OPTIMIZERS[server](numbers["server_lr"], **{k: v for k, v in numbers.items() if k in ("b1", "b2", "eps")})
        np.testing.assert_array_equal(tx.update(jnp.zeros(2), tx.init(jnp.ones(2)))[0], 0)


REFUSED = {
    "server must be one of adam, yogi, adagrad, sgd, not 'rmsprop'": {"server": "rmsprop"},
    "the server 'sgd' has no eps; it has server_lr, b1": {"server": "sgd", "eps": 0.1},
    "the server 'adagrad' has no b1": {"server": "adagrad", "b1": 0.9},
    "b2 must be below 1": {"b2": 1.0},
    "eps must be above 0": {"eps": 0.0},
    "server_lr must be a finite number": {"server_lr": -1.0},
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_a_server_cannot_use_is_refused(said):
    with pytest.raises(ValueError, match=said):
        cf.fedopt(lr=0.1, **REFUSED[said])
