"""A network shared out over devices: each has the nodes of one shard, and the models of those that lie around it.

In every product a shard needs the models of its nodes' neighbours on other shards, its halo, and of no other nodes.
Shard q sends those that shard q + o needs, for every distance o at which there are edges (`ppermute`), padded to the
longest list of that distance: on consecutive pieces of a narrow order, as `partition` makes them, there are few.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from confrere.checks import check_counts, check_network
from confrere.networks.layout import Directed, Layout, directed, in_slots, slots_for
from confrere.networks.network import Network

AXIS = "shard"


def partition(network: Network, count: int) -> list[np.ndarray]:
    """Nodes in `count` parts of even size with few edges between them: pieces of the reverse Cuthill-McKee order.

    >>> import confrere as cf
    >>> path = cf.networks.Network.from_edges([(0, 3), (3, 1), (1, 2)])
    >>> sorted(sorted(part.tolist()) for part in cf.networks.partition(path, 2))
    [[0, 3], [1, 2]]
    """
    check_network(network)
    check_counts(count=count)
    if count > network.n:
        raise ValueError(f"{network.n} nodes cannot be shared out to {count} devices: each needs one at least")
    return np.array_split(network.narrow_order.astype(np.int64), count)


def check_parts(parts: Any, n: int) -> Sequence[Any]:
    """Refuse what does not have each of n nodes once."""
    try:
        nodes = np.concatenate([np.asarray(part) for part in parts])
    except (TypeError, ValueError):
        nodes = np.zeros(0)
    if nodes.dtype.kind not in "iu" or not np.array_equal(np.sort(nodes), np.arange(n)):
        raise ValueError(f"parts must have each of the {n} nodes once, 0 to {n - 1}; see partition(network, count)")
    return parts


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=("layout", "sends"), meta_fields=("distances", "shards")
)
@dataclass(frozen=True)
class Halo:
    """The network as one shard sees it: its own nodes [S], then those around it, distance by distance."""

    layout: Layout
    sends: tuple[jax.Array, ...]  # for every distance, the own nodes [H] whose models go to the shard so far on
    distances: tuple[int, ...]
    shards: int

    @property
    def degree(self) -> jax.Array:
        """The weight of every node's edges [S]."""
        return self.layout.degree

    def differences(self, W: jax.Array) -> jax.Array:
        """L W at the nodes of this shard, [S, d]."""
        return self.layout.differences(W, jnp.concatenate([W, *self.around(W)]))

    def around(self, W: jax.Array) -> list[jax.Array]:
        """The models that this shard is sent, one distance after the other: exchanges at once may block each other."""
        came: list[jax.Array] = []
        for rows, far in zip(self.sends, self.distances, strict=True):
            going = W[rows]
            if came:
                going, came[-1] = lax.optimization_barrier((going, came[-1]))
            came.append(lax.ppermute(going, AXIS, [(q, (q + far) % self.shards) for q in range(self.shards)]))
        return came


class Shards(NamedTuple):
    """Where every node is: its shard [n] and its place there [n]; S, the nodes of a shard; and who sends what to whom.

    Node `sender[k]` goes to shard `to[k]`, which keeps it at the place `at[k]`; `key` = to * n + sender is sorted.
    """

    shard: np.ndarray
    place: np.ndarray
    S: int
    both: Directed
    key: np.ndarray
    to: np.ndarray
    sender: np.ndarray
    distance: np.ndarray
    rank: np.ndarray
    at: np.ndarray
    longest: dict[int, int]  # of the lists of every distance


def shards_of(network: Network, parts: Sequence[np.ndarray]) -> Shards:
    """The shards of a partition, which all processes compute alike."""
    n, count = network.n, len(parts)
    shard, place = np.full(n, -1), np.zeros(n, np.int64)
    for k, nodes in enumerate(parts):
        shard[nodes], place[nodes] = k, np.arange(len(nodes))
    S = max(map(len, parts))
    both = directed(network.adjacency())
    cut = shard[both.receiver] != shard[both.sender]
    key = np.unique(shard[both.receiver[cut]] * n + both.sender[cut])
    to, sender = key // n, key % n
    distance = (to - shard[sender]) % count
    group = to * count + distance
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - np.searchsorted(group[order], group[order])
    longest = {int(far): int(rank[distance == far].max()) + 1 for far in np.unique(distance)}
    begins = np.zeros(count, np.int64)
    begins[list(longest)] = S + np.cumsum([0, *longest.values()])[:-1]
    return Shards(shard, place, S, both, key, to, sender, distance, rank, begins[distance] + rank, longest)


class Shard(NamedTuple):
    """One shard's arrays on the host; all shards' have the same shapes."""

    layout: Layout
    sends: tuple[np.ndarray, ...]


def shard_arrays(s: Shards, k: int, count: int, dtype: Any, *, weighted: bool) -> Shard:
    """What shard k needs; overflowing edges of hubs are padded by edges of weight 0."""
    n = len(s.shard)
    K = slots_for(n, s.both)
    here = s.shard[s.both.receiver] == k
    receiver, sender, weight, slot = (a[here] for a in s.both)
    own = s.shard[sender] == k
    found = np.searchsorted(s.key, k * n + sender[~own])
    numbers = s.place[sender]
    numbers[~own] = s.at[found]
    order = np.argsort(s.place[receiver], kind="stable")
    local = Directed(*(a[order] for a in (s.place[receiver], numbers, weight, slot)))
    neighbour, weights, rest = in_slots(s.S, local, K, weighted=weighted)
    overflow = np.bincount(s.shard[s.both.receiver[s.both.slot >= K]], minlength=count).max()
    spare = overflow - len(rest.receiver)
    arrays: Any = (
        neighbour, None if weights is None else weights.astype(dtype),
        np.pad(rest.receiver, (0, spare), constant_values=s.S - 1).astype(np.int32),
        np.pad(rest.sender, (0, spare)).astype(np.int32), np.pad(rest.weight, (0, spare)).astype(dtype),
        np.bincount(local.receiver, local.weight, minlength=s.S).astype(dtype),
    )  # fmt: skip
    return Shard(Layout(*arrays), tuple(sends_of(s, k, far) for far in s.longest))


def sends_of(s: Shards, k: int, far: int) -> np.ndarray:
    """The places of shard k's nodes that go to the shard `far` on, [H]."""
    chosen = (s.distance == far) & (s.shard[s.sender] == k)
    rows = np.zeros(s.longest[far], np.int32)
    rows[s.rank[chosen]] = s.place[s.sender[chosen]]
    return rows
