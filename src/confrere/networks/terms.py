"""The terms of GTVMin as pure functions: the local losses, and how much models vary along edges.

    sum_i L_i(w_i) + alpha sum over edges {i, j}, each once, of A_ij phi(w_i - w_j)

phi(v) is |v|^2 ("squared"), sum_k s_k v_k^2 with a strength per coordinate or per leaf (partial sharing, 6.5), or |v|
("norm": the network Lasso). Models are one array [n, d] or a pytree of arrays [n, ...].
"""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Batch, Block, Loss, Tree
from confrere.networks import blocks
from confrere.networks.layout import Layout


class Rows(NamedTuple):
    """Squared losses from statistics, in JAX: blocks [j, n, i], q [n, d], c [n]."""

    blocks: jax.Array
    q: jax.Array
    c: jax.Array


class Local(NamedTuple):
    """The sum of the local losses: (data, W) -> its value, and (data, W) -> value and gradient, from the same work."""

    value: Callable[[Any, Tree], jax.Array]
    both: Callable[[Any, Tree], tuple[jax.Array, Tree]]

    def gradient(self, data: Any, W: Tree) -> Tree:
        """The gradient, a tree like W."""
        return self.both(data, W)[1]


class Terms(NamedTuple):
    """What a compiled program needs of a problem: arrays only, given as arguments."""

    data: Any
    layout: Layout
    coupling: Tree  # alpha times the strength of every coordinate, in the shape of one model, or a number


def quadratic_value(data: Rows, W: jax.Array) -> jax.Array:
    """sum_i w'Q_i w + q_i'w + c_i."""
    return jnp.sum(W * (blocks.products(data.blocks, W) + data.q)) + jnp.sum(data.c)


def quadratic_both(data: Rows, W: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same and 2 Q_i w_i + q_i for every node, from one product."""
    QW = blocks.products(data.blocks, W)
    return jnp.sum(W * (QW + data.q)) + jnp.sum(data.c), 2 * QW + data.q


QUADRATIC = Local(quadratic_value, quadratic_both)


def one_number(name: str, loss: Any) -> Any:
    """A loss, if it is a single number."""
    shape = () if isinstance(loss, numbers.Real) else getattr(loss, "shape", None)
    if shape != ():
        found = repr(loss) if shape is None else f"an array of shape {shape}"
        raise ValueError(f"{name} must be one number, such as a mean over the live rows, not {found}")
    return loss


def of_rows(loss: Loss) -> Local:
    """One loss for all nodes, (params, batch) -> mean over live rows; a node without rows has the loss 0."""

    def value(data: Block, W):
        def one(params, X, y, size):
            batch = Batch(X, y, jnp.arange(y.shape[0]) < size)
            return jnp.where(size > 0, one_number("the loss", loss(params, batch)), 0)

        return jax.vmap(one)(W, data.X, data.y, data.size).sum()

    return Local(value, jax.value_and_grad(value, argnums=1))


def of_functions(functions: tuple[Callable[[Tree], Any] | None, ...]) -> Local:
    """A loss of its own for every node, params -> number; None: no loss."""

    def value(data, W):
        def own(i, f):
            return one_number(f"the loss of node {i}", f(jax.tree.map(lambda a: a[i], W)))

        return sum((own(i, f) for i, f in enumerate(functions) if f is not None), jnp.zeros(()))

    return Local(value, jax.value_and_grad(value, argnums=1))


def flat(a: jax.Array) -> jax.Array:
    """[n, ...] as [n, D]."""
    return a.reshape(a.shape[0], -1)


def coupled(terms: Terms, W: Tree) -> Tree:
    """coupling times L W, leaf by leaf: half the gradient of the squared penalty."""

    def one(strength, a):
        return strength * terms.layout.differences(flat(a)).reshape(a.shape)

    return jax.tree.map(one, strengths_like(terms.coupling, W), W)


def strengths_like(coupling: Tree, W: Tree) -> Tree:
    """One strength, or an array of them, for every leaf of the models."""
    if jax.tree.structure(coupling) == jax.tree.structure(W):
        return coupling
    return jax.tree.map(lambda _: coupling, W)


def squared_variation(terms: Terms, W: Tree) -> jax.Array:
    """The squared penalty with its coupling: sum over edges of A_ij sum_k coupling_k (w_i - w_j)_k^2."""
    return sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), W, coupled(terms, W))), jnp.zeros(()))


def smooth_value(local: Local, terms: Terms, W: Tree) -> jax.Array:
    """The objective with the squared penalty."""
    return local.value(terms.data, W) + squared_variation(terms, W)


def smooth_both(local: Local, terms: Terms, W: Tree) -> tuple[jax.Array, Tree]:
    """The objective and its gradient, from one product with the network."""
    value, own = local.both(terms.data, W)
    pull = coupled(terms, W)
    parts = jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), W, pull))
    return value + sum(parts, jnp.zeros(())), jax.tree.map(lambda g, c: g + 2 * c, own, pull)


def smooth_gradient(local: Local, terms: Terms, W: Tree) -> Tree:
    """Its gradient."""
    return smooth_both(local, terms, W)[1]
