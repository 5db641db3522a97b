"""The conformance suite bites: it passes a sound algorithm, and for each property fails one that breaks it."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import confrere as cf
from confrere import testing
from confrere.core import present
from confrere.mixers import server, step
from confrere.testing import Case, check_algorithm, small_problem

# A sound one


def like_minded():
    """Every silo listens to the others as far as their messages point where its own does."""

    def update(geometry, state, ctx):
        norm = geometry.norm()
        size = jnp.where(norm > 0, norm, 1)
        return jnp.maximum(0, geometry.dot() / size / size[:, None]) + jnp.eye(len(norm)), state

    return cf.Weights(lambda n: (), update)


def adaptive(loss, lr):
    """A model for every silo, moved by Adam along the mean of those who agree with it."""
    return cf.federate(cf.clients.gradient(loss), server(cf.weighted(like_minded()), "own", x=step(optax.adam(lr))))


def recipe_of(maker, **hyper):
    return lambda order: cf.Recipe.of(maker, "trial", {}, lr=0.2, **hyper)


@pytest.mark.slow
def test_a_sound_algorithm_of_ones_own_passes():
    check_algorithm(recipe_of(adaptive))


def test_a_recipes_user_moves_along_with_the_silos():
    make = testing.moving(cf.weight_erosion(user=2, lr=0.1))
    assert make([1, 2, 0, 3]).hyper["user"] == 1
    plain = cf.fedsgd(lr=0.1)
    assert testing.moving(plain)([1, 0]) is plain


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("fedavg", "'fedavg' is no algorithm: give a recipe such as"),
        (cf.fedavg, "lr is .*, not a number: give a recipe such as"),
        (lambda order: cf.models.logistic(), "it made Model, not a recipe"),
        (cf.weight_erosion(user="a", lr=0.1), "by its place, as in user=0"),
    ],
)
def test_what_is_no_recipe_is_refused(given, said):
    with pytest.raises((TypeError, ValueError), match=said):
        check_algorithm(given)


def every_check():
    return {k: v for k, v in vars(testing).items() if k.startswith("check_") and k != "check_algorithm"}


def test_check_algorithm_makes_every_check(monkeypatch):
    made = []
    for name in every_check():
        monkeypatch.setattr(testing, name, lambda *given, name=name: made.append(name))
    check_algorithm(recipe_of(adaptive))
    assert sorted(made) == sorted(every_check())


# Broken ones: each is FedSGD with one thing wrong


def fedsgd(loss, lr, weights=None, rule=None, x=None, deliver="same"):
    weights = cf.weights.uniform() if weights is None else weights
    rule = cf.weighted(weights) if rule is None else rule
    return cf.federate(cf.clients.gradient(loss), server(rule, deliver, x=step(optax.sgd(lr)) if x is None else x))


def with_client(maker):
    """An algorithm whose client's update is changed by `maker(update)`."""

    def make(loss, lr):
        base = fedsgd(loss, lr)
        return cf.federate(base.client._replace(update=maker(base.client.update)), base.mixer)

    return make


def with_weights(row, state=()):
    """An algorithm whose weights are `row(geometry, ctx)`."""
    weights = cf.Weights(lambda n: state, lambda geometry, state, ctx: (row(geometry, ctx)[None], state))
    return lambda loss, lr: fedsgd(loss, lr, weights)


def with_mixed(change):
    """An algorithm whose mean and mass are changed by `change(mixed, message, ctx)`."""
    base = cf.weighted(cf.weights.uniform())

    def update(message, state, ctx):
        mixed, state = base.update(message, state, ctx)
        return change(mixed, message, ctx), state

    return lambda loss, lr: fedsgd(loss, lr, rule=cf.Rule(base.init, update))


def with_round(change):
    """An algorithm that does more in a round than its client and mixer say."""

    def make(loss, lr):
        base = fedsgd(loss, lr)

        def update(state, data, key, active=None, observe=None):
            new, record = base.update(state, data, key, active, observe)
            return change(base, new, data, key), record

        return base._replace(update=update)

    return make


