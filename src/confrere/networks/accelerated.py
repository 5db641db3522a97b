"""Accelerated FedGD: the number of iterations grows with the root of the condition number, not with itself.

With 2 l and 2 u the extreme eigenvalues of the Hessian 2 (Q + alpha L), so that l, u are those of the book's Q (5.2):

    Nesterov     v = w + b (w - w_old),  w <- v - grad f(v)/(2u),   b = (sqrt(u) - sqrt(l)) / (sqrt(u) + sqrt(l))
    Chebyshev    the polynomial of the gradient steps that is smallest on [l, u]; for quadratic losses

Both move models only in directions that rows or coupling see: where the solution is not unique, l is the smallest
eigenvalue above 0. Iterations K that are too few for l are used for what they can reach: l is then taken as u (4/K)^2,
as it is where 0 is given for l. On [l, u] both come near (to e^-8 of the distance there); what is below shrinks more
slowly, and is never enlarged.

Of other losses nothing is known but a bound u, and momentum grows as k/(k + 3) until a step goes uphill, where it
begins anew (O'Donoghue, Candes: Adaptive restart for accelerated gradient schemes, 2015).

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

from confrere.checks import check_counts, check_switches, check_word, real_array
from confrere.core import Tree
from confrere.networks import spectra
from confrere.networks.free import LARGEST, free_parts
from confrere.networks.kinds import quadratic_of, smooth
from confrere.networks.loops import Run, Stop, finished, loop, rule_of
from confrere.networks.problem import GTVMin
from confrere.networks.terms import QUADRATIC, Local, Terms, smooth_both, smooth_gradient, smooth_value

MANY = 100  # free directions beyond which the eigenvalue after them is not looked for in large problems
REACH = 4  # iterations that a root of the condition number takes at least


def matrix_of(p: GTVMin) -> Any:
    """Q = blockdiag(Q_i) + alpha L (5.2), sparse [n d, n d]."""
    blocks, n, d = quadratic_of(p, "this").Q, p.n, p.d
    own = sparse.bsr_array((blocks, np.arange(n), np.arange(n + 1)), shape=(n * d, n * d))
    strengths = sparse.diags_array(np.broadcast_to(p.coupling(), d))  # of every parameter
    return sparse.csc_array(own + sparse.kron(p.network.laplacian(), strengths))


def extreme_eigenvalues(p: GTVMin, nonzero: bool = False) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of Q = blockdiag(Q_i) + alpha L (5.2).

    `nonzero=True`: the smallest above 0, of which there are as many below as the problem has free directions. By
    Lanczos if it is large, to about 1e-10 of the largest; for the smallest with a factor of the matrix, which grows
    faster than the network: of very large ones give `accelerated_fedgd` bounds.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])  # whose Laplacian has the eigenvalues 0 and 2
    >>> p = cf.networks.GTVMin(net, alpha=0.5, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> [round(value, 6) for value in cf.networks.extreme_eigenvalues(p)]
    [1.0, 2.0]
    """
    check_switches(nonzero=nonzero)
    Q = matrix_of(p)
    free = free_count(p) if nonzero else 0
    if free >= Q.shape[0]:
        raise ValueError("no row and no coupling sees any direction: all eigenvalues are 0")
    if free > MANY and Q.shape[0] > LARGEST:
        raise ValueError(f"{free} eigenvalues are 0, too many to find the next one in a problem of this size: bound it")
    if Q.shape[0] <= LARGEST // 4 or (free > MANY and Q.shape[0] <= LARGEST):
        values = np.linalg.eigvalsh(Q.toarray())
        return float(max(values[free], 0)), float(values[-1])
    largest = spectra.largest(Q)
    least = float(np.linalg.eigvalsh(quadratic_of(p, "this").Q)[:, 0].min())  # coupling takes nothing from it
    below = max(least, 0) - 1e-8 * largest  # Q may be singular
    how: dict[str, Any] = {"v0": spectra.beginning(Q.shape[0]), "tol": spectra.PRECISE, "return_eigenvectors": False}
    smallest = solvers.eigsh(Q, k=free + 1, sigma=below, which="LM", **how)
    return max(float(max(smallest)), 0.0), largest


def free_count(p: GTVMin) -> int:
    """How many directions neither rows nor coupling see."""
    quadratic = quadratic_of(p, "this")
    return sum(part.basis.shape[1] for part in free_parts(quadratic, p.network, p.coupling()))


@functools.partial(jax.jit, static_argnames=("iterations", "stop"))
def nesterov(terms: Terms, W, low, high, tol, iterations: int, stop: str | None):
    """Steps from where the last two lead; the gradient there follows from theirs, since it is linear."""
    momentum = (jnp.sqrt(high) - jnp.sqrt(low)) / (jnp.sqrt(high) + jnp.sqrt(low))

    def step(k, state):
        W, old, g, g_old = state
        new = W + momentum * (W - old) - (g + momentum * (g - g_old)) / (2 * high)
        value, after = smooth_both(QUADRATIC, terms, new)
        return (new, W, after, g), value, after

    g = smooth_gradient(QUADRATIC, terms, W)
    (W, *_), seen, count = loop(step, (W, W, g, g), iterations, stop, tol)
    return W, seen, count


