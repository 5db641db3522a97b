"""Groups and maps: planted groups are found, silos of one law are not grouped, and the map says how far to trust it."""

import numpy as np
import pytest

import confrere as cf
from confrere.insight.similarity.grouping import dunn, grouped
from confrere.insight.similarity.mapping import ellipse, mapped
from confrere.insight.similarity.scaling import lengths

QUICK = ["models", "gradients", "outcomes", "features", "predictions"]


def planted(groups, seed, rows=100):
    """Silos of two laws, by group."""
    rng = np.random.default_rng(seed)
    laws = np.array([[1.0, -1.0, 0.5], [-1.0, 1.0, 0.5]])
    pairs = []
    for g in groups:
        X = rng.normal(size=(rows, 3)) + 0.5 * g
        pairs.append((X, (X @ laws[g] + rng.logistic(size=rows) > 0).astype(int)))
    return cf.Silos.from_arrays(pairs, names=[f"s{i}" for i in range(len(groups))])


@pytest.mark.parametrize("seed", range(4))
def test_planted_groups_are_found(seed):
    found = cf.insight.similarity(planted([0, 1, 0, 1, 1], seed), QUICK, resamples=40, seed=seed)
    assert found.groups().groups == (("s1", "s3", "s4"), ("s0", "s2"))
    assert found.groups().consensus >= 0.9
    places = found.map().places
    inside = max(np.linalg.norm(places[0] - places[2]), np.linalg.norm(places[1] - places[3]))
    assert np.linalg.norm(places[0] - places[1]) > 2 * inside


@pytest.mark.parametrize("seed", range(3))
def test_silos_of_one_law_are_not_grouped(seed):
    found = cf.insight.similarity(planted([0] * 5, seed), QUICK, resamples=40, seed=seed)
    assert found.groups().groups == ()
    assert found.groups().words.startswith("no stable grouping: the best one (")


def vectors_and_draws(z, noise, count=200, seed=0):
    rng = np.random.default_rng(seed)
    off = noise * rng.normal(size=(count, *z.shape))
    return lengths(z), np.array([lengths(z + o) for o in off]), np.array([lengths(o) for o in off])


def test_groups_need_to_be_apart_by_more_than_chance():
    z = np.array([[0.0, 0], [0.1, 0], [5, 0], [5.1, 0]])
    sure = grouped(tuple("abcd"), *vectors_and_draws(z, 0.1))
    assert sure.groups == (("a", "b"), ("c", "d"))
    assert (sure.consensus, sure.chance) == (1.0, 0.0)
    unsure = grouped(tuple("abcd"), *vectors_and_draws(z, 5.0))
    assert unsure.groups == ()
    assert unsure.considered == sure.groups


def test_silos_all_alike_are_grouped_in_at_most_about_one_case_in_twenty():
    rng = np.random.default_rng(0)
    hits = sum(
        bool(grouped(tuple("abcde"), *vectors_and_draws(rng.normal(size=(5, 4)), 1.0, 60, seed)).groups)
        for seed in range(30)
    )
    assert hits <= 4


def test_dunn_is_the_nearest_of_others_over_the_farthest_of_ones_own():
    z = np.array([[0.0, 0], [1, 0], [5, 0]])
    assert dunn(lengths(z), np.array([0, 0, 1])) == 4
    assert dunn(lengths(z), np.array([0, 0, 0])) == 0
    assert dunn(lengths(z[[0, 0, 2]]), np.array([0, 0, 1])) == np.inf


def test_few_draws_few_silos_and_unknown_distances_give_no_groups():
    z = np.random.default_rng(0).normal(size=(4, 2))
    D, draws, noise = vectors_and_draws(z, 0.1)
    assert "resamples" in grouped(tuple("abcd"), D, draws[:5], noise[:5]).words
    assert "it takes 3" in grouped(tuple("ab"), D[:2, :2], draws[:, :2, :2], noise[:, :2, :2]).words
    D[0, 1] = D[1, 0] = np.nan
    assert "not known" in grouped(tuple("abcd"), D, draws, noise).words


def test_ellipses_hold_the_places_that_draws_give():
    rng = np.random.default_rng(0)
    L = np.array([[2.0, 0], [1.0, 0.5]])
    found = ellipse(rng.normal(size=(20_000, 2)) @ L.T + [3, 4])
    values, axes = np.linalg.eigh(L @ L.T)
    assert (found.x, found.y) == pytest.approx((3, 4), abs=0.05)
    assert (found.short, found.long) == pytest.approx(tuple(np.sqrt(5.991 * values)), rel=0.03)
    turned = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    assert (found.angle - turned) % 180 == pytest.approx(0, abs=1) or (found.angle - turned) % 180 > 179


def test_a_map_of_planar_distances_is_exact_and_ellipses_grow_with_the_noise():
    z = np.array([[0.0, 0], [4, 0], [0, 3], [4, 4]])
    small, large = (mapped(tuple("abcd"), *vectors_and_draws(z, s)[:2]) for s in (0.05, 0.3))
    assert small.stress < 1e-6
    assert small.words.startswith("a good map")
    np.testing.assert_allclose(lengths(small.places), lengths(z), atol=1e-5)
    for a, b in zip(small.ellipses, large.ellipses, strict=True):
        assert 0 < a.long < b.long
    assert small.ellipses[0].long == pytest.approx(np.sqrt(5.991) * 0.05, rel=0.6)


def test_a_poor_map_says_so_and_names_the_worst_pair():
    cross = np.vstack([np.eye(6), -np.eye(6)])
    found = mapped(tuple("abcdefghijkl"), lengths(cross), np.zeros((0, 12, 12)))
    assert found.stress > 0.2
    assert found.words.startswith("a poor map")
    assert found.worst is not None


def test_two_silos_have_a_distance_and_no_map_to_speak_of():
    found = cf.insight.similarity(planted([0, 1], 0, rows=40), QUICK, resamples=25)
    assert np.linalg.norm(np.diff(found.map().places, axis=0)) == pytest.approx(found.combined.matrix[0, 1])
    assert found.map().words.startswith("two silos")
    assert "cannot be grouped" in found.groups().words
