"""GTVMin on several machines: the nodes are shared out over all devices of JAX's distributed runtime.

Every process knows the network, but holds statistics of its own nodes only. Conjugate gradients run on all devices at
once (`shard_map`), as in `solve.py`: products fetch the models around a shard (`halo.py`), sums over nodes are added up
over the shards (`psum`). So a process sends, in every iteration, models of nodes with neighbours elsewhere, and three
sums; where the coupling is stiff, also a vector for every component.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from confrere.checks import check_counts, check_network, check_single_numbers
from confrere.networks.blocks import placed
from confrere.networks.conjugate import Common, System, iterate, preconditioner
from confrere.networks.halo import AXIS, Halo, check_parts, shard_arrays, shards_of
from confrere.networks.network import Network
from confrere.networks.penalties import check_strengths, strengths_of
from confrere.networks.posed import stiff
from confrere.networks.processes import Components, least_norm_of_all, sum_over_processes
from confrere.networks.ranks import pseudo_inverses, roots_of
from confrere.networks.rows import count_of, row_blocks
from confrere.networks.solve import PATIENCE, ROUGH, SINGLE, SMALL, not_reached
from confrere.networks.statistics import Quadratic, check_quadratic, statistics


def own_nodes(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The nodes of this process, in the order in which `solve_sharded` takes and gives them.

    Part k of the nodes belongs to device k of `jax.devices()`; alone, a process has all nodes.

    >>> import confrere as cf
    >>> cf.networks.own_nodes([[2, 0, 1]]).tolist()
    [2, 0, 1]
    """
    devices = jax.devices()
    if count_of(parts) != len(devices):
        raise ValueError(
            f"there are {count_of(parts)} parts of the nodes, but {len(devices)} devices: each has one part"
        )
    return np.concatenate([np.asarray(parts[k], np.int64) for k in own_shards()])


def own_shards() -> list[int]:
    """The numbers of this process's devices."""
    return [k for k, device in enumerate(jax.devices()) if device.process_index == jax.process_index()]


def solve_sharded(
    network: Network, losses: Quadratic | None = None, *, parts: Sequence[np.ndarray], alpha: float, X: Any = None,
    y: Any = None, penalty: Any = "squared", tol: float = 1e-10, most: int = 20_000,
) -> np.ndarray:  # fmt: skip
    """`GTVMin(...).solve(tol)` where the nodes are shared out over processes: the models of the own nodes, [own, d].

    All processes call it with the same network and parts, such as `partition(network, jax.device_count())`, after
    `jax.distributed.initialize`. `X` and `y`, or a `Quadratic`, are those of `own_nodes(parts)`, in that order.
    The penalty is squared, or strengths for every coordinate. Conjugate gradients end in double precision, when the
    residual of all nodes together is below tol of the right side, measured as `solve` does.

    >>> import confrere as cf
    >>> net = cf.networks.Network.from_edges([(0, 1), (1, 2)])
    >>> X, y = [[[1.0]], [[1.0]], [[1.0]]], [[0.0], None, [3.0]]
    >>> parts = [[0, 1, 2]]  # one process with one device; in general, partition(net, jax.device_count())
    >>> cf.networks.solve_sharded(net, parts=parts, alpha=1.0, X=X, y=y).round(6).tolist()
    [[0.75], [1.5], [2.25]]
    """
    check_network(network)
    check_single_numbers(alpha=alpha, tol=tol)
    check_counts(most=most)
    own = own_nodes(check_parts(parts, network.n))
    quadratic = own_statistics(losses, X, y, own)
    d = quadratic.q.shape[1]
    if isinstance(penalty, str) and penalty == "norm":
        raise ValueError("the norm as penalty is not solved over several processes: use GTVMin(...).solve()")
    strengths = strengths_of(penalty)
    check_strengths(strengths, d)
    coupling = np.broadcast_to(alpha * np.asarray(strengths, float), (d,))
    W = Spread(network, parts, own, quadratic, coupling).solution(tol, most)
    return least_norm_of_all(W, own, quadratic, network, coupling)


def own_statistics(losses: Quadratic | None, X: Any, y: Any, own: np.ndarray) -> Quadratic:
    """The statistics of the process's own nodes."""
    if losses is None:
        return statistics(*row_blocks(X, y, len(own), own), own)
    if not isinstance(losses, Quadratic):
        raise TypeError(f"losses over several processes must be a Quadratic, or give X and y, not {losses!r}")
    if X is not None or y is not None:
        raise ValueError("give X and y or a Quadratic, not both: each says the losses")
    return check_quadratic(losses, len(own), own)


