"""The debugging host: the compiled run's numbers, and the silo, round and stage where a number is lost."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.data.silo import Silo
from confrere.debug import NotFinite, check_finite
from confrere.simulation import loop
from tests.helpers import two_class_silos

LOGISTIC, LINEAR = cf.models.logistic(), cf.models.linear()
NAMES = ("a", "b")


@functools.cache
def silos():
    return cf.Silos.from_arrays([(s.X, s.y) for s in two_class_silos((6, 5), features=2).silos], names=NAMES)


def spoilt(X=None, y=None, name="b"):
    """The same silos with something in one of them that `from_arrays` would have refused."""
    swap = {s.name: s for s in silos().silos}
    old = swap[name]
    swap[name] = Silo(name, old.X if X is None else X(old.X), old.y if y is None else y(old.y), old.part)
    return cf.Silos(tuple(swap.values()), silos().feature_names)


def run(recipe, model=LOGISTIC, data=None, rounds=3, **how):
    return cf.simulate(recipe, model, silos() if data is None else data, rounds, **{"metrics": (), **how})


SLOW = pytest.mark.slow
RECIPES = {
    "erosion": (cf.weight_erosion(user="b", lr=0.3, p_d=0.1), ["accuracy"]),
    "fedavg": (cf.fedavg(lr=0.3, batch=2, momentum=0.9), None),
    "local": (cf.local(lr=0.3), ["log_loss"]),
}


@pytest.mark.parametrize("name", ["erosion", pytest.param("fedavg", marks=SLOW), pytest.param("local", marks=SLOW)])
def test_debugging_gives_the_compiled_runs_numbers(name):
    recipe, metrics = RECIPES[name]
    how = {"active": [[1, 1], [1, 0], [0, 1]], "metrics": metrics, "seed": 3}
    compiled, checked = (run(recipe, **how, debug=debug) for debug in (False, True))
    for field in ("weights", "mass", "arrived", "distance", "norm", "loss", "bytes_up", "bytes_down", "metrics"):
        one, two = getattr(compiled, field), getattr(checked, field)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), one, two)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), compiled.models, checked.models)
    assert checked.rounds == compiled.rounds == 3


@SLOW
def test_debugging_stops_as_the_compiled_run_does():
    X = np.array([[1.0, 0.2], [-1.0, -0.2]])
    data = cf.Silos.from_arrays([(X, X @ [1.0, 0]), (X, X @ [1.0, 2])], names=NAMES)
    how = {"model": LINEAR, "data": data, "rounds": 9, "params": {"w": np.full((2, 1), -2.0), "b": np.zeros(1)}}
    compiled, checked = (run(cf.fedsgd(lr=0.4), stop="cone", **how, debug=debug) for debug in (False, True))
    assert compiled.stopped
    assert (checked.rounds, checked.stopped) == (compiled.rounds, True)
    np.testing.assert_allclose(checked.cone, compiled.cone, rtol=1e-4)


def test_debugging_resumes_as_the_compiled_run_does():
    recipe, seen = cf.fedsgd(lr=0.3), []
    resumed = run(recipe, rounds=2, debug=True, resume=run(recipe, rounds=1), progress=lambda *done: seen.append(done))
    np.testing.assert_allclose(resumed.personal("a")["w"], run(recipe, rounds=2).personal("a")["w"], rtol=1e-5)
    assert len(seen) == 1
    none = run(recipe, rounds=0, debug=True)
    assert none.weights.shape == (0, 1, 2)


# What is named


def message_of(recipe, **how):
    with pytest.raises(NotFinite) as problem:
        run(recipe, **how, debug=True)
    return str(problem.value)


def test_a_nan_in_the_rows_is_named_with_silo_and_stage():
    data = spoilt(X=lambda X: np.where(np.arange(X.size).reshape(X.shape) == 3, np.nan, X))
    found = message_of(cf.fedsgd(lr=0.3), data=data)
    assert found.startswith("round 1, data of silo 'b': 1 of ")


def roots(params, batch):
    """A loss that is NaN for negative labels: the root of the label enters."""
    own = LINEAR.loss(params, batch)
    return own * jnp.sqrt(jnp.where(batch.live, batch.y, 0)).sum()


def test_a_loss_that_is_nan_in_one_silo_names_that_silo():
    data = spoilt(y=lambda y: y - 2.0)
    model = LINEAR._replace(loss=roots)
    found = message_of(cf.fedsgd(lr=0.3), model=model, data=data)
    assert found.startswith("round 1, message of silo 'b'")
    assert "'x'" in found


def test_divergence_names_the_round_in_which_it_shows():
    how = {"recipe": cf.fedsgd(lr=1e15), "model": LINEAR}
    finite = [bool(np.isfinite(run(rounds=k, **how).personal(0)["w"]).all()) for k in range(5)]
    assert finite[0]
    assert not finite[-1]
    assert message_of(rounds=5, **how).startswith(f"round {finite.index(False)}, model handed out: ")


def nan_from_round(number, where):
    """FedSGD whose mixer or private state is NaN from some round on."""

    def maker(loss, lr):
        base = cf.federate(cf.clients.gradient(loss), cf.mixers.server(cf.weighted(cf.weights.uniform())))
        mixer = base.mixer

        def mix(message, state, ctx):
            inbox, state, mixed = mixer.update(message, state, ctx)
            bad = jnp.where(ctx.round >= number, jnp.nan, 0)
            if where == "mix":
                return inbox, state, mixed._replace(mass=mixed.mass + bad)
            return jax.tree.map(lambda a: a + bad, inbox), state, mixed

        def update(inbox, private, data, ctx):
            message, count = base.client.update(inbox, private[0], data, ctx)
            return message, (count, jnp.where(ctx.round >= number, jnp.nan, 0.0))

        if where == "private state":
            client = base.client._replace(init=lambda p: ({"x": p}, (jnp.int32(0), jnp.float32(0))), update=update)
            return cf.federate(client, mixer)
        return cf.federate(base.client, mixer._replace(update=mix))

    return cf.Recipe.of(maker, "broken", {}, lr=0.1)


@pytest.mark.parametrize(
    ("where", "words"),
    [("mix", "round 2, mix:"), ("model", "round 2, model handed out:"), ("private state", "private state of silo 'a'")],
)
def test_the_stage_is_named(where, words):
    found = message_of(nan_from_round(2, where))
    assert words in found
    assert found.startswith("round 2, ")


def test_the_rows_of_an_absent_silo_are_not_looked_at():
    data = spoilt(X=lambda X: np.full_like(X, np.nan))
    history = run(cf.fedsgd(lr=0.3), data=data, rounds=1, active=[[1, 0]], debug=True)
    assert np.isfinite(history.personal("a")["w"]).all()
    found = message_of(cf.fedsgd(lr=0.3), data=data, rounds=2, active=[[1, 0], [1, 1]])
    assert found.startswith("round 2, data of silo 'b'")


def test_the_compiled_run_leaves_out_what_debugging_names():
    data = spoilt(X=lambda X: np.where(np.arange(X.size).reshape(X.shape) == 3, np.nan, X))
    history = run(cf.fedsgd(lr=0.3), data=data)
    assert history.arrived.tolist() == [[True, False]] * 3
    assert np.isfinite(history.personal("a")["w"]).all()


def test_check_finite_counts_and_names_the_part():
    check_finite({"x": jnp.ones(3), "n": jnp.int32(1)}, 1, "message", "a")
    tree = {"x": {"w": jnp.array([1.0, np.inf, np.nan])}}
    with pytest.raises(NotFinite, match=r"round 4, message of silo 'a': 2 of 3 numbers of \['x'\]\['w'\]"):
        check_finite(tree, 4, "message", "a")
    with pytest.raises(FloatingPointError, match="round 4, mix: 2 of 3"):
        check_finite(tree, 4, "mix")


def test_debugging_runs_without_compiling_the_round_loop():
    before = loop._advance._cache_size()
    run(cf.fedsgd(lr=0.3), rounds=1, debug=True)
    assert loop._advance._cache_size() == before
