"""Silos that receive mixes of each other's models, or the models themselves: FedAMP and FedFomo, and their mixers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.clients.held_out import hold_out
from tests.playing import LINEAR, design, flat, loss_of, play, regressions, slope_of, zeros

SIZES = (12, 9, 7, 15)
NEAR, FAR = [1.0, -1.0, 0.5], [-2.0, 1.0, 1.5]
ACTIVE = np.array([[1, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]]) > 0


def silos_of(sizes=SIZES):
    return regressions([NEAR, NEAR, FAR, FAR][: len(sizes)], sizes)


# FedAMP


def test_fedamp_follows_its_algorithm(x64):
    lr, strength, sigma, pull, steps = 0.2, 0.9, 3.0, 0.7, 3
    recipe = cf.fedamp(lr=lr, attention=strength, sigma=sigma, pull=pull, batch=None, steps=steps)
    silos = silos_of()
    states, records = play(recipe, silos, len(ACTIVE), zeros(), active=ACTIVE)
    u, w = np.zeros((4, 4)), np.zeros((4, 4))
    for r, here in enumerate(ACTIVE):
        for i in np.flatnonzero(here):
            w[i] = u[i]
            for _ in range(steps):
                w[i] = w[i] - lr * (slope_of(w[i], design(silos[i]), silos[i].y) + pull * (w[i] - u[i]))
        mixed = u.copy()
        for i in np.flatnonzero(here):
            xi = np.zeros(4)
            for j in np.flatnonzero(here):
                xi[j] = strength / here.sum() * np.exp(-((w[i] - w[j]) ** 2).sum() / sigma) if j != i else 0
            xi[i] = 1 - xi.sum()
            mixed[i] = xi @ w
            np.testing.assert_allclose(np.asarray(records[r].weights)[i, here], xi[here], rtol=1e-9)
        u = mixed
        np.testing.assert_allclose(flat(states[r + 1].inbox.shared["x"]), u, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(flat(states[r + 1].private[1]), w, rtol=1e-9, atol=1e-12)
    assert xi[2] > 1.2 * xi[1] > 0  # the last receiver's own kind counts more


def test_fedamp_with_zero_attention_is_local():
    silos, how = silos_of(), {"batch": None, "steps": 2, "momentum": 0.5, "l2": 0.01}
    models = [
        flat(recipe.make(LINEAR.loss, **recipe.hyper).personal(states[-1], silos.block(), jnp.arange(4)))
        for recipe in (cf.fedamp(lr=0.1, attention=0.0, pull=0.0, **how), cf.local(lr=0.1, **how))
        for states, _ in [play(recipe, silos, 3, zeros())]
    ]
    np.testing.assert_allclose(*models, atol=1e-6)


def test_fedamp_with_a_large_sigma_is_the_mean_of_all_models(x64):
    silos = silos_of()
    mean, _ = play(cf.fedamp(lr=0.1, attention=1.0, sigma=1e12, pull=0.0, batch=None), silos, 3, zeros())
    fedavg, _ = play(cf.fedavg(lr=0.1, weights="uniform", batch=None), silos, 3, zeros())
    received = flat(mean[-1].inbox.shared["x"])
    np.testing.assert_allclose(received, np.tile(flat(fedavg[-1].inbox.shared["x"]), (4, 1)), rtol=1e-9)
    assert np.ptp(flat(mean[-1].private[1]), axis=0).max() > 0.1  # while their own models differ


def test_the_attention_that_a_silo_pays_itself_is_clipped_at_zero():
    w = cf.weights.attention(attention=3.0, sigma=1e6)
    ctx = cf.Ctx(1, jnp.array([True, True, False]), jnp.ones(3))
    W, _ = w.update(cf.Geometry.from_messages([[0.0], [1.0], [2.0]]), w.init(3), ctx)
    np.testing.assert_allclose(W[:2], [[0, 1.5, 0], [1.5, 0, 0]], rtol=1e-5)


# peers


def test_a_receiver_without_mass_keeps_what_it_received_last_and_the_first_mass_is_the_degree():
    graph = jnp.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    mixer = cf.mixers.peers(cf.weighted(cf.Weights(lambda n: (), lambda g, s, ctx: (graph, s))))
    inbox, state = mixer.init({"x": jnp.array([5.0])}, {"x": jnp.zeros((3, 1))})
    np.testing.assert_array_equal(inbox.shared["x"], [[5.0], [5.0], [5.0]])
    np.testing.assert_array_equal(inbox.mass, [3, 1, 0])
    ctx = cf.Ctx(1, jnp.array([False, True, True]), jnp.ones(3))
    inbox, state, mixed = mixer.update({"x": jnp.array([[0.0], [1.0], [4.0]])}, state, ctx)
    np.testing.assert_allclose(inbox.shared["x"], [[3.0], [5.0], [5.0]])
    np.testing.assert_array_equal(mixed.mass, [3, 0, 0])


def test_peers_need_a_row_of_weights_each():
    mixer = cf.mixers.peers(cf.weighted(cf.weights.uniform()))
    with pytest.raises(ValueError, match=r"gives 1 row.*each of 3 peers"):
        mixer.init({"x": jnp.zeros(2)}, {"x": jnp.zeros((3, 2))})


# FedFomo


def test_fedfomo_follows_its_algorithm(x64):
    lr, steps, every = 0.15, 2, 3
    silos, n = silos_of(), 4
    recipe = cf.fedfomo(lr=lr, every=every, batch=None, steps=steps)
    states, records = play(recipe, silos, len(ACTIVE), zeros(), active=ACTIVE)
    base, sent, heard, listened = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros(n, bool), set()

    def weigh(i):
        X, y = design(silos[i])[::every], silos[i].y[::every]
        w = np.zeros(n)
        for j in np.flatnonzero(heard):
            distance = np.linalg.norm(sent[j] - base[i])
            if distance > 0:
                w[j] = max(0, loss_of(base[i], X, y) - loss_of(sent[j], X, y)) / distance
        return w / w.sum() if w.any() else w

    for r, here in enumerate(ACTIVE):
        models = sent.copy()
        for i in np.flatnonzero(here):
            w = weigh(i)
            np.testing.assert_allclose(records[r].weights[i], w, rtol=1e-8, atol=1e-12)
            base[i] = base[i] + w @ (sent - base[i])
            training = np.arange(SIZES[i]) % every > 0
            models[i] = base[i]
            for _ in range(steps):
                models[i] = models[i] - lr * slope_of(models[i], design(silos[i])[training], silos[i].y[training])
            listened |= {(i, j) for j in np.flatnonzero(w)}
        sent, heard = models, heard | here
        np.testing.assert_allclose(flat(states[r + 1].inbox.shared["x"]), sent, rtol=1e-8, atol=1e-12)
    assert {(0, 1), (2, 3)} <= listened
    algorithm, data = recipe.make(LINEAR.loss, **recipe.hyper), jax.tree.map(jnp.asarray, silos.block())
    for i in range(n):
        mix = base[i] + weigh(i) @ (sent - base[i])
        np.testing.assert_allclose(flat(algorithm.personal(states[-1], data, i)), mix, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(("size", "training", "judged"), [(7, [1, 2, 4, 5], [0, 3, 6]), (1, [], [0]), (0, [], [])])
def test_the_first_of_every_few_rows_is_kept_for_validation(size, training, judged):
    data = cf.Block(jnp.arange(8.0)[:, None], jnp.arange(8), jnp.int32(size), jnp.int32(0))
    rest, rows = hold_out(data, 3, first=True)
    assert rest.y[: int(rest.size)].tolist() == training
    assert rest.X[: int(rest.size), 0].tolist() == training
    assert rows.y[: int(rows.size)].tolist() == judged


def test_silos_of_one_row_only_judge():
    states, _ = play(cf.fedfomo(lr=0.1, batch=None), silos_of((1, 1)), 2, zeros())
    np.testing.assert_array_equal(flat(states[-1].inbox.shared["x"]), np.zeros((2, 4)))


def test_in_fedfomo_everybody_receives_all_models_and_tells_whom_it_listened_to():
    recipe = cf.fedfomo(lr=0.1, batch=None)
    history = cf.simulate(recipe, LINEAR, silos_of(), 2, metrics=(), params=zeros())
    numbers = 4
    np.testing.assert_array_equal(history.bytes_up, 4 * (numbers + 4))
    np.testing.assert_array_equal(history.bytes_down, 4 * (4 * numbers + 4))
    assert (history.weights[0] == 0).all()
    np.testing.assert_allclose(history.weights[1].sum(axis=1), 1, rtol=1e-5)


# Degenerate cases that the conformance suite does not have


@pytest.mark.parametrize("make", [cf.fedamp, cf.fedfomo, cf.ifca, cf.clustered])
def test_a_silo_without_rows_changes_nothing_and_has_a_model(make):
    recipe = make(lr=0.1, batch=None)
    algorithm = recipe.make(LINEAR.loss, **recipe.hyper)
    data = jax.tree.map(jnp.asarray, silos_of().block())

    @jax.jit
    def models(block, here):
        state = algorithm.init(zeros(), block)
        for _ in range(2):
            state, _ = algorithm.update(state, block, jax.random.key(0), here)
        return jax.vmap(lambda i: algorithm.personal(state, block, i))(jnp.arange(4))

    away = models(data, jnp.array([True, False, True, True]))
    empty = models(data._replace(size=data.size.at[1].set(0), X=data.X.at[1].set(jnp.nan)), jnp.ones(4, bool))
    others = np.array([0, 2, 3])
    np.testing.assert_allclose(flat(empty)[others], flat(away)[others], rtol=1e-5, atol=1e-6)
    assert np.isfinite(flat(empty)).all()


@pytest.mark.parametrize(
    ("make", "how", "word"),
    [
        (cf.fedamp, {"sigma": 0.0}, "sigma must be above 0"),
        (cf.fedamp, {"attention": -0.5}, "attention"),
        (cf.fedamp, {"pull": float("nan")}, "pull"),
        (cf.fedfomo, {"every": 1}, "every must be 2 or more"),
        (cf.fedfomo, {"every": 0}, "every"),
    ],
)
def test_what_makes_no_sense_for_peers_is_refused(make, how, word):
    with pytest.raises(ValueError, match=word):
        make(lr=0.1, **how)
