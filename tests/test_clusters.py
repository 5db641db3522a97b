"""A model for every group of silos: IFCA and clustered federated learning, against loops in numpy."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.answers.named import listened_to
from confrere.clients.choosing import apart
from confrere.history import row_for
from tests.helpers import two_class_silos
from tests.playing import LINEAR, design, flat, loss_of, play, regressions, slope_of, zeros

UP, DOWN = [2.0, -1.0, 0.5], [-2.0, 1.0, 1.5]
SIZES = (12, 9, 7, 15)


def two_groups():
    return regressions([UP, DOWN, UP, DOWN], SIZES)


def optimum(silos, which):
    X, y = np.concatenate([design(silos[i]) for i in which]), np.concatenate([silos[i].y for i in which])
    return np.linalg.lstsq(X, y, rcond=None)[0]


# IFCA


def test_ifca_follows_its_algorithm_and_reaches_the_optimum_of_both_groups(x64):
    silos, rounds = two_groups(), 400
    recipe = cf.ifca(lr=0.4, k=2, batch=None)
    active = np.ones((rounds, 4), bool)
    active[1, 0] = active[2, 1:] = active[3] = False
    states, records = play(recipe, silos, rounds, zeros(), active=active)
    models = flat(states[0].inbox.shared["x"])
    rows = [(design(silo), silo.y) for silo in silos]
    for r in range(rounds):
        choice = [np.argmin([loss_of(w, X, y) for w in models]) for X, y in rows]
        weights = np.array([[size * (c == j) for size, c in zip(SIZES, choice, strict=True)] for j in range(2)])
        trained = np.array([models[c] - 0.4 * slope_of(models[c], *own) for c, own in zip(choice, rows, strict=True)])
        counted = weights * active[r]
        models = np.array([w @ trained / w.sum() if w.any() else old for w, old in zip(counted, models, strict=True)])
        here = active[r]
        np.testing.assert_array_equal(np.asarray(records[r].weights)[:, here], weights[:, here])
        np.testing.assert_allclose(flat(states[r + 1].inbox.shared["x"]), models, rtol=1e-9, atol=1e-12)
    algorithm, data = recipe.make(LINEAR.loss, **recipe.hyper), jax.tree.map(jnp.asarray, silos.block())
    for i in range(4):
        best = optimum(silos, [i, (i + 2) % 4])
        np.testing.assert_allclose(flat(algorithm.personal(states[-1], data, i)), best, atol=1e-8)


def test_ifca_with_one_model_is_fedavg():
    silos, how = two_groups(), {"lr": 0.1, "batch": None, "steps": 2, "momentum": 0.5}
    one, _ = play(cf.ifca(k=1, **how), silos, 3, zeros())
    fedavg, _ = play(cf.fedavg(**how), silos, 3, zeros())
    np.testing.assert_allclose(flat(one[-1].inbox.shared["x"])[0], flat(fedavg[-1].inbox.shared["x"]), atol=1e-6)


def test_the_models_that_ifca_starts_from_differ_and_depend_on_the_given_one_alone():
    given = {"w": jnp.zeros((400, 3)), "b": jnp.ones(2), "scale": jnp.float32(1)}
    models = apart(given, 3, 0.5)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[0], b), models, given)
    for j in (1, 2):
        assert np.std(models["w"][j]) == pytest.approx(0.5 / 20, rel=0.1)
    assert np.abs(models["w"][1] - models["w"][2]).max() > 0.01
    jitted = jax.jit(jax.vmap(lambda p: apart(p, 3, 0.5)))(jax.tree.map(lambda a: jnp.stack([a, a + 1e-3]), given))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0], b, rtol=1e-6), jitted, models)
    moves = jitted["w"] - jitted["w"][:, :1]
    assert abs(np.corrcoef(moves[0, 1].ravel(), moves[1, 1].ravel())[0, 1]) < 0.1


def test_a_model_that_no_silo_chose_is_kept():
    recipe = cf.ifca(lr=0.1, k=3, batch=None, spread=100.0)
    states, records = play(recipe, two_groups(), 1, {"w": jnp.ones((3, 1)), "b": jnp.zeros(1)})
    before, after = (flat(state.inbox.shared["x"]) for state in states)
    np.testing.assert_array_equal(np.asarray(records[0].weights)[:, 0] > 0, [True, False, False])
    np.testing.assert_array_equal(before[1:], after[1:])
    assert np.abs(before[0] - after[0]).max() > 0.01


def test_weights_by_choice_need_silos_that_tell_one():
    w = cf.weights.chosen(2, cf.weights.uniform())
    with pytest.raises(ValueError, match="tell a choice"):
        w.update(cf.Geometry.from_messages([[1.0]]), w.init(1), cf.Ctx(round=1, active=[True], size=[1]))


def test_the_weights_behind_a_silos_model_are_those_of_the_model_that_it_trained():
    weights = np.array([[[0, 30, 0, 5], [10, 0, 20, 0]], [[10, 30, 0, 5], [0, 0, 20, 0]]])  # [R, k, n]
    np.testing.assert_array_equal(row_for(weights, 2, per_silo=False), [[10, 0, 20, 0], [0, 0, 20, 0]])
    np.testing.assert_array_equal(row_for(weights, 0, per_silo=False), [[10, 0, 20, 0], [10, 30, 0, 5]])
    np.testing.assert_array_equal(row_for(weights[:, :1], 2, per_silo=False), weights[:, 0])
    missed = np.concatenate([weights[:1], weights[:1] * [1, 1, 0, 1]])  # silo 2 takes no part in the second round
    np.testing.assert_array_equal(row_for(missed, 2, per_silo=False), [[10, 0, 20, 0], [10, 0, 0, 0]])
    each = np.arange(9).reshape(1, 3, 3)
    np.testing.assert_array_equal(row_for(each, 1, per_silo=True), [[3, 4, 5]])


def test_with_as_many_models_as_silos_a_silo_is_still_told_whom_its_model_heard():
    silos = two_groups()
    n = len(silos)
    history = cf.simulate(cf.ifca(lr=0.1, k=n, batch=None, steps=1), LINEAR, silos, rounds=2, seed=1, metrics=())
    assert history.weights.shape == (2, n, n)
    assert not history.per_silo
    for user in range(n):
        heard = listened_to(history, silos, user)
        assert heard[silos.names[user]] > 0  # it is among those who trained the model that it has
        rows = [history.shares[r, history.weights[r, :, user].argmax()] for r in range(2)]
        np.testing.assert_allclose(list(heard.values()), np.mean(rows, axis=0), rtol=1e-6)


@pytest.mark.parametrize("function", [cf.clustered, cf.fedamp, cf.fedfomo, cf.local, cf.fedavg, cf.ifca])
def test_mixers_say_whether_weights_have_a_row_for_every_silo(function):
    recipe = function(lr=0.1)
    mixer = recipe.make(LINEAR.loss, **recipe.hyper).mixer
    assert mixer.per_silo == (function not in (cf.fedavg, cf.ifca))


# Clusters by the directions of updates


def best_division(members, similar):
    """The division of a cluster whose largest similarity across is smallest, by trying all."""
    first, rest = members[0], members[1:]
    found = []
    for count in range(len(rest)):
        for others in combinations(rest, count):
            one = {first, *others}
            two = set(members) - one
            found.append((max(similar[i, j] for i in one for j in two), one, two))
    return min(found, key=lambda division: division[0])


def divided_by_the_paper(clusters, u, size, largest, eps1, eps2, gamma):
    """One pass of the paper's algorithm over all clusters, with everybody there."""
    norm = np.linalg.norm(u, axis=1)
    similar = u @ u.T / norm[:, None] / norm
    new = []
    for members in clusters:
        mean = np.linalg.norm(size[members] @ u[members] / size[members].sum())
        if len(members) > 1 and mean < eps1 * largest and norm[members].max() > eps2 * largest:
            cross, one, two = best_division(members, similar)
            if gamma < np.sqrt((1 - cross) / 2):
                new += [sorted(one), sorted(two)]
                continue
        new.append(members)
    return new


