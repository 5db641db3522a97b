"""The simulator: what a history holds, and that neither chunks, interruptions nor grids change a run."""

import functools
import importlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import sklearn.metrics

import confrere as cf
from confrere.program import numbers
from confrere.simulation import loop
from tests.helpers import programs, two_class_silos

engine = importlib.import_module("confrere.simulate")  # the module, where `confrere.simulate` is the function

LOGISTIC = cf.models.logistic()
ROUNDS, N, FEATURES = 5, 3, 3
PARAMS = FEATURES * 2 + 2
METRICS = ("accuracy", "log_loss")


@functools.cache
def silos():
    """Three ragged silos with test rows."""
    return two_class_silos((16, 12, 9)).split(0.4, seed=1)


def erosion(user=1, lr=0.3, p_d=0.05, p_s=0.2):
    return cf.weight_erosion(user=user, lr=lr, p_d=p_d, p_s=p_s, batch=3)


def run(recipe=None, rounds=ROUNDS, **how):
    recipe = erosion() if recipe is None else recipe
    return cf.simulate(recipe, LOGISTIC, silos(), rounds, **{"metrics": METRICS, **how})


@functools.cache
def straight(name):
    """Runs that several tests look at, made once."""
    recipe = {"erosion": erosion(), "local": cf.local(lr=0.3, batch=3), "fedavg": cf.fedavg(lr=0.3, batch=3)}[name]
    return run(recipe)


@functools.cache
def absences():
    """Everybody is missing at some time, the user in round 2, all in round 4."""
    active = np.ones((ROUNDS, N), bool)
    active[0, 2] = active[1, 1] = active[2, 0] = False
    active[3] = False
    return active


def arrays(history):
    """All that a history holds, as arrays."""
    left_out = ("key", "state", "make_models", "models")
    fields = {k: v for k, v in vars(history).items() if k not in left_out}
    return jax.tree.leaves((fields, history.models, jax.tree.map(np.asarray, history.state)))


def assert_same_bits(one, two):
    for a, b in zip(arrays(one), arrays(two), strict=True):
        np.testing.assert_array_equal(a, b)


