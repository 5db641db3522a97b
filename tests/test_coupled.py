"""Multi-task learning, against the optimum of the coupled losses, its limits and a loop in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.clients.batches import live_steps, plan_for
from tests.helpers import two_class_silos
from tests.quadratics import absences, played, regressions

SHARES = {"uniform": lambda losses: np.full(len(losses.h), 1 / len(losses.h)), "size": lambda losses: losses.share}


def coupled_optimum(losses, p, pull):
    """The minimum of sum_i p_i (f_i(w_i) + pull/2 |w_i - mean|^2): all w in one linear system [n, d]."""
    n, d = losses.h.shape
    A, b = np.zeros((n, d, n, d)), np.zeros((n, d))
    for i in range(n):
        A[i, :, i] += losses.H[i] + pull * np.eye(d)
        b[i] = losses.h[i]
        for j in range(n):
            A[i, :, j] -= pull * p[j] * np.eye(d)
    return np.linalg.solve(A.reshape(n * d, n * d), b.ravel()).reshape(n, d)


@pytest.mark.parametrize("weights", SHARES)
@pytest.mark.parametrize("pull", [0.0, 0.3, 3.0, 1e3])
def test_multi_task_ends_at_the_optimum_of_the_coupled_losses(x64, weights, pull):
    silos, losses = regressions((12, 15, 20))
    _, own = played(cf.multi_task(lr=0.4, pull=pull, weights=weights), silos, 400)
    np.testing.assert_allclose(own, coupled_optimum(losses, SHARES[weights](losses), pull), rtol=1e-8)


def test_the_optimum_is_the_same_when_silos_are_away_now_and_then(x64):
    silos, losses = regressions((12, 15, 20))
    _, own = played(cf.multi_task(lr=0.4, pull=0.3), silos, 400, active=absences(400, 3))
    np.testing.assert_allclose(own, coupled_optimum(losses, SHARES["uniform"](losses), 0.3), rtol=1e-8)


def multi_task_in_numpy(losses, active, lr, pull, steps):
    """z_i: `steps` gradient steps from w_i; w_i: z_i drawn to the mean of the last z of all who ever spoke."""
    n, d = losses.h.shape
    z, mean, known, s = np.zeros((n, d)), np.zeros(d), np.zeros(n, bool), lr * pull * steps
    for here in active:
        for i in np.flatnonzero(here):
            w = (z[i] + s * mean) / (1 + s)
            for _ in range(steps):
                w = w - lr * losses.gradient(i, w)
            z[i] = w
        known = known | here
        mean = z[known].mean(axis=0) if here.any() else mean
    return mean, (z + s * mean) / (1 + s)


def test_multi_task_is_its_algorithm(x64):
    silos, losses = regressions()
    active = absences(6, 3)
    active[:4, 2] = False
    for rounds in (3, 6):
        found = played(cf.multi_task(lr=0.1, pull=0.8, steps=2), silos, rounds, active=active[:rounds])
        for a, b in zip(found, multi_task_in_numpy(losses, active[:rounds], 0.1, 0.8, 2), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def trained(recipe, active=None):
    silos = two_class_silos((9, 5, 12))
    return cf.simulate(recipe, cf.models.logistic(), silos, 5, metrics=(), record=(), active=active).models


@pytest.mark.parametrize("active", [None, absences(5, 3)])
def test_without_pull_everybody_trains_alone(active):
    own = trained(cf.multi_task(lr=0.3, pull=0.0, batch=4, weights="size"), active)
    alone = trained(cf.local(lr=0.3, batch=4), active)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7), own, alone)


def test_with_the_largest_pull_there_is_multi_task_is_fedavg():
    largest = float(np.finfo(np.float32).max)
    own = trained(cf.multi_task(lr=0.3, pull=largest, batch=4, weights="size"))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), own, trained(cf.fedavg(lr=0.3, batch=4))
    )


PLANS = [("full", None, 3, None), ("shuffled", 4, None, 2), ("shuffled", 4, 3, None), ("shuffled", 4, 1, None),
         ("cyclic", 4, None, 2), ("cyclic", 4, 5, None), ("shuffled", None, None, None)]  # fmt: skip


@pytest.mark.parametrize("how", PLANS)
def test_live_steps_are_those_with_a_live_row(how):
    order, batch, steps, epochs = how
    plan = plan_for(*how)
    for size in (1, 4, 9):
        data = cf.Block(jnp.zeros((10, 1)), jnp.zeros(10), jnp.int32(size), jnp.int32(0))
        drawn = plan.draw(data.size, jnp.int32(1), jax.random.key(0), 10)
        lives = [
            plan.batch(data, jax.tree.map(lambda a, s=s: a[s], drawn)).live.any()
            for s in range(len(jax.tree.leaves(drawn)[0]))
        ]
        assert int(live_steps(data.size, order, batch, steps, epochs)) == sum(map(int, lives))


def test_a_silo_without_rows_is_drawn_to_the_mean_and_counts_for_nothing():
    params = {"w": jnp.zeros((3, 1)), "b": jnp.zeros(1)}
    client = cf.clients.coupled(cf.models.linear().loss, lr=0.5, pull=2.0)
    _, private = client.init(params)
    inbox = cf.Inbox({"x": jax.tree.map(lambda a: a + 2, params)}, jnp.float32(1))
    empty = cf.Block(jnp.full((4, 3), jnp.nan), jnp.zeros(4), jnp.int32(0), jnp.int32(0))
    jax.tree.map(lambda a: np.testing.assert_allclose(a, 1.0, rtol=1e-6), client.personal(inbox, private, empty))
