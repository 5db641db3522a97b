"""FedProx, pFedMe and Ditto, against loops in numpy, limits and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.clients.batches import plan_for
from tests.quadratics import absences, played, present_shares, regressions

ROUNDS = 6
HEAVY = {"momentum": 0.6, "weight_decay": 0.1}


# FedProx


def test_fedprox_without_pull_is_fedavg(x64):
    silos, how = regressions()[0], {"lr": 0.1, "batch": None, "steps": 3}
    x, _ = played(cf.fedprox(mu=0.0, **how), silos, ROUNDS)
    averaged, _ = played(cf.fedavg(**how), silos, ROUNDS)
    np.testing.assert_allclose(x, averaged, rtol=1e-13)
    assert np.abs(played(cf.fedprox(mu=0.7, **how), silos, ROUNDS)[0] - averaged).max() > 1e-2


def fedprox_in_numpy(losses, active, lr, mu, steps):
    """Li et al. (2020), Algorithm 2, with `steps` gradient steps on each local problem."""
    x = np.zeros(losses.h.shape[1])
    for here in active:
        share, y = present_shares(losses.share, here), np.tile(x, (len(here), 1))
        for i in range(len(here)):
            for _ in range(steps):
                y[i] = y[i] - lr * (losses.gradient(i, y[i]) + mu * (y[i] - x))
        x = x if share is None else share @ y
    return x


@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_fedprox_is_its_algorithm(x64, mu):
    silos, losses = regressions()
    active = absences(ROUNDS, 3)
    x, own = played(cf.fedprox(lr=0.1, mu=mu, batch=None, steps=3), silos, ROUNDS, active=active)
    expected = fedprox_in_numpy(losses, active, 0.1, mu, 3)
    np.testing.assert_allclose(x, expected, rtol=1e-10)
    np.testing.assert_array_equal(own, np.tile(x, (3, 1)))


# pFedMe


def prox_in_numpy(losses, i, w, pull, lr, steps):
    theta = w
    for _ in range(steps):
        theta = theta - lr * (losses.gradient(i, theta) + pull * (theta - w))
    return theta


def pfedme_in_numpy(
    losses, active, lr, inner_lr, pull, beta, inner_steps, steps, momentum=0.0, weight_decay=0.0
):  # fmt: skip
    """Dinh et al. (2020), Algorithm 1: R = steps local rounds, the inner problem by gradient steps from w."""
    x = np.zeros(losses.h.shape[1])
    for here in active:
        share, w = present_shares(losses.share, here), np.tile(x, (len(here), 1))
        for i in range(len(here)):
            trace = 0.0
            for _ in range(steps):
                theta = prox_in_numpy(losses, i, w[i], pull, inner_lr, inner_steps)
                trace = momentum * trace + pull * (w[i] - theta)
                w[i] = w[i] - lr * (trace + weight_decay * w[i])
        x = x if share is None else (1 - beta) * x + beta * share @ w
    own = [prox_in_numpy(losses, i, x, pull, inner_lr, inner_steps) for i in range(active.shape[1])]
    return x, np.stack(own)


@pytest.mark.parametrize(("pull", "beta", "how"), [(4.0, 0.7, {}), (15.0, 1.5, {}), (4.0, 0.7, HEAVY)])
def test_pfedme_is_its_algorithm(x64, pull, beta, how):
    silos, losses = regressions()
    active, numbers = absences(ROUNDS, 3), {"lr": 0.05, "inner_lr": 0.08, "pull": pull, "beta": beta, **how}
    found = played(cf.pfedme(**numbers, inner_steps=3, batch=None, steps=2), silos, ROUNDS, active=active)
    for a, b in zip(found, pfedme_in_numpy(losses, active, **numbers, inner_steps=3, steps=2), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_pfedme_ends_at_the_minimum_of_the_moreau_envelopes(x64):
    """w'M w/2 around H^-1 h with M = pull H (H + pull)^-1 is the envelope of a quadratic loss."""
    silos, losses = regressions((9, 7, 12))
    pull, eye = 2.0, np.eye(3)
    recipe = cf.pfedme(lr=1.0, inner_lr=0.25, pull=pull, inner_steps=100, batch=None, weights="uniform")
    x, own = played(recipe, silos, 300)
    optimum = np.linalg.solve(losses.H, losses.h[..., None])[..., 0]
    M = pull * losses.H @ np.linalg.inv(losses.H + pull * eye)
    best = np.linalg.solve(M.sum(0), np.einsum("nij,nj->i", M, optimum))
    np.testing.assert_allclose(x, best, rtol=1e-8)
    theta = np.linalg.solve(losses.H + pull * eye, (losses.h + pull * best)[..., None])[..., 0]
    np.testing.assert_allclose(own, theta, rtol=1e-8)


