"""The geometry of messages: all that a weight rule may look at."""

from typing import Any

import jax
import jax.numpy as jnp

Tree = Any  # a pytree of arrays


class Geometry:
    """Distances and inner products between messages: all that a weight rule may look at.

    Computed when asked: a row (`i` given) costs O(nD), the whole (`i=None`) O(n^2 D). It lives in one trace
    and is no pytree. `opened` lists what was asked for, and so what a secure protocol would have to reveal.

    >>> import jax.numpy as jnp
    >>> g = Geometry.from_messages(jnp.array([[3.0, 4.0], [0.0, 0.0]]))
    >>> g.sq(0).tolist(), g.norm().tolist(), float(g.norm(0))
    ([0.0, 25.0], [5.0, 0.0], 5.0)
    >>> g.opened
    ['sq[i]', 'norm', 'norm[i]']
    """

    def __init__(self, rows: list[jax.Array], told: Tree = None):
        self._rows = rows  # one [n, d] array per leaf
        self.told = told
        self.opened: list[str] = []

    @classmethod
    def from_messages(cls, messages: Tree, told: Tree = None) -> "Geometry":
        """From stacked flat messages [n, D], or from a pytree whose leaves have the silos in front."""
        if isinstance(messages, (list, tuple)) and all(jnp.ndim(a) == 0 for a in jax.tree.leaves(messages)):
            messages = jnp.asarray(messages)  # rows written out as lists of numbers
        leaves = [jnp.asarray(a) for a in jax.tree.leaves(messages)]
        if not leaves or any(a.ndim == 0 for a in leaves):
            raise ValueError("messages must be stacked: an array [n, D] or a pytree of arrays [n, ...]")
        if len({a.shape[0] for a in leaves}) != 1:
            counts = sorted({a.shape[0] for a in leaves})
            raise ValueError(f"messages must agree on the number of silos, but their leaves have {counts}")
        if leaves[0].shape[0] == 0:
            raise ValueError("there is no message: at least one silo must have sent one")
        floats = [a.astype(jnp.result_type(a.dtype, jnp.float32)) for a in leaves]
        return cls([a.reshape(a.shape[0], -1) for a in floats], told)

    def _open(self, what: str, i: Any) -> None:
        self.opened.append(what if i is None else f"{what}[i]")

    def _sq_row(self, i: Any) -> jax.Array:
        return sum(jnp.sum(jnp.square(a - a[i]), axis=1) for a in self._rows)  # type: ignore[return-value]

    def sq(self, i: Any = None) -> jax.Array:
        """Squared distances from message i [n], or between all [n, n]; from differences, row by row.

        Never from inner products: two tight bunches of messages far apart would lose all digits.
        """
        self._open("sq", i)
        if i is not None:
            return self._sq_row(i)
        return jax.lax.map(self._sq_row, jnp.arange(self._rows[0].shape[0]))

    def dot(self, i: Any = None) -> jax.Array:
        """Inner products with message i [n], or between all [n, n]."""
        self._open("dot", i)
        return sum(a @ (a.T if i is None else a[i]) for a in self._rows)  # type: ignore[return-value]

    def norm(self, i: Any = None) -> jax.Array:
        """The norm of message i, or of all [n]."""
        self._open("norm", i)
        rows = self._rows if i is None else [a[i] for a in self._rows]
        return jnp.sqrt(sum(jnp.sum(jnp.square(a), axis=-1) for a in rows))