@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_clusters_are_divided_as_in_the_paper(x64, gamma):
    rng, n, parted, whole = np.random.default_rng(1), 6, 0, 0
    w = cf.weights.cluster(0.4, 0.5, gamma, cf.weights.by_size())

    @jax.jit
    def update(messages, state, size):
        ctx = cf.Ctx(jnp.int32(1), jnp.ones(n, bool), size)
        return w.update(cf.Geometry.from_messages(messages), state, ctx)

    for _ in range(100):
        state, clusters, largest = w.init(n), [list(range(n))], 0.0
        size = rng.integers(1, 9, n)
        for _ in range(3):
            u = rng.normal(size=(n, 3)) * rng.uniform(0.3, 1, size=(n, 1))
            largest = max(largest, np.linalg.norm(u, axis=1).max())
            W, state = update(u, state, size)
            clusters = divided_by_the_paper(clusters, u, size, largest, 0.4, 0.5, gamma)
            same = np.array([[any(i in c and j in c for c in clusters) for j in range(n)] for i in range(n)])
            np.testing.assert_array_equal(W, same * size)
        parted, whole = parted + (len(clusters) > 2), whole + (len(clusters) == 1)
    assert parted > 5
    assert whole > 5 or gamma == 0


@jax.jit
def clusters_after(rounds, updates):
    """The weights after rounds in which some were there [R, 4]."""
    w = cf.weights.cluster(0.1, 0.2, 0.0, cf.weights.uniform())

    def one(state, here):
        geometry = cf.Geometry.from_messages(jnp.where(here[:, None], updates, 0))
        return w.update(geometry, state, cf.Ctx(1, here, jnp.ones(4)))[::-1]

    return jax.lax.scan(one, w.init(4), rounds > 0)[1][-1]


