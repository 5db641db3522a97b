"""The weights of a probe run, and the discrepancy of linear models, against plain numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import confrere as cf
from confrere.selection.discrepancy import Moments, disc, highest, moments
from tests.selection_problems import classes


def softmax_gradient(W, b, X, y):
    """The gradient of the mean cross-entropy of two classes."""
    z = X @ W + b
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    return X.T @ p / len(y), p.mean(axis=0)


def eroded(silos, user, rounds, lr, p_d):
    """Weight Erosion with full gradients from a model of zeros, line by line: mean weights [n]."""
    W, b = np.zeros((silos[0].X.shape[1], 2)), np.zeros(2)
    alpha, seen = np.ones(len(silos)), []
    for _ in range(rounds):
        pairs = [softmax_gradient(W, b, *s.rows("train")) for s in silos.silos]
        g = np.stack([np.concatenate([dW.ravel(), db]) for dW, db in pairs])
        distance = np.linalg.norm(g - g[user], axis=1) / np.linalg.norm(g[user])
        alpha = np.maximum(0, alpha - p_d * distance)
        seen.append(alpha)
        mean = alpha @ g / alpha.sum()
        W, b = W - lr * mean[:-2].reshape(W.shape), b - lr * mean[-2:]
    return np.mean(seen, axis=0)


def test_scores_are_the_mean_weights_of_the_probe():
    silos = classes()
    found = cf.selection.gradients(silos, 1, rounds=7, lr=0.4, p_d=0.03, resamples=0)
    expected = eroded(silos, 1, 7, 0.4, 0.03)
    np.testing.assert_allclose(found.scores[[0, 2, 3]], expected[[0, 2, 3]], atol=1e-5)
    assert np.isnan(found.low).all()  # without resamples there is no interval


def test_silos_whose_weights_all_end_at_zero_are_still_told_apart():
    found = cf.selection.gradients(classes(flipped=(2,)), 0, p_d=0.5, resamples=0)
    assert found.scores[2] == min(found.scores[1:])
    assert len(set(found.scores[1:])) == 3


def test_intervals_come_from_rows_drawn_anew_and_their_messages_are_counted():
    once, often = (cf.selection.gradients(classes(), 0, rounds=5, resamples=k) for k in (0, 9))
    np.testing.assert_array_equal(often.bytes_up, 10 * once.bytes_up)
    assert (often.low[1:] < often.high[1:]).all()
    np.testing.assert_array_equal(once.scores, often.scores)


def random_moments(rng, d, k):
    X, Y = rng.normal(size=(20, d)) * rng.uniform(0.2, 2, size=d), rng.normal(size=(20, k))
    return moments(X, Y)


def difference(one: Moments, two: Moments, W):
    """L_one(W) - L_two(W)."""
    loss = lambda m: 0.5 * np.trace(W.T @ m.xx @ W) - np.trace(m.xy.T @ W) + 0.5 * m.yy  # noqa: E731
    return loss(one) - loss(two)


def test_the_difference_of_moments_is_that_of_losses():
    rng = np.random.default_rng(0)
    X, Y, W = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.normal(size=(3, 2))
    blank = Moments(np.zeros((3, 3)), np.zeros((3, 2)), 0.0)
    expected = 0.5 * np.square(Y - X @ W).sum(axis=1).mean()
    assert difference(moments(X, Y), blank, W) == pytest.approx(expected)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3), st.floats(0.05, 5))
def test_no_model_in_the_ball_is_judged_more_differently(seed, d, k, radius):
    rng = np.random.default_rng(seed)
    one, two = random_moments(rng, d, k), random_moments(rng, d, k)
    worst = disc(one, two, radius)
    W = rng.normal(size=(200, d, k))
    W *= radius * rng.uniform(size=(200, 1, 1)) ** 0.3 / np.linalg.norm(W, axis=(1, 2), keepdims=True)
    assert max(abs(difference(one, two, w)) for w in W) <= worst * (1 + 1e-9) + 1e-12


def test_the_worst_model_in_the_plane_is_found():
    rng = np.random.default_rng(1)
    angle, length = np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(0, 1, 21))
    W = np.stack([length * np.cos(angle), length * np.sin(angle)]).reshape(2, -1)
    for _ in range(5):
        one, two = random_moments(rng, 2, 1), random_moments(rng, 2, 1)
        tried = max(abs(difference(one, two, w[:, None])) for w in W.T)
        assert tried == pytest.approx(disc(one, two, 1.0), rel=1e-2)


def test_the_hard_case_of_the_ball_is_solved():
    assert highest(np.diag([2.0, -1.0]), np.zeros((2, 1)), 3.0) == pytest.approx(9.0)  # along the first axis
    assert highest(-np.eye(2), np.array([[1.0], [0.0]]), 10.0) == pytest.approx(0.5)  # inside the ball
    assert highest(np.eye(2), np.ones((2, 1)), 0.0) == 0.0


def test_the_interval_of_a_discrepancy_has_its_score_in_it():
    same = classes((50, 40)).silos[0]
    silos = cf.Silos.from_arrays([(same.X, same.y)] * 3, names=["user", "b", "c"])
    for found in (cf.selection.discrepancy(silos, "user"), cf.selection.discrepancy(classes(), 0)):
        low, score, high = (values[1:] for values in (found.low, found.scores, found.high))
        assert ((low >= 0) & (low <= score) & (score <= high)).all()
    assert "the median moved to the score" in found.resampled


def test_a_silo_with_the_users_own_rows_has_no_discrepancy():
    rows = classes((50, 40))
    silos = cf.Silos.from_arrays([(rows[i].X, rows[i].y) for i in (0, 0, 1)], names=["user", "copy", "other"])
    found = cf.selection.discrepancy(silos, "user", resamples=20)
    assert found.score("copy") == pytest.approx(0, abs=1e-12)
    assert found.score("other") > 0.01
    assert found.bytes_up.tolist() == [0, 8 * (10 + 4 + 1), 8 * (10 + 4 + 1)]
