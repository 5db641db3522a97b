"""The cone: do all gradients still have a common direction of descent? Against linear programming."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, nnls

import confrere as cf


@jax.jit
def cone(M, active=None):
    return cf.cone(cf.Geometry.from_messages(M), active)


def unit(G):
    return G / np.linalg.norm(G, axis=1, keepdims=True)


def common_direction(G):
    """The largest t such that some v, |v_j| <= 1, has <v, g_i / |g_i|> >= t for all i: a linear programme."""
    U = unit(np.asarray(G, np.float64))
    n, d = U.shape
    best = linprog(
        np.r_[np.zeros(d), -1.0], A_ub=np.c_[-U, np.ones(n)], b_ub=np.zeros(n), bounds=[(-1, 1)] * d + [(None, 1)]
    )
    assert best.success
    return -best.fun


def nearest_point(G):
    """The point nearest to the origin in the convex hull of the unit gradients, by non-negative least squares."""
    U = unit(np.asarray(G, np.float64))
    weight, _ = nnls(np.vstack([U.T, np.ones(len(U))]), np.r_[np.zeros(U.shape[1]), 1.0])
    return U.T @ weight / weight.sum()


def gradients(rng, n, d, pull):
    """Random gradients of very different lengths, drawn towards one direction."""
    G = rng.normal(size=(n, d))
    G[:, 0] += pull * np.sqrt(d)
    return G * 10 ** rng.uniform(-3, 3, size=(n, 1))


SHAPES = [(2, 2), (3, 2), (6, 4), (10, 5), (8, 30), (20, 10)]


@pytest.mark.parametrize(
    ("n", "d", "precision"), [(n, d, np.float64) for n, d in SHAPES] + [(6, 4, np.float32), (20, 10, np.float32)]
)
def test_the_cone_agrees_with_linear_programming(n, d, precision):
    """But for cones so wide that their margin is below a hundredth."""
    rng, answers, tried = np.random.default_rng(n * d), set(), 0
    with jax.enable_x64(precision == np.float64):
        for pull in np.linspace(0, 0.8, 40):
            G = gradients(rng, n, d, pull).astype(precision)
            t = common_direction(G)
            if t > 1e-9 and np.linalg.norm(nearest_point(G)) < 1e-2:
                continue
            found = cone(G)
            assert bool(found.fits) == (t > 1e-9), f"{t=}, margin found {float(found.margin)}"
            answers.add(bool(found.fits))
            tried += 1
    assert tried >= 20
    assert answers == ({True, False} if d < n else {True})


def test_a_wide_cone_of_many_silos_is_found(x64):
    """Margins between two thousandths and a hundredth, far above the rounding of double precision."""
    rng, tried = np.random.default_rng(1), 0
    for pull in rng.uniform(0, 0.25, size=150):
        G = gradients(rng, 20, 10, pull)
        margin = np.linalg.norm(nearest_point(G))
        if 2e-3 < margin < 1e-2:
            assert cone(G).fits, f"{margin=}"
            tried += 1
    assert tried >= 5


@pytest.mark.parametrize(("n", "d"), [(3, 2), (5, 8), (20, 10)])
def test_the_axis_is_a_certificate_and_the_margin_its_smallest_cosine(x64, n, d):
    rng, certified = np.random.default_rng(n), 0
    for pull in (0.3, 0.6, 1.0, 2.0):
        G = gradients(rng, n, d, pull)
        found = cone(G)
        if not found.fits:
            continue
        axis = np.asarray(found.axis) @ unit(G)
        cosines = unit(G) @ axis / np.linalg.norm(axis)
        assert (cosines > 0).all()
        assert (np.asarray(found.axis) >= 0).all()
        assert float(np.sum(found.axis)) == pytest.approx(1)
        assert float(found.margin) == pytest.approx(cosines.min(), rel=1e-9)
        certified += 1
    assert certified >= 2


@pytest.mark.parametrize(("n", "d"), [(2, 3), (5, 8), (10, 5)])
def test_the_margin_is_that_of_the_nearest_point_of_the_hull(x64, n, d):
    G = gradients(np.random.default_rng(n), n, d, 1.0)
    found = cone(G)
    assert float(found.margin) == pytest.approx(np.linalg.norm(nearest_point(G)), rel=1e-6)


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, 1.5])
def test_two_gradients_at_an_angle_have_the_cosine_of_half_of_it(x64, angle):
    G = 7.0 * np.array([[1.0, 0.0], [np.cos(2 * angle), np.sin(2 * angle)]])
    found = cone(G)
    assert found.fits
    assert float(found.margin) == pytest.approx(np.cos(angle), rel=1e-9)


def test_opposite_gradients_and_those_around_the_origin_fit_in_no_cone():
    third = 2 * np.pi * np.arange(3) / 3
    around = np.c_[np.cos(third), np.sin(third)]
    for G in ([[1.0, 0.0], [-3.0, 0.0]], around, np.vstack([around, [[0.5, 0.2]]]), np.r_[np.eye(3), -np.eye(3)]):
        found = cone(np.asarray(G, np.float32))
        assert not found.fits
        assert float(found.margin) <= 0


def test_the_paper_s_stop_is_at_the_pooled_optimum_of_two_silos(x64):
    """There g_1 = -c g_0, and no direction improves both; before it there is one."""
    g = np.array([0.3, -2.0, 1.1])
    assert not cone(np.stack([g, -0.4 * g])).fits
    assert cone(np.stack([g, -0.4 * g + [0.1, 0.0, 0.0]])).fits


def test_a_zero_gradient_fits_in_no_cone():
    assert not cone(np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], np.float32)).fits
    assert not cone(np.zeros((3, 2), np.float32)).fits


def test_one_silo_fits_unless_its_gradient_is_zero():
    found = cone(np.array([[3.0, 4.0]], np.float32))
    assert found.fits
    assert float(found.margin) == pytest.approx(1)
    assert not cone(np.zeros((1, 2), np.float32)).fits


def test_the_absent_do_not_count():
    G = np.array([[1.0, 0.2], [-1.0, 0.0], [1.0, -0.2], [0.0, 0.0]], np.float32)
    assert not cone(G, np.ones(4, bool)).fits
    found = cone(G, np.array([True, False, True, False]))
    assert found.fits
    assert np.asarray(found.axis)[[1, 3]].tolist() == [0, 0]
    assert float(found.margin) == pytest.approx(1 / np.hypot(1, 0.2), rel=1e-5)
    alone = cone(G, np.array([False, True, False, False]))
    assert alone.fits
    assert float(alone.margin) == pytest.approx(1)


def test_a_cone_with_absences_is_that_of_those_who_are_there(x64):
    rng = np.random.default_rng(3)
    for pull in (0.0, 0.5, 1.0, 2.0):
        G, here = gradients(rng, 8, 4, pull), np.arange(8) % 3 != 1
        G[~here] *= -1
        among, alone = cone(G, here), cone(G[here])
        assert bool(among.fits) == bool(alone.fits)
        assert not np.asarray(among.axis)[~here].any()
        if alone.fits:
            assert float(among.margin) == pytest.approx(float(alone.margin), rel=1e-6)
    assert alone.fits


def test_nobody_fits_in_any_cone():
    found = cone(np.ones((3, 2), np.float32), np.zeros(3, bool))
    assert found.fits
    assert float(found.margin) == 1
    assert not np.asarray(found.axis).any()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scaling_the_gradients_changes_nothing(scale):
    G = gradients(np.random.default_rng(0), 6, 4, 1.0)
    one, two = cone(G.astype(np.float32)), cone((scale * G).astype(np.float32))
    assert bool(one.fits) == bool(two.fits) is True
    assert float(two.margin) == pytest.approx(float(one.margin), rel=1e-3)


def test_a_cone_was_found_exactly_if_the_margin_is_positive():
    """Also where the cone is so wide that rounding hides it."""
    rng = np.random.default_rng(1)
    cases = [gradients(rng, 6, 4, pull) for pull in np.linspace(0, 1, 20)]
    cases += [np.array([[1.0, width], [-1.0, width]]) for width in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)]
    for G in cases:
        found = cone(G.astype(np.float32))
        assert bool(found.fits) == (float(found.margin) > 0), f"fits {found.fits}, margin {found.margin}"


def test_only_inner_products_are_opened():
    geometry = cf.Geometry.from_messages(np.eye(3))
    cf.cone(geometry)
    assert geometry.opened == ["dot"]


def test_cones_may_be_vmapped():
    rng = np.random.default_rng(2)
    G = np.stack([gradients(rng, 5, 4, pull) for pull in (0.0, 0.2, 1.0, 2.0)]).astype(np.float32)
    found = jax.vmap(cone)(G)
    np.testing.assert_array_equal(found.fits, [bool(cone(g).fits) for g in G])


def mean_problem(targets):
    """One row per silo: a regression on nothing, whose gradient in the bias is b - target."""
    return cf.Silos.from_arrays([(np.zeros((1, 1)), [target]) for target in targets])


def test_a_run_stops_before_the_first_round_without_a_cone():
    """From b = 0 towards means 1 and 3 the gradients agree until b passes 1."""
    silos, params = mean_problem([1.0, 3.0]), {"w": jnp.zeros((1, 1)), "b": jnp.zeros(1)}
    run = lambda **how: cf.simulate(  # noqa: E731
        cf.fedsgd(lr=0.25, weights="uniform"), cf.models.linear(), silos, rounds=20, params=params, metrics=(), **how
    )
    stopped, whole = run(stop="cone", record=("cone",)), run(record=("cone",))
    assert stopped.stopped
    assert not whole.stopped
    # b = 0, 0.5, 0.875, 1.156: in the fourth round the two gradients have different signs
    assert (stopped.rounds, whole.rounds) == (3, 20)
    np.testing.assert_allclose(stopped.personal(0)["b"], [2 - 2 * 0.75**3], rtol=1e-6)
    np.testing.assert_allclose(stopped.cone, np.ones(3), rtol=1e-6)
    assert (whole.cone[:3] > 0).all()
    assert (whole.cone[3:] <= 0).all()