class Spread:
    """A problem on all devices: arrays [shards, ...] of which every process makes its own shards."""

    def __init__(
        self, network: Network, parts: Sequence[np.ndarray], own: np.ndarray, quadratic: Quadratic, coupling: np.ndarray
    ):
        self.shards, self.count = shards_of(network, parts), len(parts)
        self.weighted = not (network.weights == 1).all()
        self.quadratic, self.unknowns = quadratic, network.n * len(coupling)
        self.sizes = [len(parts[k]) for k in own_shards()]
        self.mesh = Mesh(np.array(jax.devices()), (AXIS,))
        self.scale = 1 / roots_of(sum_over_processes(np.einsum("njj->j", quadratic.Q)) / network.n)
        self.strength = coupling * self.scale**2
        self.common: tuple[Any, np.ndarray] | None = None
        if stiff(network, self.strength):
            self.common = self.common_part(network, own, self.scale * (coupling > 0))

    def common_part(self, network: Network, own: np.ndarray, scale: np.ndarray) -> tuple[Any, np.ndarray]:
        """The components of the own shards' nodes (None: there is one), and inverses: 0 of components elsewhere."""
        components = Components(network.labels, own)
        inverse = np.zeros((network.labels.max() + 1, len(scale), len(scale)))
        inverse[components.names] = pseudo_inverses(components.sums(self.quadratic.Q) * scale[:, None] * scale)
        return None if network.connected else self.padded(network.labels[own].astype(np.int32)), inverse

    def solution(self, tol: float, most: int) -> np.ndarray:
        """The models of the own nodes [own, d], in double precision."""
        b = self.padded(-self.quadratic.q / 2 * self.scale)
        W, after, iterations = [np.zeros_like(a) for a in b], np.inf, 0
        stages = [(jnp.float32, max(tol, SINGLE), min(most, PATIENCE))] if self.unknowns > SMALL else []
        for dtype, goal, times in [*stages, (jnp.float64, tol, most)]:
            with jax.enable_x64(dtype == jnp.float64):
                given = (self.system(dtype), *(self.spread([x.astype(dtype) for x in a]) for a in (b, W)))
                found, k, after = program(self.mesh)(*given, goal, times)
            iterations, after = iterations + int(k), float(after)
            if after <= max(tol, ROUGH):
                W = [np.asarray(s.data[0], float) for s in sorted(found.addressable_shards, key=lambda s: s.index[0])]
            if after <= tol:
                return np.concatenate([a[:m] for a, m in zip(W, self.sizes, strict=True)]) * self.scale
        raise not_reached(iterations, after, tol)

    def system(self, dtype: Any) -> System:
        """The left side on all devices."""
        weighted, s = self.weighted, self.shards
        own = [shard_arrays(s, k, self.count, dtype, weighted=weighted) for k in own_shards()]
        layout, sends = jax.tree.map(lambda *each: self.spread(each), *own)
        blocks = self.spread([np.asarray(placed(Q, dtype)) for Q in self.padded(self.quadratic.Q)])
        strength, scale = (self.spread([a.astype(dtype)] * len(own)) for a in (self.strength, self.scale))
        common = None
        if self.common is not None:
            labels, inverse = self.common
            each = self.spread([inverse.astype(dtype)] * len(own))
            common = Common(None if labels is None else self.spread(labels), each)
        return System(blocks, Halo(layout, sends, tuple(s.longest), self.count), strength, scale, common)

    def padded(self, array: np.ndarray) -> list[np.ndarray]:
        """The rows of every own shard's nodes, as many as the largest shard has: the rest are zeros, alone."""
        each = np.split(array, np.cumsum(self.sizes)[:-1])
        return [np.pad(a, [(0, self.shards.S - len(a))] + [(0, 0)] * (a.ndim - 1)) for a in each]

    def spread(self, own: Sequence[np.ndarray]) -> jax.Array:
        """An array [shards, ...] of which every device holds one part."""
        shape = (self.count, *own[0].shape)
        sharding = NamedSharding(self.mesh, PartitionSpec(AXIS))
        mine = dict(zip(own_shards(), own, strict=True))

        def part(index: Any) -> np.ndarray:
            return mine[index[0].start or 0][None]

        return jax.make_array_from_callback(shape, sharding, part)


@functools.lru_cache(8)
def program(mesh: Mesh):
    """Conjugate gradients on all shards, from the models W: new models, iterations, and the share that is left."""

    def total(sums: jax.Array) -> jax.Array:
        return lax.psum(sums, AXIS)

    def shard(system, b, W, tol, most):
        system, b, W = jax.tree.map(lambda a: a[0], (system, b, W))
        found = iterate(system, preconditioner(system), b, W, tol, most, total)
        return found.W[None], found.iterations, found.residual

    each, same = PartitionSpec(AXIS), PartitionSpec()
    given, found = (each, each, each, same, same), (each, same, same)
    return jax.jit(jax.shard_map(shard, mesh=mesh, in_specs=given, out_specs=found, check_vma=False))