@with_client
def says_half_precision(update):
    def changed(inbox, private, data, ctx):
        message, private = update(inbox, private, data, ctx)
        return {**message, "told": jnp.bfloat16(1.5)}, private

    return changed


@with_client
def counts_in_halves(update):
    def changed(inbox, private, data, ctx):
        message, private = update(inbox, private, data, ctx)
        return message, private + 0.5

    return changed


@with_client
def reads_padding(update):
    def changed(inbox, private, data, ctx):
        message, private = update(inbox, private, data, ctx)
        return jax.tree.map(lambda a: a + data.X.mean(), message), private

    return changed


@with_client
def is_not_pure(update):
    calls = itertools.count()

    def changed(inbox, private, data, ctx):
        message, private = update(inbox, private, data, ctx)
        spec = jax.ShapeDtypeStruct((), jnp.float32)
        noise = jax.pure_callback(lambda _: np.float32(next(calls)), spec, ctx.round, vmap_method="sequential")
        return jax.tree.map(lambda a: a + noise, message), private

    return changed


MADE = itertools.count(1)


def remembers_how_often_it_was_made(loss, lr):
    return fedsgd(loss, lr * (1 + 0.1 * next(MADE)))


def doubled_for_the_user(loss, lr, user):
    base = step(optax.sgd(lr))

    def update(mixed, message, held, state, ctx):
        moved, state = base.update(mixed, message, held, state, ctx)
        twice = jnp.where(jnp.arange(len(ctx.size)) == user, 2.0, 1.0)
        scale = lambda new, old: old + twice.reshape(-1, *(1,) * (new.ndim - 1)) * (new - old)  # noqa: E731
        return jax.tree.map(scale, moved, held), state

    return fedsgd(loss, lr, cf.weights.self_only(), x=base._replace(update=update), deliver="own")


def decays_when_nobody_is_there(loss, lr):
    base = step(optax.sgd(lr))

    def update(mixed, message, held, state, ctx):
        moved, state = base.update(mixed, message, held, state, ctx)
        return jax.tree.map(lambda a: 0.9 * a, moved), state

    return fedsgd(loss, lr, x=base._replace(update=update))


def counts_empty_rounds(loss, lr):
    weights = cf.Weights(lambda n: jnp.int32(0), lambda g, state, ctx: (jnp.ones((1, len(ctx.size))), state + 1))
    return fedsgd(loss, lr, weights)


def branches_on_a_number(loss, lr):
    return fedsgd(loss, lr if lr > 0 else -lr)


def everybody_changes(base, state, data, key):
    return state._replace(private=state.private + 1)


def rows_leak(base, state, data, key):
    return state._replace(inbox=jax.tree.map(lambda a: a + 0 * data.X.sum(), state.inbox))


def one_more_step(base, state, data, key):
    return state._replace(inbox=base.update(state, data, key)[0].inbox)


def counts_the_absent(mixed, message, ctx):
    share = present(ctx).mean()
    return mixed._replace(mean=jax.tree.map(lambda a: a * share, mixed.mean))


def explodes(geometry, ctx):
    return jnp.exp(geometry.norm())


