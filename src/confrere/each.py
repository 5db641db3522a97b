"""How a host runs the silos of a round: side by side, or one after the other on every device.

Side by side (`vmap`) suits small models, whose products become one large product. A convolutional network is quicker
one silo at a time (`one_by_one`), its arrays staying in the cache; with several devices each takes an equal share of
the silos (`spread`). The results are the same but for rounding.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

SILO = "silo"  # the name of the axis of devices

Each = Callable[[Callable[..., Any], Any], Callable[..., Any]]  # (function of one silo, in_axes) -> function of all


def is_none(axis: Any) -> bool:
    """Whether all silos receive the same: None is no empty tree here."""
    return axis is None


def one_by_one(function: Callable[..., Any], in_axes: Any) -> Callable[..., Any]:
    """What `jax.vmap(function, in_axes)` computes (axes 0 and None only), one silo after the other.

    >>> import jax.numpy as jnp
    >>> one_by_one(lambda a, b: a + b, (0, None))(jnp.array([1, 2]), 10).tolist()
    [11, 12]
    """

    def every(*arguments):
        def of_silo(i):
            at = lambda axis, tree: tree if axis is None else jax.tree.map(lambda a: a[i], tree)  # noqa: E731
            return function(*jax.tree.map(at, tuple(in_axes), arguments, is_leaf=is_none))

        return jax.lax.map(of_silo, jnp.arange(silos_of(in_axes, arguments)))

    return every


def silos_of(in_axes: Any, arguments: tuple[Any, ...]) -> int:
    """How many silos there are: the length of the first array that differs between them."""
    counts: list[int] = []

    def look(axis, tree):
        if axis is not None:
            counts.extend(a.shape[0] for a in jax.tree.leaves(tree))

    jax.tree.map(look, tuple(in_axes), arguments, is_leaf=is_none)
    return counts[0]


def spread(mesh: Mesh) -> Each:
    """`one_by_one` on every device of the mesh, each with its share of the silos."""

    def each(function: Callable[..., Any], in_axes: Any) -> Callable[..., Any]:
        return on_shares(mesh, one_by_one(function, in_axes), specs_of(tuple(in_axes)), PartitionSpec(SILO))

    return each


def on_shares(mesh: Mesh, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """A function that sees, on every device, its share of the silos alone."""
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def specs_of(axes: Any) -> Any:
    """Axis by axis of a tree: cut along the silos (0), or the same for all (None)."""
    return jax.tree.map(lambda a: PartitionSpec() if a is None else PartitionSpec(SILO), axes, is_leaf=is_none)


def mesh_for(silos: int, nbytes: int, least: int) -> Mesh | None:
    """All devices, if there are several, the silos come out even, and there are bytes enough to be worth it."""
    devices = jax.local_devices()
    if len(devices) == 1 or silos % len(devices) or nbytes < least:
        return None
    return Mesh(devices, (SILO,))
