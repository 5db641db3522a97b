"""Bad input: a clear error at the door, or a defined result; never NaN."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.data.silo import Silo
from confrere.program import Setup, numbers
from confrere.recipe import Bound
from tests.helpers import ALGORITHMS, two_class_silos

LOGISTIC = cf.models.logistic()
ROUNDS, N = 4, 3
BROKEN = (np.nan, np.inf, -np.inf)


@functools.cache
def silos():
    return two_class_silos((13, 9, 6))


def run(recipe=None, data=None, rounds=1, model=LOGISTIC, **how):
    recipe = cf.fedsgd(lr=0.1) if recipe is None else recipe
    return cf.simulate(recipe, model, silos() if data is None else data, rounds, **{"metrics": (), **how})


def assert_finite(tree):
    for leaf in jax.tree.leaves(tree):
        if np.asarray(leaf).dtype.kind == "f":
            assert np.isfinite(leaf).all()


# Numbers that are not there


@pytest.mark.parametrize("value", BROKEN)
def test_rows_that_are_not_finite_are_refused_at_the_door(value):
    X = np.ones((4, 2))
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"silo 'b'.*row 3, column 1"):
        cf.Silos.from_arrays([(np.ones((4, 2)), [0, 1, 0, 1]), (X, [0, 1, 0, 1])], names="ab")


@pytest.mark.parametrize("place", range(N))
def test_a_silo_whose_message_is_not_finite_counts_as_absent(place):
    """What came past the door all the same: the silo is left out, and the others go on without it."""
    broken = [Silo(s.name, s.X * (np.nan if i == place else 1), s.y, s.part) for i, s in enumerate(silos().silos)]
    data = cf.Silos(tuple(broken), silos().feature_names)
    absent = np.tile(np.arange(N) != place, (2, 1))
    for recipe in (cf.fedsgd(lr=0.1), cf.weight_erosion(user=0, lr=0.1)):
        left_out, away = run(recipe, data, 2), run(recipe, rounds=2, active=absent)
        np.testing.assert_array_equal(left_out.arrived, absent)
        for field in ("weights", "norm", "distance", "models"):
            jax.tree.map(np.testing.assert_array_equal, getattr(left_out, field), getattr(away, field))
        assert_finite((left_out.models, left_out.weights, left_out.norm, left_out.distance, left_out.mass))


def test_numbers_too_large_for_single_precision_are_refused_or_harmless():
    data = cf.Silos.from_arrays([(silos()[0].X * 1e300, silos()[0].y), (silos()[1].X, silos()[1].y)], names="ab")
    with pytest.raises(ValueError, match="'a'"):
        run(data=data, metrics=["log_loss"])


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e15])
@pytest.mark.parametrize(
    "recipe", [cf.fedsgd(lr=0.1), cf.weight_erosion(user=0, lr=0.1, p_d=0.1)], ids=lambda r: r.name
)
def test_extreme_but_finite_rows_give_finite_results(scale, recipe):
    data = cf.Silos.from_arrays([(s.X * scale, s.y) for s in silos().silos])
    history = run(recipe, data, 2, metrics=["log_loss"])
    assert_finite((history.models, history.weights, history.norm, history.distance, history.loss, history.metrics))


def test_equal_rows_and_one_class_are_no_trouble():
    data = cf.Silos.from_arrays(
        [(np.ones((13, 3)), np.zeros(13, int)), (np.ones((9, 3)), np.ones(9, int)), silos_pair(2)]
    )
    history = run(cf.weight_erosion(user=0, lr=0.1), data, 2, metrics=["log_loss"])
    assert_finite((history.models, history.weights, history.loss, history.metrics))


def silos_pair(i):
    return silos()[i].X, silos()[i].y


# Who vanishes, and when


def vanishing():
    """Every silo gone from every round on, or for that round alone; then nobody: always, in the middle, at the end."""
    traces = {}
    for gone in range(N):
        for since in range(ROUNDS):
            for until in (ROUNDS, since + 1):
                active = np.ones((ROUNDS, N), bool)
                active[since:until, gone] = False
                traces[f"silo {gone} gone in rounds {since + 1} to {until}"] = active
    for name, rounds in {"always": slice(None), "in the middle": slice(1, 3), "at the end": slice(2, None)}.items():
        active = np.ones((ROUNDS, N), bool)
        active[rounds] = False
        traces[f"nobody {name}"] = active
    return traces


def runs_with_absences(name):
    """One run per trace of `vanishing`, all as one program, and the losses before round 1 and after every round."""
    recipe = ALGORITHMS[name].make([0, 1, 2])
    setup = Setup(recipe.make, LOGISTIC, ("accuracy", "log_loss"), True, ("weights", "distance", "norm"))

    @jax.jit
    def all_of_them(hyper, block, active):
        params = LOGISTIC.init(jax.random.key(0), 3, 2)
        one = lambda a: cf.rollout(setup, ROUNDS, hyper, jax.random.key(0), params, block, block, None, a)  # noqa: E731
        return jax.vmap(one)(active)

    found = all_of_them(numbers(recipe.hyper), silos().block(), np.stack(list(vanishing().values())))
    found = jax.tree.map(np.asarray, found)
    return found, np.concatenate([found.before.loss[:, None], found.entries.scores.loss], axis=1)


ERODING = {"weight-erosion": 0, "weight-erosion-updates": 1}  # and their users


@pytest.mark.parametrize("name", ["local", "fedavg", "fine-tuned", *ERODING])
def test_whoever_vanishes_whenever_the_others_go_on_and_nothing_is_nan(name):
    here = np.stack(list(vanishing().values()))  # [traces, R, n]
    found, loss = runs_with_absences(name)
    assert_finite(found)
    np.testing.assert_array_equal(found.entries.record.arrived, here)
    moved = np.abs(np.diff(loss, axis=1)) > 1e-6
    np.testing.assert_array_equal(moved, counting(name, here))
    if name in ERODING:
        check_weights_stand_still(found.entries.record.weights[:, :, 0], here, ERODING[name])


def counting(name, here):
    """Whose model moves in a round: the silo's own, the user's, or anybody's presence decides."""
    if name == "local":
        return here
    decides = here[:, :, ERODING[name]] if name in ERODING else here.any(axis=2)
    return np.repeat(decides[:, :, None], N, axis=2)


