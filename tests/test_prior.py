"""A prior on silos: what it does to weights, who takes part, and what every recipe makes of it."""

import jax
import numpy as np
import pytest

import confrere as cf
from confrere.prior import resolved
from confrere.program import Setup, numbers, personal_models, rollout
from confrere.testing import small_problem
from tests.helpers import ALGORITHMS, two_class_silos
from tests.selection_problems import classes

MODEL = cf.models.logistic("zero")


def last_model(recipe, silos, rounds=4, **how):
    return cf.simulate(recipe, MODEL, silos, rounds, metrics=(), **how).personal(0)


def same(one, two, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), one, two)


def test_one_step_is_the_mean_of_gradients_weighted_by_size_and_prior():
    silos, prior, lr = two_class_silos(), np.array([1.0, 0.5, 2.0]), 0.3
    share = prior * silos.sizes("train")
    share /= share.sum()
    slopes = [s.X.T @ (s.y - 0.5) / len(s.y) for s in silos.silos]  # at the model of zeros, for the second class
    expected = lr * sum(a * g for a, g in zip(share, slopes, strict=True))
    found = last_model(cf.fedsgd(lr=lr, prior=prior), silos, rounds=1)
    np.testing.assert_allclose(found["w"][:, 1], expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_silo_with_prior_zero_is_as_good_as_never_there(name):
    row = ALGORITHMS[name]
    problem = (row.problem or small_problem)()
    recipe = row.make([0, 1, 2, 3]).with_prior(None)
    out = 3
    here = np.tile(np.arange(4) != out, (problem.rounds, 1))

    def models(recipe, active):
        setup, hyper = Setup(recipe.bound, problem.model, (), False, ("weights",)), numbers(recipe.hyper)
        trace = rollout(
            setup, problem.rounds, hyper, jax.random.key(1), problem.params, problem.data, problem.data, active=active
        )
        return trace.entries.record.arrived, personal_models(setup, hyper, trace.state, problem.data)

    arrived, left_out = models(recipe.with_prior(np.array([1.0, 1, 1, 0])), None)
    _, absent = models(recipe, here)
    assert not arrived[:, out].any()
    assert arrived[:, :out].all()
    same(left_out, absent, rtol=1e-5, atol=1e-6)


def test_training_with_a_selection_is_training_without_the_others():
    silos = classes(flipped=(3,))
    chosen = cf.selection.ndoye(silos, 0, resamples=5)
    assert chosen.kept == ("silo 1", "silo 2")
    for make in (cf.fedavg, cf.weight_erosion):
        how = {"user": "silo 0", "p_d": 0.01} if make is cf.weight_erosion else {"batch": None}
        found = last_model(make(lr=0.3, prior=chosen, **how), silos)
        same(found, last_model(make(lr=0.3, **how), silos.only(["silo 0", "silo 1", "silo 2"])), rtol=1e-5, atol=1e-7)


def test_nothing_passes_between_the_user_and_a_silo_that_takes_no_part():
    history = cf.simulate(cf.fedavg(lr=0.1, prior={"silo 2": 0}), MODEL, classes(), 3, metrics=())
    assert (history.bytes_up[:, 2] == 0).all()
    assert (history.bytes_down[:, 2] == 0).all()
    assert (history.bytes_up[:, [0, 1, 3]] > 0).all()
    np.testing.assert_allclose(history.shares[:, 0, 2], 0)
    np.testing.assert_allclose(history.shares[:, 0].sum(axis=1), 1, rtol=1e-6)


def test_the_debugging_host_heeds_a_prior():
    recipe = cf.fedsgd(lr=0.3, prior=[1.0, 0.3, 0.0, 2.0])
    silos = classes((5, 4, 3, 4))
    same(last_model(recipe, silos, 1, debug=True), last_model(recipe, silos, 1), rtol=1e-5, atol=1e-7)


def test_another_prior_compiles_nothing_new_and_a_grid_of_priors_is_a_vmap():
    problem = small_problem()
    recipe = cf.fedsgd(lr=0.2, prior=np.ones(4))
    setup = Setup(recipe.bound, problem.model, (), False, ("weights",))
    priors = np.array([[1.0, 1, 1, 1], [1, 0, 2, 0]])

    def run(prior):
        hyper = numbers(recipe.hyper) | {"prior": prior}
        return rollout(
            setup, 3, hyper, jax.random.key(0), problem.params, problem.data, problem.data
        ).state.inbox.shared

    beside = jax.vmap(run)(priors)
    for k, prior in enumerate(priors):
        same(jax.tree.map(lambda a, k=k: a[k], beside), run(prior), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("prior", "words"), [
    ([1.0, 1.0], "one number for each of 4 silos"),
    ([1.0, -1.0, 1.0, 1.0], "silo 'silo 1' has -1.0"),
    ({"silo 0": 0}, "silo 'silo 0' is the user"),
])  # fmt: skip
def test_what_is_no_prior_is_refused(prior, words):
    with pytest.raises(ValueError, match=words):
        cf.simulate(cf.weight_erosion(user=0, lr=0.1, prior=prior), MODEL, classes(), 1)


def test_a_prior_for_somebody_else_or_for_other_silos_is_refused():
    silos = classes()
    chosen = cf.selection.ndoye(silos, "silo 1", resamples=5)
    with pytest.raises(ValueError, match="made for 'silo 1', but the model is for 'silo 0'"):
        cf.simulate(cf.weight_erosion(user=0, lr=0.1, prior=chosen), MODEL, silos, 1)
    with pytest.raises(KeyError, match="no silo 'nobody'"):
        cf.simulate(cf.fedavg(lr=0.1, prior={"nobody": 0}), MODEL, silos, 1)
    assert resolved(chosen.best(1).override({"silo 0": "keep"}), ["silo 1", "silo 0"], 0).tolist() == [1, 1]
    with pytest.raises(ValueError, match="nobody is left"):
        resolved([0, 0], ["a", "b"], None)


@pytest.mark.parametrize("recipe", [cf.evidence(user=0), cf.fedfomo(lr=0.1)], ids=["evidence", "fedfomo"])
def test_who_weighs_silos_by_itself_takes_no_half_belief(recipe):
    with pytest.raises(ValueError, match=r"keep a silo \(1\) or leave it out \(0\), but silo 'silo 1' has 0.5"):
        cf.simulate(recipe.with_prior({"silo 1": 0.5}), MODEL, classes(), 1)


def test_a_study_is_for_many_users_and_takes_no_prior():
    with pytest.raises(ValueError, match="fedavg has a prior, which is one user's"):
        cf.Study(classes(), MODEL, [cf.fedavg(lr=0.1, prior={"silo 1": 0})]).run()


def test_every_recipe_has_a_prior_among_its_arguments():
    import inspect

    from confrere import algorithms

    assert [n for n in algorithms.__all__ if "prior" not in inspect.signature(getattr(algorithms, n)).parameters] == []
