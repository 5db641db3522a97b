"""Generalised total variation minimisation: a model for every node, near those of its neighbours (book 3.4).

    minimise sum_i L_i(w_i) + alpha sum over edges {i, j}, each once, of A_ij phi(w_i - w_j)

By default L_i is the mean squared error (1/m_i) |y_i - X_i w_i|^2 of a linear model without intercept, and phi(v) is
|v|^2 (3.20).
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_functions, check_network, check_single_numbers, real_array
from confrere.core import Block, Tree
from confrere.networks import lasso, newton, solve
from confrere.networks.blocks import placed
from confrere.networks.network import Network
from confrere.networks.penalties import check_stacked, check_strengths, strengths_of
from confrere.networks.rows import count_of, models_of, row_blocks
from confrere.networks.statistics import Quadratic, check_quadratic, padded, statistics
from confrere.networks.terms import QUADRATIC, Local, Rows, Terms, of_functions, of_rows, smooth_value

Losses = Quadratic | Callable[..., Any] | Sequence[Callable[[Tree], Any] | None]


class GTVMin:
    """Models for all nodes of a network, coupled along its edges.

    Rows: `X` and `y` have one array per node, [m_i, d] and [m_i]; a node with `None` for y, or no row, has no loss.
    `losses` replaces the squared error: `Quadratic(Q, q, c)`, one function (params, batch) -> mean loss over the
    batch's live rows, or one function of the params per node (None: no loss). `penalty` is "squared", "norm" (network
    Lasso), or strengths: a number for every coordinate [d], or for every leaf of the params; 0 leaves it uncoupled.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1), (1, 2)])
    >>> p = cf.networks.GTVMin(net, alpha=1.0, X=[[[1.0]], [[1.0]], [[1.0]]], y=[[0.0], None, [3.0]])
    >>> p.solve().round(6).tolist()
    [[0.75], [1.5], [2.25]]
    >>> round(p.objective(p.solve()), 6), round(p.total_variation(p.solve()), 6)
    (2.25, 1.125)
    """

    def __init__(
        self, network: Network, losses: Losses | None = None, *, alpha: float, X: Any = None, y: Any = None,
        penalty: Any = "squared",
    ):  # fmt: skip
        check_network(network)
        check_single_numbers(alpha=alpha)
        if isinstance(losses, Quadratic) and (X is not None or y is not None):
            raise ValueError("give X and y or a Quadratic, not both: each says the losses")
        self.network, self.alpha = network, float(alpha)
        self.norm = isinstance(penalty, str) and penalty == "norm"
        self.strengths = strengths_of(penalty)
        self._arrays: dict[tuple[str, Any], Any] = {}
        self.quadratic: Quadratic | None = None
        self.rows: tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None = None
        if X is not None or y is not None:
            self.rows = row_blocks(X, y, network.n)
        if losses is None:
            if self.rows is None:
                raise ValueError("give X and y, the rows of every node, or losses")
            self.quadratic = statistics(*self.rows)
        elif isinstance(losses, Quadratic):
            self.quadratic = check_quadratic(losses, network.n)
        self.local = local_of(losses, self.rows is not None, network.n)
        if self.quadratic is not None:
            check_strengths(self.strengths, self.d)

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.network.n

    @property
    def d(self) -> int:
        """The number of parameters of one model, where the problem says it."""
        if self.quadratic is not None:
            return self.quadratic.q.shape[1]
        if self.rows is not None:
            return self.rows[0][0].shape[1]
        raise ValueError("losses alone do not say how many parameters a model has: give start, the models at first")

    def start(self, given: Tree = None) -> Tree:
        """The models to begin with, in JAX's precision: the given ones, stacked over nodes, or zeros [n, d]."""
        if given is None:
            return jnp.zeros((self.n, self.d))
        given = self.checked_models(given, "start")
        for leaf in jax.tree.leaves(given):
            broken = ~np.isfinite(np.asarray(leaf, float)).reshape(self.n, -1).all(axis=1)
            if broken.any():
                raise ValueError(f"start has a value that is not finite at node {int(broken.argmax())}")
        return jax.tree.map(lambda a: jnp.asarray(a, jnp.result_type(float)), given)

    def checked_models(self, W: Tree, name: str = "models") -> Tree:
        """Models as they were given, if they have the shape of this problem's; for quadratic losses an array."""
        if self.quadratic is not None:
            return models_of(name, W, self.n, self.d)
        W = jax.tree.map(lambda a: a if isinstance(a, jax.Array) else real_array(name, a, None, False), W)
        check_stacked(W, self.strengths, self.n, name)
        return W

    def block(self) -> Block:
        """The rows of all nodes, padded to one block of JAX arrays."""
        if self.rows is None:
            raise ValueError("this problem has no rows: give X and y")
        return self._kept("block", lambda dtype: padded(*self.rows, dtype))

    def terms(self) -> Terms:
        """The problem's arrays, in JAX's precision."""

        def made(dtype):
            coupling = jax.tree.map(lambda s: jnp.asarray(self.alpha * np.asarray(s), dtype), self.strengths)
            return Terms(self._data(dtype), self.network.layout(dtype), coupling)

        return self._kept("terms", made)

    def _data(self, dtype) -> Any:
        if self.quadratic is not None:
            _, q, c = self.quadratic
            return Rows(placed(self.quadratic.Q, dtype), jnp.asarray(q, dtype), jnp.asarray(c, dtype))
        return self.block() if self.rows is not None else ()

    def _kept(self, name: str, make: Callable[[Any], Any]) -> Any:
        key = name, jnp.result_type(float)
        if key not in self._arrays:
            self._arrays[key] = make(key[1])
        return self._arrays[key]

    def coupling(self) -> np.ndarray:
        """alpha times the strength of every coordinate [d]."""
        return np.broadcast_to(self.alpha * np.asarray(self.strengths, float), (self.d,))

    def objective(self, W: Tree) -> float:
        """What is minimised, at the models W [n, d]; in double precision."""
        W = self.checked_models(W)
        if self.quadratic is None:
            with jax.enable_x64(True):
                models = jax.tree.map(lambda a: jnp.asarray(a, float), W)
                value = float(self.local.value(self.terms().data, models))
        else:
            value = self.quadratic.values(W).sum()
        return float(value) + self.alpha * self.total_variation(W)

    def total_variation(self, W: Tree) -> float:
        """sum over edges, each once, of A_ij phi(w_i - w_j); without alpha."""
        W = self.checked_models(W)
        (i, j), A = self.network.edges.T, self.network.weights
        leaves = [np.asarray(a, float) for a in jax.tree.leaves(W)]
        gaps = [(a[i] - a[j]).reshape(len(A), math.prod(a.shape[1:])) for a in leaves]
        squares = [np.square(g) for g in gaps]
        if self.norm:
            return float(A @ np.sqrt(sum(s.sum(axis=1) for s in squares)))
        strengths = jax.tree.leaves(self.strengths)
        strengths = strengths if len(strengths) == len(leaves) else strengths * len(leaves)
        pairs = zip(squares, strengths, strict=True)
        return float(sum(A @ (sq * np.asarray(s, float).ravel()).sum(axis=1) for sq, s in pairs))

    def closed_form(self) -> np.ndarray:
        """The minimiser of least norm [n, d] of a small quadratic problem, from the dense matrix of all unknowns."""
        return solve.closed_form(self.quadratic_for("a closed form"), self.network, self.coupling())

    def solve(self, tol: float = 1e-10, most: int = 20_000, start: Tree = None) -> Any:
        """The minimiser; for quadratic losses [n, d] in double precision, of least norm if there are several.

        `start`: models to begin with, in place of zeros; near the solution they save iterations.

        Quadratic losses, squared penalty: conjugate gradients until what is left of the right side -q/2 is below tol of
        it, both with features scaled alike (their mean squares over the network 1) and weighed by the inverse of every
        node's own block Q_i + alpha d_i: neither units nor a large alpha change what tol means.
        The norm as penalty: Newton steps, or for more than 50,000 unknowns a primal-dual method, until the forces on
        every node balance to tol of their size, and what edges could still bring is below tol of the objective's terms.
        If several models are as good it is some of them, without what neither rows nor coupling see.
        Other differentiable losses: Newton steps from `start` until the gradient's norm is below tol times that there.
        All end in double precision, also where JAX is set to single: residuals down to 1e-13 can be had, or to 1e-12
        where rows leave models open.
        """
        check_single_numbers(tol=tol)
        check_counts(most=most)
        if self.norm:
            quadratic = self.quadratic_for("the norm as penalty")
            return lasso.solution(quadratic, self.network, self.alpha, tol, most, self._start_in_double(start))
        if self.quadratic is not None:
            given = self._start_in_double(start)
            return solve.solution(self.quadratic, self.network, self.coupling(), tol, most, given)
        with jax.enable_x64(True):
            W = newton.minimise(self.local, self.terms(), self.start(start), tol, most)
            return jax.tree.map(np.asarray, W)

    def _start_in_double(self, start: Tree) -> np.ndarray | None:
        """Models to begin with, checked, on the host; None: none are given."""
        if start is None:
            return None
        with jax.enable_x64(True):
            return np.asarray(self.start(start))

    def value(self, terms: Terms, W: Tree) -> jax.Array:
        """The objective inside a compiled program (squared penalty)."""
        return smooth_value(self.local, terms, W)

    def quadratic_for(self, what: str) -> Quadratic:
        """The statistics of quadratic losses, for `what` needs them."""
        if self.quadratic is None:
            raise ValueError(f"{what} needs quadratic losses: X and y without losses, or Quadratic(Q, q, c)")
        return self.quadratic


def local_of(losses: Any, rows: bool, n: int) -> Local:
    """The local losses as functions."""
    if losses is None or isinstance(losses, Quadratic):
        return QUADRATIC
    if callable(losses):
        if not rows:
            raise ValueError("one loss for all nodes needs their rows: give X and y")
        return cached_rows(losses)
    if count_of(losses) != n:
        raise ValueError(f"{n} nodes need as many losses, not {'one' if count_of(losses) is None else len(losses)}")
    functions = tuple(losses)
    for i, loss in enumerate(functions):
        if loss is not None:
            check_functions(**{f"the loss of node {i}": loss})
    return cached_functions(functions)


cached_rows = functools.lru_cache(32)(of_rows)
cached_functions = functools.lru_cache(32)(of_functions)
