"""Maps of distances: planes come back as they were, no step makes a map worse, and unknown distances do no harm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confrere.insight.similarity.scaling import aligned, classical, lengths, planar


@given(st.integers(2, 8), st.integers(0, 10_000))
def test_places_on_a_plane_come_back_up_to_a_motion(n, seed):
    truth = np.random.default_rng(seed).normal(size=(n, 2))
    found = planar(lengths(truth))
    assert found.stress < 1e-7
    np.testing.assert_allclose(lengths(found.places), lengths(truth), atol=1e-6)
    np.testing.assert_allclose(aligned(found.places, truth), truth, atol=1e-6)


def test_scikit_learn_finds_no_better_map():
    from sklearn.manifold import MDS

    d = lengths(np.random.default_rng(0).normal(size=(9, 6)))
    theirs = MDS(2, n_init=20, metric="precomputed", init="random", max_iter=2000, eps=1e-10, random_state=0).fit(d)
    their_stress = np.sqrt(((lengths(theirs.embedding_) - d) ** 2).sum() / (d**2).sum())
    assert planar(d).stress < 1.05 * their_stress
    start = classical(d)
    assert planar(d).stress <= np.sqrt(((lengths(start) - d) ** 2).sum() / (d**2).sum())


def test_an_unknown_distance_is_left_open():
    truth = np.array([[0.0, 0], [4, 0], [0, 3], [4, 3], [1, 5]])
    d = lengths(truth)
    d[0, 3] = d[3, 0] = np.nan
    found = planar(d)
    assert found.stress < 1e-3
    assert lengths(found.places)[0, 3] == pytest.approx(5, abs=0.05)


def test_equal_silos_lie_on_one_place():
    assert planar(np.zeros((3, 3))).stress == 0
    assert not planar(np.zeros((3, 3))).places.any()
    twins = planar(np.array([[0.0, 0, 2], [0, 0, 2], [2, 2, 0]]))
    np.testing.assert_allclose(twins.places[0], twins.places[1], atol=1e-6)


def test_corners_of_a_tetrahedron_do_not_fit_on_a_plane():
    assert planar(np.ones((4, 4)) - np.eye(4)).stress > 0.1


@pytest.mark.parametrize(("wrong", "words"), [
    (np.ones((2, 3)), "square"),
    (np.array([[0.0, 1], [2, 0]]), "both ways"),
    (np.array([[0.0, -1], [-1, 0]]), "0 or more"),
])  # fmt: skip
def test_what_are_no_distances_is_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        planar(wrong)