BROKEN = {
    "a message that the wire cannot carry": (says_half_precision, "message_on_the_wire", "survives the wire"),
    "a private state that changes type": (counts_in_halves, "shapes_are_static", "changes shape or type"),
    "negative weights": (with_weights(lambda g, ctx: jnp.arange(4.0) - 0.5), "weights", "negative"),
    "weights that are not finite": (with_weights(lambda g, ctx: jnp.log(g.sq(0))), "weights", "finite"),
    "another mass than the weights": (
        with_mixed(lambda mixed, message, ctx: mixed._replace(mass=2 * mixed.mass)), "weights", "mass",
    ),
    "a mass that counts the absent": (
        with_mixed(lambda mixed, message, ctx: mixed._replace(mass=mixed.weights.sum(axis=1))), "weights", "mass",
    ),
    "a mass below zero": (
        with_mixed(lambda mixed, message, ctx: mixed._replace(mass=-mixed.mass, weights=None)), "weights", "negative",
    ),
    "chance from outside": (is_not_pure, "same_key_same_bits", "same key gives the same bits"),
    "memory outside the state": (is_not_pure, "resume", "resumed after every round"),
    "memory of how often it was made": (remembers_how_often_it_was_made, "vmap", "side by side"),
    "padding that counts": (reads_padding, "padding", "padding changes nothing"),
    "weights by place": (with_weights(lambda g, ctx: jnp.arange(1.0, 5)), "permutation", "permuting the silos"),
    "weights by pairs of places": (
        with_weights(lambda g, ctx: 1.0 + jnp.arange(4) // 2), "permutation", "permuting the silos",
    ),
    "a silo that learns twice as fast": (doubled_for_the_user, "equal_silos", "equal silos end equal"),
    "a private state that moves in absence": (with_round(everybody_changes), "absence", "private state is untouched"),
    "rows of the absent that reach the model": (with_round(rows_leak), "absence", "the others go on"),
    "a model that moves when nobody is there": (decays_when_nobody_is_there, "zero_mass", "the models are kept"),
    "a private state that moves when nobody is there": (with_round(everybody_changes), "zero_mass", "private states"),
    "a mixer that counts empty rounds": (counts_empty_rounds, "zero_mass", "the mixer's state is kept"),
    "a mean that the absent dilute": (with_mixed(counts_the_absent), "one_silo", "fellows are all absent"),
    "weights that overflow": (with_weights(explodes), "scale", "scaled by 1e"),
    "a simulator that does more than nodes and hub": (with_round(one_more_step), "hosts_agree", "nodes and a hub"),
}  # fmt: skip


@functools.cache
def problem():
    return small_problem()._replace(rounds=4)


def case_of(maker):
    hyper = {"user": 1} if maker is doubled_for_the_user else {}
    return Case(recipe_of(maker, **hyper), problem(), 1e-5)


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_algorithm_fails_by_name(what):
    maker, check, words = BROKEN[what]
    case = case_of(maker)
    arguments = (case, None) if check == "one_silo" else (case,)
    with pytest.raises(AssertionError, match=words):
        every_check()[f"check_{check}"](*arguments)


def test_each_check_is_known_to_bite():
    assert {f"check_{check}" for _, check, _ in BROKEN.values()} == set(every_check())


def test_one_silo_must_be_the_local_training_that_was_named():
    case = case_of(fedsgd)
    testing.check_one_silo(case, cf.local(lr=0.2))
    with pytest.raises(AssertionError, match="one silo is local training"):
        testing.check_one_silo(case, cf.local(lr=0.1))


def test_an_algorithm_that_branches_on_a_number_cannot_be_traced():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        testing.check_weights(case_of(branches_on_a_number))


def test_check_algorithm_stops_at_the_first_broken_property():
    with pytest.raises(AssertionError, match="changes shape or type"):
        check_algorithm(recipe_of(counts_in_halves))


# The yardsticks


def test_a_gap_is_relative_to_large_numbers_and_nan_is_never_close():
    assert testing.gap([np.array([1.0, 2.0])], [np.array([1.0, 2.5])]) == pytest.approx(0.25)
    assert testing.gap(np.array([1e6]), np.array([1e6 + 1])) == pytest.approx(1e-6)
    assert np.isnan(testing.gap(np.array([np.nan]), np.array([np.nan])))
    with pytest.raises(AssertionError, match="something"):
        testing.close(case_of(fedsgd), "something", np.array([np.nan]), np.array([1.0]))


def test_the_small_problem_is_ragged_with_a_single_row_and_a_single_class():
    data = small_problem().data
    assert data.size.tolist() == [13, 9, 1, 12]
    assert set(np.asarray(data.y[1]).tolist()) == {1}
    assert data.X.shape == (4, 13, 3)