def test_without_pull_the_common_model_of_pfedme_stands_still_and_silos_train_from_it(x64):
    silos, losses = regressions()
    x, own = played(cf.pfedme(lr=0.05, inner_lr=0.08, pull=0.0, inner_steps=3, batch=None, steps=2), silos, ROUNDS)
    np.testing.assert_array_equal(x, 0)
    np.testing.assert_allclose(own[1], prox_in_numpy(losses, 1, x, 0.0, 0.08, 3), rtol=1e-12)


# Ditto


def ditto_in_numpy(losses, active, lr, pull, steps, momentum, weight_decay):
    """Li et al. (2021), Algorithm 1: FedAvg for x, and v_i beside it, pulled towards the x of the round."""
    x, v = np.zeros(losses.h.shape[1]), np.zeros(losses.h.shape)

    def walk(gradient, at):
        trace = 0.0
        for _ in range(steps):
            trace = momentum * trace + gradient(at)
            at = at - lr * (trace + weight_decay * at)
        return at

    for here in active:
        w, share = np.tile(x, (len(here), 1)), present_shares(losses.share, here)
        for i in np.flatnonzero(here):
            w[i] = walk(lambda p, i=i: losses.gradient(i, p), x)
            v[i] = walk(lambda p, i=i, x=x: losses.gradient(i, p) + pull * (p - x), v[i])
        x = x if share is None else share @ w
    return x, v


@pytest.mark.parametrize("how", [{"momentum": 0.0, "weight_decay": 0.0}, HEAVY], ids=["plain", "momentum"])
def test_ditto_is_its_algorithm(x64, how):
    silos, losses = regressions()
    active, numbers = absences(ROUNDS, 3), {"lr": 0.1, "pull": 0.8, **how}
    found = played(cf.ditto(**numbers, batch=None, steps=3), silos, ROUNDS, active=active)
    for a, b in zip(found, ditto_in_numpy(losses, active, **numbers, steps=3), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_ditto_without_pull_is_training_alone_beside_fedavg(x64):
    silos, how = regressions()[0], {"lr": 0.1, "batch": 3, **HEAVY}
    x, own = played(cf.ditto(pull=0.0, **how), silos, ROUNDS)
    np.testing.assert_allclose(x, played(cf.fedavg(**how), silos, ROUNDS)[0], rtol=1e-10)
    np.testing.assert_allclose(own, played(cf.local(**how), silos, ROUNDS)[1], rtol=1e-10)


# Degenerate silos


def test_a_silo_without_rows_sends_zeros_and_has_the_common_model():
    empty = cf.Block(jnp.full((4, 3), jnp.nan), jnp.zeros(4), jnp.int32(0), jnp.int32(0))
    params = {"w": jnp.ones((3, 1)), "b": jnp.ones(1)}
    loss, plan = cf.models.linear().loss, plan_for("full", None, 2, None)
    for client in (cf.clients.proximal(loss, 0.1, 1.0, plan), cf.clients.moreau(loss, 0.1, 0.1, 1.0, 2, plan)):
        shared, private = client.init(params)
        inbox = cf.Inbox(shared, jnp.float32(0))
        message, _ = client.update(inbox, private, empty, cf.Ctx(1, True, 0, 0, jax.random.key(0)))
        jax.tree.map(lambda a: np.testing.assert_array_equal(a, 0), message)
        jax.tree.map(np.testing.assert_array_equal, client.personal(inbox, private, empty), params)