def assert_close(one, two, tolerance=1e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def by_hand(params, silo, part="test"):
    """Loss, accuracy and log-loss of a logistic model on some rows, by numpy and scikit-learn."""
    X, y = silo.rows(part)
    scores = X @ np.asarray(params["w"], float) + np.asarray(params["b"], float)
    loss = sklearn.metrics.log_loss(y, scipy.special.softmax(scores, axis=1), labels=[0, 1])
    return {"accuracy": float((scores.argmax(axis=1) == y).mean()), "log_loss": loss, "rows": len(y)}


# What a history holds


@pytest.mark.parametrize(("name", "receivers", "evaluated"), [("erosion", 1, 1), ("local", N, N), ("fedavg", 1, N)])
def test_every_field_has_its_documented_shape(name, receivers, evaluated):
    h = straight(name)
    assert (h.rounds, h.names, h.stopped, h.part) == (ROUNDS, ("0", "1", "2"), False, "test")
    assert h.user == (1 if name == "erosion" else None)
    assert h.algorithm == ("weight_erosion" if name == "erosion" else name)
    assert h.weights.shape == (ROUNDS, receivers, N)
    assert h.mass.shape == (ROUNDS, receivers)
    assert h.arrived.shape == h.norm.shape == h.bytes_up.shape == h.bytes_down.shape == (ROUNDS, N)
    assert h.distance.shape == (ROUNDS, 1, N)
    assert h.cone is None
    assert h.loss.shape == (ROUNDS + 1,)
    assert {k: v.shape for k, v in h.metrics.items()} == dict.fromkeys(METRICS, (ROUNDS + 1,))
    assert {k: v.shape for k, v in h.silo_metrics.items()} == (
        {} if evaluated == 1 else dict.fromkeys(METRICS, (ROUNDS + 1, N))
    )
    assert jax.tree.map(np.shape, h.models) == {"w": (N, FEATURES, 2), "b": (N, 2)}
    assert jax.tree.map(np.shape, h.personal(0)) == {"w": (FEATURES, 2), "b": (2,)}
    assert int(h.state.round) == ROUNDS + 1
    assert all(np.isfinite(a).all() for a in arrays(h) if np.asarray(a).dtype.kind == "f")


def test_only_what_is_asked_for_is_recorded():
    h = run(record=("cone",), metrics=())
    assert (h.weights, h.distance, h.norm, h.loss) == (None, None, None, None)
    assert h.cone.shape == (ROUNDS,)
    assert h.metrics == h.silo_metrics == {}
    assert h.shares is None


def prepared(data, user=None, metrics=None, model=LOGISTIC):
    """What a run would be about, without running it: its metrics, and the rows that they are measured on."""
    setup, _, _, part = engine.prepare(cf.fedavg(lr=0.1), model, data, user, metrics, (), None)
    return sorted(setup.metrics), part


def test_by_default_the_metrics_are_those_of_the_model():
    assert prepared(silos()) == (["accuracy", "auroc", "balanced_accuracy", "brier", "log_loss"], "test")
    assert prepared(silos(), model=cf.models.linear()) == (["rmse"], "test")


@pytest.mark.parametrize("name", ["local", "erosion"])
def test_scores_before_round_1_and_after_every_round_are_those_of_the_models_then(name):
    h = straight(name)
    recipe = erosion() if name == "erosion" else cf.local(lr=0.3, batch=3)
    who = [1] if name == "erosion" else range(N)
    for rounds in (0, 1, 3, ROUNDS):
        then = run(recipe, rounds) if rounds < ROUNDS else h
        tests = [by_hand(then.personal(i), silos()[i]) for i in who]
        trains = [by_hand(then.personal(i), silos()[i], "train") for i in who]
        for metric in METRICS:
            expected = np.average([t[metric] for t in tests], weights=[t["rows"] for t in tests])
            np.testing.assert_allclose(h.metrics[metric][rounds], expected, rtol=1e-5)
        loss = np.average([t["log_loss"] for t in trains], weights=[t["rows"] for t in trains])
        np.testing.assert_allclose(h.loss[rounds], loss, rtol=1e-5)
        if name == "local":
            found = [h.silo_metrics[metric][rounds] for metric in METRICS]
            np.testing.assert_allclose(found, [[t[m] for t in tests] for m in METRICS], rtol=1e-5)


@pytest.mark.parametrize("user", [None, 2, "0"])
def test_norms_and_distances_are_those_of_the_messages(user):
    recipe = cf.fedsgd(lr=0.3)
    h = run(recipe, rounds=2, user=user, metrics=())
    model = run(recipe, rounds=1, user=user, metrics=()).personal(0)
    gradients = [by_hand_gradient(model, silos()[i]) for i in range(N)]
    np.testing.assert_allclose(h.norm[1], np.linalg.norm(gradients, axis=1), rtol=1e-4)
    origin = np.mean(gradients, axis=0) if user is None else gradients[int(user)]
    expected = np.linalg.norm(gradients - origin, axis=1) / np.linalg.norm(origin)
    np.testing.assert_allclose(h.distance[1, 0], expected, rtol=1e-4, atol=1e-6)


def by_hand_gradient(params, silo):
    """The gradient of the cross-entropy over all training rows, flattened."""
    X, y = silo.rows("train")
    chances = scipy.special.softmax(X @ np.asarray(params["w"], float) + np.asarray(params["b"], float), axis=1)
    error = (chances - np.eye(2)[y]) / len(y)
    return np.concatenate([error.sum(axis=0), (X.T @ error).ravel()])


def test_of_a_user_only_the_own_held_out_rows_are_on_the_device():
    data = two_class_silos((16, 12, 9)).split(0.3, validation=0.3, seed=1)
    held = {u: engine.prepare(cf.fedavg(lr=0.1), LOGISTIC, data, u, None, (), None)[2] for u in (None, 1, 2)}
    for part in ("test", "validation"):
        whole, one, two = (getattr(held[u], part) for u in (None, 1, 2))
        assert one.X.shape == two.X.shape == (1, *whole.X.shape[1:])  # one program for all users
        for u, own in ((1, one), (2, two)):
            jax.tree.map(np.testing.assert_array_equal, own, jax.tree.map(lambda a, u=u: a[u : u + 1], whole))


def test_the_user_can_be_chosen_for_evaluation_alone():
    everybody, one = straight("fedavg"), run(cf.fedavg(lr=0.3, batch=3), user="2")
    assert one.user == 2
    for metric in METRICS:
        np.testing.assert_allclose(one.metrics[metric], everybody.silo_metrics[metric][:, 2], rtol=1e-6)
    assert_close(one.models, everybody.models)
    assert one.distance[:, 0, 2].tolist() == [0] * ROUNDS


def test_without_test_rows_the_training_rows_are_used():
    assert prepared(two_class_silos((16, 12, 9)))[1] == "train"
    assert prepared(silos().for_user(0), user=0)[1] == "test"
    assert prepared(silos().for_user(0), user=1)[1] == "train"


# Who takes part


def test_the_absent_do_not_arrive_and_do_not_count_the_round():
    h = run(active=absences())
    np.testing.assert_array_equal(h.arrived, absences())
    np.testing.assert_array_equal(h.state.private, absences().sum(axis=0))  # how often each has taken part


def test_without_a_user_distances_are_from_the_mean_of_those_who_are_there():
    recipe, active = cf.fedsgd(lr=0.3), np.array([[1, 1, 1], [1, 0, 1]])
    h = run(recipe, rounds=2, active=active, metrics=())
    model = run(recipe, rounds=1, metrics=()).personal(0)
    there = np.array([by_hand_gradient(model, silos()[i]) for i in (0, 2)])
    origin = there.mean(axis=0)
    expected = np.linalg.norm(there - origin, axis=1) / np.linalg.norm(origin)
    np.testing.assert_allclose(h.distance[1, 0, [0, 2]], expected, rtol=1e-4)


def test_a_round_without_anybody_or_without_the_user_keeps_the_users_model():
    h = run(active=absences())
    changed = np.diff(h.loss) != 0
    assert changed.tolist() == [True, False, True, False, True]
    assert h.mass[[1, 3], 0].tolist() == [0, 0]


def test_a_silo_that_never_comes_changes_nothing():
    recipe = cf.fedavg(lr=0.3, batch=3)
    active = np.ones((ROUNDS, N), bool)
    active[:, 2] = False
    with_it = run(recipe, active=active, metrics=(), record=())
    pairs = [(silos()[i].X[silos()[i].part == 0], silos()[i].y[silos()[i].part == 0]) for i in range(2)]
    without = cf.simulate(recipe, LOGISTIC, cf.Silos.from_arrays(pairs), ROUNDS, metrics=(), record=())
    assert_close(with_it.personal(0), without.personal(0))


@pytest.mark.parametrize("kind", [int, float, bool])
def test_who_takes_part_may_be_said_in_any_numbers(kind):
    assert_same_bits(run(active=absences().astype(kind)), run(active=absences()))


# Traffic


def test_bytes_are_the_size_of_message_and_inbox_of_those_who_take_part():
    h = run(active=absences())
    np.testing.assert_array_equal(h.bytes_up, 4 * PARAMS * absences())
    np.testing.assert_array_equal(h.bytes_down, 4 * (PARAMS + 1) * absences())  # the inbox also says its mass
    assert h.bytes_up.dtype == h.bytes_down.dtype == np.int64


def test_training_alone_sends_nothing():
    h = straight("local")
    assert not h.bytes_up.any()
    assert not h.bytes_down.any()


# The same bits


def test_the_same_seed_gives_the_same_bits():
    assert_same_bits(run(), straight("erosion"))


@pytest.mark.parametrize("key", [lambda: jax.random.key(0), lambda: jax.random.PRNGKey(0)], ids=["typed", "raw"])
def test_an_integer_seed_is_the_key_made_from_it(key):
    assert_same_bits(run(seed=key()), straight("erosion"))


def test_another_seed_gives_another_start_and_other_batches():
    other = run(seed=1)
    assert not np.array_equal(other.loss, straight("erosion").loss)
    zero = {"w": np.zeros((FEATURES, 2)), "b": np.zeros(2)}
    one, two = (run(params=zero, seed=seed) for seed in (0, 1))
    assert one.loss[0] == two.loss[0]
    assert one.loss[1] != two.loss[1]


@pytest.mark.parametrize("stop", range(ROUNDS + 1))
def test_a_run_resumed_at_any_round_has_the_bits_of_a_run_at_once(stop):
    for active in (None, absences()):
        first = run(rounds=stop, active=None if active is None else active[:stop])
        assert first.rounds == stop
        assert_same_bits(run(resume=first, active=active), run(active=active))


def test_a_run_resumed_after_every_round_has_the_bits_of_a_run_at_once():
    h = run(rounds=0)
    for rounds in range(1, ROUNDS + 1):
        h = run(rounds=rounds, resume=h)
    assert_same_bits(h, straight("erosion"))


def test_a_resumed_run_uses_its_own_key():
    assert_same_bits(run(resume=run(rounds=2, seed=4)), run(seed=4))


@pytest.mark.parametrize(("seconds", "size"), [(0, 1 << 25), (1e9, 1 << 25), (1e9, 100), (1e9, 300)])
def test_how_a_run_is_cut_into_chunks_does_not_change_a_bit(monkeypatch, seconds, size):
    expected = straight("erosion")
    monkeypatch.setattr(loop, "CHUNK_SECONDS", seconds)
    monkeypatch.setattr(loop, "CHUNK_BYTES", size)
    seen = []
    h = run(progress=lambda done, rounds: seen.append((done, rounds)))
    assert_same_bits(h, expected)
    chunks = np.diff([0, *(done for done, _ in seen)])
    assert {rounds for _, rounds in seen} == {ROUNDS}
    assert chunks.sum() == ROUNDS
    assert (chunks > 0).all()
    if seconds == 0:
        assert (chunks == 1).all()
    elif size == 1 << 25:
        assert chunks.tolist() == [1, ROUNDS - 1]


# Compilation


def test_programs_are_counted():
    with programs() as compiled:
        jax.jit(lambda x: x + 1)(np.float32(1))
    assert len(compiled) == 1


OTHER_NUMBERS = {
    "lr": {"recipe": erosion(lr=0.123)},
    "p_d": {"recipe": erosion(p_d=0.2)},
    "p_s": {"recipe": erosion(p_s=0.5)},
    "user": {"recipe": erosion(user=2)},
    "rounds": {"rounds": 23},
    "seed": {"seed": 11},
    "absences": {"active": np.eye(ROUNDS, N, dtype=bool)},
}


def test_other_numbers_do_not_make_another_round_loop():
    run()
    before = loop._advance._cache_size()
    for how in OTHER_NUMBERS.values():
        run(**how)
    assert loop._advance._cache_size() == before


@pytest.mark.parametrize("what", OTHER_NUMBERS)
def test_other_numbers_compile_nothing_at_all(monkeypatch, what):
    monkeypatch.setattr(loop, "CHUNK_SECONDS", 1e9)  # so that the clock does not decide where chunks end
    run()
    with programs() as compiled:
        run(**OTHER_NUMBERS[what])
    assert compiled == []


# Where it starts and stops


def test_a_run_starts_from_the_model_given():
    start = {"w": np.arange(6.0).reshape(3, 2) / 10, "b": np.array([0.5, -0.5])}
    none = run(rounds=0, params=start)
    assert_close(none.personal(1), start, 1e-7)
    expected = by_hand(start, silos()[1])["log_loss"]
    np.testing.assert_allclose(run(params=start).metrics["log_loss"][0], expected, rtol=1e-5)


def test_without_a_model_given_it_is_drawn_from_the_seed():
    drawn = LOGISTIC.init(jax.random.fold_in(jax.random.key(7), 0), FEATURES, 2)
    assert_close(run(rounds=0, seed=7).personal(0), drawn, 1e-7)


def test_no_rounds_are_a_run_too():
    h = run(rounds=0)
    assert h.weights.shape == (0, 1, N)
    assert h.norm.shape == h.bytes_up.shape == h.arrived.shape == (0, N)
    assert h.loss.shape == h.metrics["accuracy"].shape == (1,)
    assert h.loss[0] == straight("erosion").loss[0]
    assert h.summary()["bytes_up"] == 0


def test_one_silo_alone_is_a_federation_too():
    data = two_class_silos((9,)).split(0.4)
    one, local = (
        cf.simulate(recipe, LOGISTIC, data, 3, metrics=METRICS)
        for recipe in (cf.fedavg(lr=0.3, batch=3), cf.local(lr=0.3, batch=3))
    )
    assert one.weights.shape == (3, 1, 1)
    assert one.distance.tolist() == [[[0]]] * 3
    assert_close(one.models, local.models)
    np.testing.assert_allclose(one.metrics["log_loss"][-1], by_hand(one.personal(0), data[0])["log_loss"], rtol=1e-5)
    assert {k: v.shape for k, v in one.silo_metrics.items()} == dict.fromkeys(METRICS, (4, 1))


@functools.cache
def drifting_apart():
    """Two silos that agree at first and want opposite things in the end."""
    X = np.array([[1.0, 0.2], [-1.0, -0.2]] * 4)
    return cf.Silos.from_arrays([(X, X @ [1.0, 0]), (X, X @ [1.0, 2])])


def descend(rounds=12, **how):
    start = {"w": np.full((2, 1), -2.0), "b": np.zeros(1)}
    how = {"params": start, "metrics": ["rmse"], "record": ("cone", "norm"), **how}
    return cf.simulate(cf.fedsgd(lr=0.4), cf.models.linear(), drifting_apart(), rounds, **how)


def test_the_cone_stop_ends_before_the_first_round_whose_messages_fit_in_no_cone():
    free, stopped = descend(), descend(stop="cone")
    first = int((free.cone <= 0).argmax())
    assert 0 < first < 12
    assert (stopped.rounds, stopped.stopped, free.stopped) == (first, True, False)
    assert_same_bits(descend(first), descend(first, resume=stopped))
    np.testing.assert_array_equal(stopped.loss, free.loss[: first + 1])
    assert stopped.norm.shape == stopped.bytes_up.shape == (first, 2)
    assert int(stopped.state.round) == first + 1
    early = descend(first, stop="cone")
    assert (early.rounds, early.stopped) == (first, False)


def test_a_stopped_run_goes_on_without_the_stop_rule():
    stopped = descend(stop="cone")
    assert_same_bits(descend(resume=stopped), descend())
    again = descend(resume=stopped, stop="cone")
    assert (again.rounds, again.stopped) == (stopped.rounds, True)


# Precision


START = {"w": np.linspace(-1, 1, 6).reshape(3, 2), "b": np.zeros(2)}


@pytest.mark.usefixtures("x64")
def test_a_run_in_double_precision_is_double_throughout_and_agrees_with_single():
    h = run(params=START)
    assert {a.dtype.name for a in jax.tree.leaves(h.models)} == {"float64"}
    assert {h.weights.dtype, h.norm.dtype, h.distance.dtype, h.loss.dtype} == {np.dtype(float)}
    np.testing.assert_array_equal(h.bytes_up, np.full((ROUNDS, N), 8 * PARAMS))
    np.testing.assert_allclose(h.metrics["log_loss"][-1], by_hand(h.personal(1), silos()[1])["log_loss"], rtol=1e-12)
    with jax.enable_x64(False):
        single = run(params=START)
    np.testing.assert_allclose(h.loss, single.loss, rtol=1e-4)


@pytest.mark.usefixtures("x64")
def test_a_single_precision_model_may_be_trained_where_double_is_on():
    recipe = cf.fedavg(lr=0.3, batch=3, momentum=0.9)
    h = run(recipe, rounds=1, params=jax.tree.map(np.float32, START), metrics=())
    assert {a.dtype.name for a in jax.tree.leaves(h.models)} == {"float32"}


# Grids


@functools.cache
def grid():
    """All users, two seeds, two learning rates, two penalties: 24 runs."""
    return list(itertools.product([0, 1, 2], [0, 5], [0.1, 0.5], [0.0, 0.3]))


def test_a_grid_of_users_seeds_and_numbers_is_one_program_and_equals_single_runs():
    train, test = jax.device_put((silos().block("train"), silos().block("test")))
    setup = cf.Setup(erosion().make, LOGISTIC, METRICS)

    @jax.jit
    @jax.vmap
    def many(user, key, hyper):
        params = LOGISTIC.init(jax.random.fold_in(key, 0), FEATURES, 2)
        return cf.rollout(setup, ROUNDS, {**hyper, "user": user}, key, params, train, test, user)

    together = many(*grid_arguments(grid()))
    for k, (user, seed, lr, p_d) in enumerate(grid()):
        alone, among = run(erosion(user, lr, p_d), seed=seed), jax.tree.map(lambda a, k=k: a[k], together)
        assert_close(among.state, alone.state)
        assert_close((among.entries.record.weights, among.entries.record.mass), (alone.weights, alone.mass))
        assert_close(among.entries.record.observed, {"distance": alone.distance[:, 0], "norm": alone.norm})
        assert_close((among.before.loss[0], among.entries.scores.loss[:, 0]), (alone.loss[0], alone.loss[1:]))
        assert_close(among.entries.scores.metrics, {name: alone.metrics[name][1:, None] for name in METRICS})
    many(*grid_arguments(list(reversed(grid()))))
    assert many._cache_size() == 1


def grid_arguments(runs):
    users, seeds, lrs, penalties = (np.array(column) for column in zip(*runs, strict=True))
    hyper = numbers({"lr": lrs, "p_d": penalties, "p_s": np.full(len(runs), 0.2)})
    return jnp.asarray(users, jnp.int32), jax.vmap(jax.random.key)(seeds), hyper