def check_weights_stand_still(weights, here, user):
    """Nobody's weight changes while it or the user is away, once it has been seen."""
    for trace, active in zip(weights, here, strict=True):
        for k in range(1, ROUNDS):
            kept = active[:k].any(axis=0) & (~active[k] | ~active[k, user])
            np.testing.assert_array_equal(trace[k][kept], trace[k - 1][kept])


def test_nobody_ever_is_a_run_in_which_nothing_happens():
    everything = ("weights", "norm", "distance", "cone")
    history = run(rounds=3, active=np.zeros((3, N)), metrics=["accuracy"], record=everything)
    start = run(rounds=0)
    jax.tree.map(np.testing.assert_array_equal, history.models, start.models)
    np.testing.assert_allclose(history.loss, history.loss[0], rtol=1e-6)
    assert len(set(history.metrics["accuracy"])) == 1
    assert not history.bytes_up.any()
    assert not history.mass.any()
    assert not history.shares.any()
    assert_finite((history.loss, history.norm, history.distance, history.cone))


def test_a_silo_without_training_rows_is_never_there():
    data = two_class_silos((13, 9, 1)).split(0.9)
    assert data.sizes("train")[2] == 0
    for recipe in (cf.weight_erosion(user=0, lr=0.1), cf.fine_tuned(lr=0.1, batch=4)):
        history = run(recipe, data, 2, metrics=["log_loss"])
        assert not history.arrived[:, 2].any()
        assert not history.bytes_up[:, 2].any()
        assert_finite((history.models, history.weights, history.loss, history.metrics))


def test_a_user_without_training_rows_is_refused_by_name():
    data = two_class_silos((13, 9, 1)).split(0.9)
    with pytest.raises(ValueError, match="silo '2', has no training rows"):
        run(cf.weight_erosion(user=2, lr=0.1), data, 2)


# Messages of the wrong shape


def talking(say):
    """FedSGD whose silos say something else."""

    def maker(loss, lr):
        base = cf.federate(cf.clients.gradient(loss), cf.mixers.server(cf.weighted(cf.weights.uniform())))

        def update(inbox, private, data, ctx):
            message, private = base.client.update(inbox, private, data, ctx)
            return say(message), private

        return cf.federate(base.client._replace(update=update), base.mixer)

    return cf.Recipe.of(maker, "talking", {}, lr=0.1)


