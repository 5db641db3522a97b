"""Silos that lie while they are judged: what the page on selection says about them, on the Titanic.

The liar is the user's twin with its labels flipped, so that by honest answers it comes last.
"""

import numpy as np
import pytest

import confrere as cf
from confrere.transforms import attacked
from tests.selection_problems import flip

LIAR, SEEDS = "0-35 b", range(3)


def judged(method, seed, heard=None):
    silos = flip(cf.data.titanic("age-some", seed=seed), LIAR)
    found = method(silos, "0-35 a", heard=heard, resamples=0 if method is cf.selection.gradients else 2)
    return found.ranking.index(LIAR) + 1, LIAR in found.kept


def said(change):
    """Everybody says the truth but the liar."""
    return lambda name, told: change(told) if name == LIAR else told


def scaled(factor):
    return said(lambda told: type(told)(*(factor * np.asarray(part) for part in told)))


def at_random(told):
    drawn = np.random.default_rng(0).normal(size=told.gradient.shape)
    return told._replace(gradient=np.linalg.norm(told.gradient) * drawn / np.linalg.norm(drawn))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_at_home_that_is_a_lie_fools_ndoye(seed):
    assert judged(cf.selection.ndoye, seed) == (3, False)
    assert judged(cf.selection.ndoye, seed, said(lambda offer: offer._replace(loss=np.float32(9)))) == (1, True)


@pytest.mark.parametrize("seed", SEEDS)
def test_influence_is_fooled_by_a_claim_to_be_small_and_by_no_other(seed):
    influence = cf.selection.influence
    for honest in (None, scaled(10.0), said(at_random)):
        assert judged(influence, seed, honest) == (3, False)
    place, kept = judged(influence, seed, scaled(1e-6))
    assert place < 3
    assert kept


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_are_fooled_by_a_copy_of_the_users_and_not_by_noise(seed):
    gradients = cf.selection.gradients
    noise, echo = ((lambda recipe, kind=kind: attacked(recipe, (1,), kind)) for kind in ("noise", "echo"))
    assert judged(gradients, seed) == (3, False)
    assert judged(gradients, seed, noise) == (3, False)
    assert judged(gradients, seed, echo)[0] == 2
    assert judged(gradients, seed, lambda recipe: attacked(recipe, (1,), "overheard", victim=0)) == (1, True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_silo_that_is_honest_only_while_it_is_judged_is_kept_and_loses_some_weight_in_training(seed):
    honest = cf.data.titanic("age-some", seed=seed)
    chosen = cf.selection.ndoye(honest, "0-35 a", resamples=2)
    assert chosen.ranking[0] == LIAR
    recipe = cf.weight_erosion(user="0-35 a", lr=0.3, p_d=0.02, prior=chosen)
    trusted, lying = (
        cf.simulate(recipe, cf.models.logistic("zero"), silos, 20, metrics=()).weights[:, 0, 1].mean()
        for silos in (honest, flip(honest, LIAR))
    )
    assert 0.48 < trusted < 0.60
    assert 0.29 < lying < 0.33