@functools.partial(jax.jit, static_argnames=("iterations", "stop"))
def chebyshev(terms: Terms, W, low, high, tol, iterations: int, stop: str | None):
    """The three-term recurrence of Chebyshev polynomials on [low, high]."""
    middle, half = (high + low) / 2, (high - low) / 2
    ratio = middle / jnp.where(half > 0, half, 1)

    def step(k, state):
        W, move, rho, g = state
        after = jnp.where(k == 0, 1 / ratio, 1 / (2 * ratio - rho))
        first = -g / 2 / middle
        later = after * rho * move - after / jnp.where(half > 0, half, 1) * g
        move = jnp.where((k == 0) | (half <= 0), first, later)
        value, g = smooth_both(QUADRATIC, terms, W + move)
        return (W + move, move, after, g), value, g

    begin = (W, jnp.zeros_like(W), jnp.zeros((), W.dtype), smooth_gradient(QUADRATIC, terms, W))
    (W, *_), seen, count = loop(step, begin, iterations, stop, tol)
    return W, seen, count


@functools.partial(jax.jit, static_argnames=("local", "iterations", "stop"))
def restarted(local: Local, terms: Terms, W, high, tol, iterations: int, stop: str | None):
    """Nesterov's steps on any losses, with momentum that begins anew where a step goes uphill."""

    def step(k, state):
        W, old, since = state
        momentum = since / (since + 3)
        v = jax.tree.map(lambda a, b: a + momentum * (a - b), W, old)
        g = smooth_gradient(local, terms, v)
        new = jax.tree.map(lambda a, b: a - b / (2 * high), v, g)
        along = sum(jax.tree.leaves(jax.tree.map(lambda a, b, c: jnp.sum(a * (b - c)), g, new, W)))
        since = jnp.where(along > 0, 0, since + 1)
        value = smooth_value(local, terms, new)
        return (new, W, since), value, smooth_gradient(local, terms, new)

    (W, *_), seen, count = loop(step, (W, W, jnp.zeros_like(high)), iterations, stop, tol)
    return W, seen, count


def accelerated_fedgd(
    p: GTVMin, iterations: int = 200, method: Literal["nesterov", "chebyshev"] = "nesterov",
    eigenvalues: tuple[float, float] | None = None, start: Tree = None, stop: Stop | None = None,
) -> Run:  # fmt: skip
    """FedGD with Nesterov's or, for quadratic losses, Chebyshev's acceleration.

    `eigenvalues`: the smallest (above 0, where the solution is not unique) and the largest of Q (5.2), or bounds of
    them; by default they are computed. Of other losses than quadratic ones bounds must be given, of half the
    objective's second derivatives; of these the largest is used.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]]], y=[[0.0], [3.0]])
    >>> cf.networks.accelerated_fedgd(p, iterations=30).W.round(3).tolist()
    [[1.0], [2.0]]
    """
    check_counts(iterations=iterations)
    check_word("method", method, ("nesterov", "chebyshev"))
    what, tol = rule_of(stop)
    dtype = jnp.result_type(float)
    if smooth(p).quadratic is None:
        if method == "chebyshev" or eigenvalues is None:
            raise ValueError(
                "losses that are not quadratic need method='nesterov' and eigenvalues=(smallest, largest), bounds of "
                "half the second derivatives of the objective"
            )
        high = checked(eigenvalues)[1]
        given = p.terms(), p.start(start), jnp.asarray(high, dtype), tol
        return finished(*restarted(p.local, *given, iterations, what), advice=lambda: larger_bound(high))
    if eigenvalues is None:
        eigenvalues = extreme_eigenvalues(p, nonzero=p.n * p.d <= LARGEST or free_count(p) <= MANY)
    low, high = checked(eigenvalues)
    low = max(low, high * min(1, REACH / iterations) ** 2)
    run = nesterov if method == "nesterov" else chebyshev
    given = p.start(start), jnp.asarray(low, dtype), jnp.asarray(high, dtype), tol
    return finished(*run(p.terms(), *given, iterations, what), advice=lambda: larger_bound(high))


def larger_bound(high: float) -> str:
    """What to do where accelerated steps diverge."""
    return f"the largest eigenvalue is above {high:g}; give a bound of it, such as bounds.upper_eigenvalue(p)"


def checked(eigenvalues: tuple[float, float]) -> tuple[float, float]:
    """Two eigenvalues, if they can be the smallest and the largest."""
    given = real_array("eigenvalues", eigenvalues, None, False)
    if given.shape != (2,):
        raise ValueError(f"eigenvalues must be 0 <= smallest <= largest, two numbers, not {eigenvalues!r}")
    low, high = given.tolist()
    if not 0 <= low <= high or high <= 0 or not np.isfinite(high):
        raise ValueError(f"eigenvalues must be 0 <= smallest <= largest, the largest above 0, not {low:g}, {high:g}")
    return low, high