MESSAGES = {
    "transposed": (lambda m: {"x": {**m["x"], "w": m["x"]["w"].T}}, "part 'x'.*the server holds"),
    "cut short": (lambda m: {"x": {**m["x"], "b": m["x"]["b"][:1]}}, "part 'x'.*the server holds"),
    "a number": (lambda m: {"x": jax.tree.map(jnp.sum, m["x"])}, "part 'x'.*the server holds"),
    "a leaf too few": (lambda m: {"x": {"w": m["x"]["w"]}}, "part 'x'.*the server holds"),
    "a leaf too many": (lambda m: {"x": {**m["x"], "c": m["x"]["b"]}}, "part 'x'.*the server holds"),
    "another part": (lambda m: {"z": m["x"]}, "part 'x'.*only z"),
    "no dict": (lambda m: m["x"]["w"], "dict"),
}


@pytest.mark.parametrize("what", MESSAGES)
@pytest.mark.parametrize("debug", [False, True], ids=["compiled", "debug"])
def test_a_message_of_the_wrong_shape_is_refused_and_its_part_named(what, debug):
    say, words = MESSAGES[what]
    with pytest.raises((ValueError, TypeError), match=words):
        run(talking(say), debug=debug)


def test_a_rule_with_too_few_rows_is_refused():
    def maker(loss, lr):
        return cf.federate(
            cf.clients.gradient(loss), cf.mixers.server(cf.weighted(cf.weights.uniform()), deliver="own")
        )

    with pytest.raises(ValueError, match=r"1 row\(s\) of weights.*holds 3 model"):
        run(cf.Recipe.of(maker, "too few", {}, lr=0.1))


def test_a_part_that_the_server_does_not_know_is_refused():
    def maker(loss, lr):
        client = cf.clients.gradient(loss)
        client = client._replace(init=lambda p: ({"x": p, "c": p}, jnp.int32(0)))
        return cf.federate(client, cf.mixers.server(cf.weighted(cf.weights.uniform())))

    with pytest.raises(ValueError, match="no part for 'c'"):
        run(cf.Recipe.of(maker, "unknown part", {}, lr=0.1))


# Words and numbers


@pytest.mark.parametrize("rounds", [-1, 1.5, "3", True, None, float("nan"), float("inf")], ids=str)
def test_rounds_must_be_a_whole_number(rounds):
    with pytest.raises((ValueError, TypeError), match="rounds"):
        run(rounds=rounds)


@pytest.mark.parametrize("shape", [(N,), (3, N), (2, N + 1), (N, 2), (2, N, 1)], ids=str)
def test_a_trace_of_the_wrong_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"\(rounds, silos\) = \(2, 3\), not"):
        run(rounds=2, active=np.ones(shape))


@pytest.mark.parametrize("metrics", [["f1"], ["accuracy", "Accuracy"], "accuracy"], ids=str)
def test_metrics_that_do_not_exist_are_refused(metrics):
    with pytest.raises(ValueError, match=r"metrics.*accuracy, balanced_accuracy, log_loss, auroc"):
        run(metrics=metrics)


@pytest.mark.parametrize(("model", "metric"), [(cf.models.linear(), "accuracy"), (LOGISTIC, "rmse")])
def test_metrics_of_another_task_are_refused(model, metric):
    with pytest.raises(ValueError, match=metric):
        run(model=model, metrics=[metric])


@pytest.mark.parametrize("record", [["weight"], ["norm", "x"], "norm"], ids=str)
def test_records_that_do_not_exist_are_refused(record):
    with pytest.raises(ValueError, match=r"record.*weights, distance, norm, cone"):
        run(record=record)


def test_a_stop_rule_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="stop must be None or 'cone', not 'early'"):
        run(stop="early")


@pytest.mark.parametrize(("user", "error"), [("z", KeyError), (3, IndexError), (-1, IndexError)])
def test_a_user_that_does_not_exist_is_refused(user, error):
    with pytest.raises(error, match="no silo"):
        run(user=user)
    with pytest.raises(error, match="no silo"):
        run(cf.weight_erosion(user=user, lr=0.1))


@pytest.mark.parametrize("seed", ["a", 1.5, None, 10**20, -(2**63) - 1], ids=str)
def test_a_seed_that_is_neither_integer_nor_key_is_refused(seed):
    with pytest.raises((ValueError, TypeError), match="seed"):
        run(seed=seed)


