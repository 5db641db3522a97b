"""An autoencoder trained by all silos: it finds the principal components, and tells silos of two kinds apart."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

import confrere as cf

nets = cf.networks


def silos_of(sizes=(20, 50, 80), seed=0):
    """Rows in whose standard units two directions matter more than others."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    spread = np.array([3, 2, 0.8, 0.6, 0.5, 0.4])
    return [10 + 5 * (rng.normal(size=(m, 6)) * spread @ basis.T + rng.normal(size=6)) for m in sizes]


def standardised(rows):
    whole = np.concatenate(rows)
    return [(a - whole.mean(axis=0)) / whole.std(axis=0) for a in rows]


def components(rows, k):
    """The first principal components of all rows in standard units [d, k], and all eigenvalues."""
    whole = np.concatenate(standardised(rows))
    _, values, axes = np.linalg.svd(whole, full_matrices=False)
    return axes[:k].T, values**2 / len(whole)


@pytest.mark.parametrize("latent", [1, 2])
def test_a_linear_autoencoder_ends_in_the_plane_of_the_principal_components(latent):
    rows = silos_of()
    trained = nets.autoencoder(rows, latent)
    axes, values = components(rows, latent)
    W = trained.params["w"]
    assert subspace_angles(axes, W).max() < 1e-4
    np.testing.assert_allclose(W.T @ W, np.eye(latent), atol=1e-4)
    whole = np.concatenate(rows)
    lost = np.square((trained.decode(trained.encode(whole)) - whole) / whole.std(axis=0)).sum(axis=1).mean()
    np.testing.assert_allclose(lost, values[latent:].sum(), rtol=1e-4)


def test_distances_of_silos_are_those_of_their_mean_projections():
    rows = silos_of()
    z = nets.latent_vectors(rows, nets.autoencoder(rows, 2).encode)
    projected = np.stack([a.mean(axis=0) @ components(rows, 2)[0] for a in standardised(rows)])
    np.testing.assert_allclose(nets.distances_between(z), nets.distances_between(projected), atol=1e-4)


def test_rows_count_alike_wherever_they_are(x64):
    rows = silos_of()
    parts, whole = nets.autoencoder(rows, 2, rounds=30), nets.autoencoder([np.concatenate(rows)], 2, rounds=30)
    np.testing.assert_allclose(parts.params["w"], whole.params["w"], atol=1e-6)


@pytest.mark.parametrize("hidden", [None, 8])
def test_silos_of_two_kinds_are_told_apart(hidden):
    rng = np.random.default_rng(1)
    direction = rng.normal(size=20)
    kinds = [0, 1, 0, 1, 0, 1]
    rows = [rng.normal(size=(40, 20)) + (2 * kind - 1) * direction for kind in kinds]
    z = nets.latent_vectors(rows, nets.autoencoder(rows, 2, hidden=hidden, rounds=400).encode)
    assert z.shape == (6, 2)
    D = nets.distances_between(z)
    assert D[::2, ::2].max() < 0.5 * D[::2, 1::2].min()
    edges = nets.least_discrepant(D, edges=6).edges
    assert all(kinds[i] == kinds[j] for i, j in edges)


def test_a_hidden_layer_follows_a_curve_that_no_line_does():
    t = np.random.default_rng(0).uniform(-1, 1, (3, 100))
    rows = [np.stack([s, s**2], axis=1) for s in t]
    lost = []
    for hidden in (None, 16):
        trained = nets.autoencoder(rows, 1, hidden=hidden, rounds=3000)
        lost.append(np.mean([(trained.decode(trained.encode(a)) - a) ** 2 for a in rows]))
    assert lost[1] < 0.3 * lost[0]


def test_a_seed_gives_the_same_bits_and_another_one_others():
    rows = silos_of((10, 10))
    one, same, other = (nets.autoencoder(rows, 2, rounds=20, seed=seed).encode(rows[0]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0.01


def test_a_constant_column_comes_back_as_it_was():
    rows = [np.c_[a, np.full(len(a), 7.0)] for a in silos_of((10, 20))]
    trained = nets.autoencoder(rows, 2, rounds=500)
    np.testing.assert_allclose(trained.decode(trained.encode(rows[0]))[:, -1], 7.0, atol=1e-3)


@pytest.mark.parametrize(
    ("rows", "how", "said"),
    [
        ([], {}, "there is none"),
        ([np.ones((2, 3)), np.ones((2, 4))], {}, r"silo 1 has rows of shape \(2, 4\)"),
        ([np.ones((2, 3)), np.ones((0, 3))], {}, "silo 1 has no rows"),
        ([np.ones((2, 3)), [[1.0, np.nan, 2.0]]], {}, "silo 1 has a value that is not finite"),
        ([np.eye(3)], {"latent": 0}, "latent must be"),
        ([np.eye(3)], {"hidden": -1}, "hidden must be"),
        ([np.eye(3)], {"lr": -0.1}, "lr must be"),
    ],
)
def test_what_cannot_be_encoded_is_refused(rows, how, said):
    with pytest.raises(ValueError, match=said):
        nets.autoencoder(rows, **how)
