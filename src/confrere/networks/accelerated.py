"""Accelerated FedGD: the number of iterations grows with the root of the condition number, not with itself.

With 2 l and 2 u the extreme eigenvalues of the Hessian 2 (Q + alpha L), so that l, u are those of the book's Q (5.2):

    Nesterov     v = w + b (w - w_old),  w <- v - grad f(v)/(2u),   b = (sqrt(u) - sqrt(l)) / (sqrt(u) + sqrt(l))
    Chebyshev    the polynomial of the gradient steps that is smallest on [l, u]; for quadratic losses

Iterations K that are too few for l, or an l of 0, are used for what they can reach: l is then taken as u (4/K)^2. On
[l, u] both come near (to e^-8 of the distance there); what is below shrinks more slowly, and is never enlarged.

Both need a step's messages between neighbours only. Nesterov: Introductory lectures on convex optimization (2004), 2.2;
Saad: Iterative methods for sparse linear systems (2003), Algorithm 12.1.
"""

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as solvers

from confrere.checks import check_counts
from confrere.core import Tree
from confrere.networks.descent import Run, finished, loop, size, smooth
from confrere.networks.problem import GTVMin
from confrere.networks.relaxation import quadratic_of
from confrere.networks.free import LARGEST
from confrere.networks.terms import QUADRATIC, Terms, smooth_gradient, smooth_value

REACH = 4  # iterations that a root of the condition number takes at least


def matrix_of(p: GTVMin) -> Any:
    """Q = blockdiag(Q_i) + alpha L (5.2), sparse [n d, n d]."""
    blocks, n, d = quadratic_of(p, "this").Q, p.n, p.d
    own = sparse.bsr_array((blocks, np.arange(n), np.arange(n + 1)), shape=(n * d, n * d))
    strengths = sparse.diags_array(np.broadcast_to(p.coupling(), d))  # of every parameter
    return sparse.csc_array(own + sparse.kron(p.network.laplacian(), strengths))


def extreme_eigenvalues(p: GTVMin) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of Q = blockdiag(Q_i) + alpha L (5.2).

    By Lanczos if it is large, for the smallest with a factor of the matrix, which grows faster than the network: of
    very large ones give `accelerated_fedgd` bounds.
    """
    Q = matrix_of(p)
    if Q.shape[0] <= LARGEST // 4:
        values = np.linalg.eigvalsh(Q.toarray())
        return float(max(values[0], 0)), float(values[-1])
    begin = np.random.default_rng(0).normal(size=Q.shape[0])
    largest = float(solvers.eigsh(Q, k=1, which="LA", v0=begin, return_eigenvectors=False)[0])
    below = -1e-6 * largest  # Q may be singular
    smallest = solvers.eigsh(Q, k=1, sigma=below, which="LM", v0=begin, return_eigenvectors=False)[0]
    return max(float(smallest), 0.0), largest


@functools.partial(jax.jit, static_argnames=("iterations",))
def nesterov(terms: Terms, W, low, high, iterations: int):
    """Steps from where the last two lead."""
    momentum = (jnp.sqrt(high) - jnp.sqrt(low)) / (jnp.sqrt(high) + jnp.sqrt(low))

    def step(k, state):
        W, old = state
        v = W + momentum * (W - old)
        g = smooth_gradient(QUADRATIC, terms, v)
        return (v - g / (2 * high), W), size(g)

    value = lambda W: smooth_value(QUADRATIC, terms, W)  # noqa: E731
    (W, _), seen, count = loop(step, value, (W, W), lambda s: s[0], iterations, None, 0.0)
    return W, seen, count


@functools.partial(jax.jit, static_argnames=("iterations",))
def chebyshev(terms: Terms, W, low, high, iterations: int):
    """The three-term recurrence of Chebyshev polynomials on [low, high]."""
    middle, half = (high + low) / 2, (high - low) / 2
    ratio = middle / jnp.where(half > 0, half, 1)

    def step(k, state):
        W, move, rho = state
        g = smooth_gradient(QUADRATIC, terms, W) / 2
        after = jnp.where(k == 0, 1 / ratio, 1 / (2 * ratio - rho))
        first = -g / middle
        later = after * rho * move - 2 * after / jnp.where(half > 0, half, 1) * g
        move = jnp.where((k == 0) | (half <= 0), first, later)
        return (W + move, move, after), size(g)

    value = lambda W: smooth_value(QUADRATIC, terms, W)  # noqa: E731
    begin = (W, jnp.zeros_like(W), jnp.zeros((), W.dtype))
    (W, _, _), seen, count = loop(step, value, begin, lambda s: s[0], iterations, None, 0.0)
    return W, seen, count


def accelerated_fedgd(
    p: GTVMin, iterations: int = 200, method: Literal["nesterov", "chebyshev"] = "nesterov",
    eigenvalues: tuple[float, float] | None = None, start: Tree = None,
) -> Run:  # fmt: skip
    """FedGD with Nesterov's or Chebyshev's acceleration, for quadratic losses.

    `eigenvalues`: the smallest and the largest of Q (5.2), or bounds of them; by default they are computed.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> cf.networks.accelerated_fedgd(p, iterations=30).W.round(3).tolist()
    [[1.0], [2.0]]
    """
    check_counts(iterations=iterations)
    if method not in ("nesterov", "chebyshev"):
        raise ValueError(f"method must be 'nesterov' or 'chebyshev', not {method!r}")
    quadratic_of(smooth(p), "accelerated_fedgd")
    low, high = extreme_eigenvalues(p) if eigenvalues is None else eigenvalues
    if not 0 <= low <= high or high <= 0:
        raise ValueError(f"eigenvalues must be 0 <= smallest <= largest, the largest above 0, not {low:g}, {high:g}")
    low = max(low, high * min(1, REACH / iterations) ** 2)
    run = nesterov if method == "nesterov" else chebyshev
    dtype = jnp.result_type(float)
    return finished(p, *run(p.terms(), p.start(start), jnp.asarray(low, dtype), jnp.asarray(high, dtype), iterations))