def test_a_cluster_is_divided_only_when_all_are_there_who_were_heard():
    updates, nobody = jnp.array([[1.0, 0.0], [-1.1, 0.0], [1.0, 0.1], [0.0, 0.0]]), [0, 0, 0, 0]
    together = np.ones((4, 4)).tolist()
    for rounds, expected in (
        ([nobody, [1, 0, 1, 0]], together),
        ([[1, 0, 1, 0], [1, 1, 0, 0]], together),  # the third was heard, and is away
        ([nobody, nobody], together),
        # those never heard stay with the largest update
        ([nobody, [1, 1, 0, 0]], [[1, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]),
    ):
        assert clusters_after(jnp.array(rounds), updates).tolist() == expected


def test_updates_of_zero_give_no_nan():
    everybody = jnp.ones((2, 4), int)
    np.testing.assert_array_equal(clusters_after(everybody, jnp.zeros((4, 2))), np.ones((4, 4)))


def test_two_groups_with_opposite_labels_are_found_and_never_mixed_afterwards():
    silos = two_class_silos((40, 30, 50, 35, 45), shift=0.1, seed=4)
    flipped = np.array([False, True, False, True, True])
    pairs = [(silo.X, 1 - silo.y if flip else silo.y) for silo, flip in zip(silos, flipped, strict=True)]
    history = cf.simulate(
        cf.clustered(lr=0.3, batch=None), cf.models.logistic(), cf.Silos.from_arrays(pairs), 30, metrics=()
    )
    listens = history.weights > 0
    np.testing.assert_array_equal(listens[-1], flipped[:, None] == flipped)
    assert (listens[1:] <= listens[:-1]).all()
    direction = np.asarray(history.models["w"][..., 1] - history.models["w"][..., 0])
    assert (direction @ direction[0] > 0).tolist() == (~flipped).tolist()


def test_without_disagreement_clustered_is_fedavg():
    rows = two_groups()[0]
    silos = cf.Silos.from_arrays([(rows.X, rows.y)] * 3)
    one, records = play(cf.clustered(lr=0.3, batch=None), silos, 12, zeros())
    fedavg, _ = play(cf.fedavg(lr=0.3, batch=None), silos, 12, zeros())
    common = flat(fedavg[-1].inbox.shared["x"])
    np.testing.assert_allclose(flat(one[-1].inbox.shared["x"]), np.tile(common, (3, 1)), atol=1e-6)
    assert all((record.weights > 0).all() for record in records)


@pytest.mark.parametrize(
    ("make", "how", "word"),
    [
        (cf.ifca, {"k": 0}, "k must"),
        (cf.ifca, {"spread": -1.0}, "spread"),
        (cf.ifca, {"weights": "rows"}, "weights"),
        (cf.clustered, {"eps1": "small"}, "eps1"),
        (cf.clustered, {"gamma": -0.1}, "gamma"),
    ],
)
def test_what_makes_no_sense_for_clusters_is_refused(make, how, word):
    with pytest.raises(ValueError, match=word):
        make(lr=0.1, **how)
