"""Factors of small matrices against numpy, and the shape at which LAPACK's batched calls stopped for ever."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confrere.borrowing.factor import backward, cholesky, forward, solve


def positive(D: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(D + 3, D))
    return X.T @ X + 0.1 * np.eye(D)


@pytest.mark.parametrize("D", [1, 2, 9])
@given(seed=st.integers(0, 50))
def test_factors_and_solutions_are_those_of_numpy(D, seed):
    A, b = positive(D, seed), np.random.default_rng(seed + 1).normal(size=(D, 2))
    L = np.linalg.cholesky(A)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(cholesky)(A), L, atol=1e-10)
        np.testing.assert_allclose(jax.jit(forward)(L, b), np.linalg.solve(L, b), atol=1e-8)
        np.testing.assert_allclose(jax.jit(backward)(L, b), np.linalg.solve(L.T, b), atol=1e-8)
        np.testing.assert_allclose(jax.jit(solve)(A, b[:, 0]), np.linalg.solve(A, b[:, 0]), atol=1e-7)


def test_a_matrix_that_is_not_positive_definite_has_no_finite_factor():
    assert not np.isfinite(cholesky(jnp.array([[1.0, 2.0], [2.0, 1.0]]))).all()


def test_many_matrices_at_once_are_each_by_itself():
    many = np.stack([positive(5, seed) for seed in range(7)]).astype(np.float32)
    np.testing.assert_allclose(jax.vmap(cholesky)(many), np.linalg.cholesky(many), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("module", ["borrow", "glm", "summary", "local", "candidates"])
def test_borrowing_asks_lapack_for_nothing(module):
    import importlib
    import inspect

    text = inspect.getsource(importlib.import_module(f"confrere.borrowing.{module}"))
    assert "linalg" not in text