def test_what_is_no_algorithm_no_model_or_no_silos_is_refused():
    with pytest.raises(TypeError, match="algorithm"):
        cf.simulate(cf.fedsgd, LOGISTIC, silos(), 1)
    with pytest.raises(TypeError, match="model"):
        cf.simulate(cf.fedsgd(lr=0.1), cf.models.logistic, silos(), 1)
    with pytest.raises(TypeError, match="Silos"):
        cf.simulate(cf.fedsgd(lr=0.1), LOGISTIC, [silos_pair(0)], 1)


@pytest.mark.parametrize("labels", [[0, 1, 2.5], [0, -1, 1]], ids=str)
def test_labels_that_are_no_class_numbers_are_refused_and_named(labels):
    data = cf.Silos.from_arrays([(np.ones((3, 2)), [0, 1, 0]), (np.ones((3, 2)), labels)], names="ab")
    with pytest.raises(ValueError, match=r"silo 'b'.*class number.*regression"):
        run(data=data)


def test_class_numbers_may_come_as_decimal_numbers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)), np.arange(9) % 3
    whole, decimal = (
        run(data=cf.Silos.from_arrays([(X, labels)]), metrics=["log_loss"]) for labels in (y, y.astype(float))
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), whole.models, decimal.models)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), whole.metrics, decimal.metrics)


@pytest.mark.parametrize(
    "params",
    [
        {"w": np.zeros((5, 2)), "b": np.zeros(2)},
        {"w": np.zeros((3, 2))},
        {"w": np.zeros((3, 3)), "b": np.zeros(3)},
        {"w": np.full((3, 2), np.nan), "b": np.zeros(2)},
    ],
    ids=["features", "a leaf too few", "classes", "NaN"],
)
def test_a_start_that_does_not_fit_or_is_not_finite_is_refused(params):
    with pytest.raises(ValueError, match="params"):
        run(params=params)


NUMBERS = (-0.1, np.nan, np.inf, "fast", np.float32(-0.1), np.float32(np.nan), None)


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["fedsgd", "local", "fedavg", "fine_tuned", "weight_erosion"])
def test_a_learning_rate_that_makes_no_sense_is_refused(name, number):
    user = {"user": 0} if name == "weight_erosion" else {}
    with pytest.raises((ValueError, TypeError), match="lr"):
        getattr(cf, name)(lr=number, **user)


@pytest.mark.parametrize("number", NUMBERS[:4], ids=repr)
@pytest.mark.parametrize("what", ["p_d", "p_s", "l2", "momentum", "weight_decay"])
def test_other_numbers_that_make_no_sense_are_refused(what, number):
    training = {"form": "update"} if what in ("momentum", "weight_decay") else {}
    with pytest.raises((ValueError, TypeError), match=what):
        cf.weight_erosion(user=0, lr=0.1, **{what: number}, **training)


@pytest.mark.parametrize(
    ("name", "how", "word"),
    [
        ("fedsgd", {"weights": "rows"}, "weights"),
        ("fedsgd", {"order": "random"}, "order"),
        ("fedavg", {"epochs": 1, "steps": 1}, "epochs or steps"),
        ("fedavg", {"batch": 0}, "batch"),
        ("fedavg", {"batch": 2.5}, "batch"),
        ("fedavg", {"epochs": 0}, "epochs"),
        ("local", {"steps": -1}, "steps"),
        ("fine_tuned", {"tune_steps": -1}, "tune_steps"),
        ("weight_erosion", {"user": 0, "form": "both"}, "form"),
        ("weight_erosion", {"user": 0, "steps": 2}, "steps.*form='update'"),
        ("weight_erosion", {"user": 0, "passes": "book"}, "passes"),
        ("weight_erosion", {"user": 0, "newcomer": "mode"}, "newcomer"),
    ],
    ids=str,
)
def test_words_that_do_not_go_together_are_refused(name, how, word):
    with pytest.raises(ValueError, match=word):
        getattr(cf, name)(lr=0.1, **how)


def test_a_recipe_can_only_be_given_numbers_that_it_has():
    with pytest.raises(TypeError, match=r"fedsgd has no hyper-parameter p_d; it has lr"):
        cf.fedsgd(lr=0.1).replace(p_d=0.1)


def test_a_bare_function_will_do_as_a_recipe():
    made = cf.Recipe(cf.fedsgd(lr=0.1).make.maker, {}, {"lr": 0.1})
    assert not isinstance(made.make, Bound)
    bare = cf.Recipe(lambda loss, lr: made.make(loss, lr, "size", batch=None, order="shuffled"), {}, {"lr": 0.1})
    jax.tree.map(np.testing.assert_array_equal, run(bare).models, run().models)
