"""The formats in which a compressed part of a message travels, and their exact size in bytes.

The numbers of a part are put in a row, leaf by leaf; d of them, b bytes each.

    top-k        k = max(1, ceil(fraction d)) places of 1, 2, 4 or 8 bytes (the least that can name d), then k numbers,
                 in the order of the places; the whole row, without places, where that takes no more
    quantised    for every leaf the scale s = max |x| (b bytes), then the codes of all leaves, `bits` bits each, packed
                 without gaps and filled up to a whole byte; code c in -L..L means s c / L, L = 2^(bits - 1) - 1

`squeeze` makes of a part what the receiver will read; `pack` and `unpack` are the bytes of it, little-endian.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_share
from confrere.core import Tree, byte_size

Rounding = Literal["stochastic", "nearest"]
FEWEST, MOST = 2, 16  # bits of a code
IN_CACHE = 50_000  # numbers


@dataclass(frozen=True)
class TopK:
    """The format that sends the largest numbers of a part, with their places."""

    fraction: float

    def __post_init__(self) -> None:
        check_share(fraction=self.fraction)
        if self.fraction == 0:
            raise ValueError("fraction must be above 0: with none of the numbers nothing would be sent")

    def __str__(self) -> str:
        return f"top-k {self.fraction:g}"

    def count(self, d: int) -> int:
        """How many of d numbers are sent."""
        return min(d, max(1, math.ceil(self.fraction * d)))

    def whole(self, part: Tree) -> bool:
        """Whether everything is sent."""
        d = numbers_in(part)
        return self.count(d) == d

    def size(self, part: Tree) -> int:
        """The bytes of a part, from its shapes."""
        d = numbers_in(part)
        each = one_type(part).itemsize
        return min(d * each, self.count(d) * (each + place_type(d).itemsize))

    def squeeze(self, part: Tree, key: Any = None) -> Tree:
        """The part with all but its largest numbers at 0; of equal ones the first."""
        if self.whole(part):
            return part
        row = in_a_row(part)
        chosen = jax.lax.top_k(jnp.abs(row), self.count(row.size))[1]
        return as_part(jnp.zeros_like(row).at[chosen].set(row[chosen]), part)

    def pack(self, part: Tree) -> bytes:
        """The bytes of a squeezed part."""
        row = np.concatenate([np.ravel(a) for a in jax.tree.leaves(part)])
        if self.size(part) == row.nbytes:
            return little(row)
        chosen = first_places(row, self.count(row.size))
        return little(chosen.astype(place_type(row.size))) + little(row[chosen])

    def unpack(self, content: bytes, like: Tree) -> Tree:
        """The part from its bytes; `like` has its shapes."""
        d, kind = numbers_in(like), one_type(like)
        if self.size(like) == d * kind.itemsize:
            return as_part(np.frombuffer(content, kind.newbyteorder("<")).astype(kind), like)
        k, place = self.count(d), place_type(d)
        row = np.zeros(d, kind)
        places = np.frombuffer(content, place.newbyteorder("<"), k)
        row[places] = np.frombuffer(content, kind.newbyteorder("<"), k, k * place.itemsize)
        return as_part(row, like)


@dataclass(frozen=True)
class Quantised:
    """The format that sends every number as one of 2^bits - 1 levels between the largest and its negative."""

    bits: int
    rounding: Rounding = "stochastic"

    def __post_init__(self) -> None:
        check_counts(bits=self.bits)
        if not FEWEST <= self.bits <= MOST:
            raise ValueError(f"bits must be a whole number from {FEWEST} to {MOST}, not {self.bits!r}")
        if self.rounding not in ("stochastic", "nearest"):
            raise ValueError(f"rounding must be 'stochastic' or 'nearest', not {self.rounding!r}")

    def __str__(self) -> str:
        return f"{self.bits} bits" + (" to the nearest" if self.rounding == "nearest" else "")

    @property
    def levels(self) -> int:
        """L: codes are -L..L."""
        return 2 ** (self.bits - 1) - 1

    def whole(self, part: Tree) -> bool:
        """Whether everything is sent as it is: never."""
        return False

    def size(self, part: Tree) -> int:
        """The bytes of a part, from its shapes."""
        return len(jax.tree.leaves(part)) * one_type(part).itemsize + -(-numbers_in(part) * self.bits // 8)

    def squeeze(self, part: Tree, key: Any = None) -> Tree:
        """The part with its numbers rounded: up or down at random so that the mean is right, or to the nearest."""
        leaves, structure = jax.tree.flatten(part)
        if self.rounding == "stochastic" and key is None:
            raise ValueError("stochastic rounding needs a key")
        keys = [None] * len(leaves) if self.rounding == "nearest" else jax.random.split(key, len(leaves))
        return structure.unflatten([self.rounded(a, k) for a, k in zip(leaves, keys, strict=True)])

    def rounded(self, a: jax.Array, key: Any) -> jax.Array:
        """One leaf: s c / L, with E c = L a / s where it is rounded at random."""
        scale = jnp.abs(a).max(initial=0)
        exact = a / jnp.where(scale == 0, 1, scale) * self.levels
        shift = 0.5 if key is None else jax.random.uniform(key, a.shape, a.dtype)
        code = jnp.clip(jnp.nan_to_num(jnp.floor(exact + shift)), -self.levels, self.levels)
        return scale * jnp.asarray(self.shares(a.dtype))[code.astype(jnp.int32) + self.levels]

    def shares(self, kind: Any) -> np.ndarray:
        """What every code is of the scale: -1 to 1. Looked up at both ends, so that they agree to the last bit."""
        return (np.arange(-self.levels, self.levels + 1) / self.levels).astype(kind)

    def pack(self, part: Tree) -> bytes:
        """The bytes of a squeezed part: its largest number of each leaf is the scale, and has a code of L."""
        leaves = [np.asarray(a) for a in jax.tree.leaves(part)]
        scales = np.array([np.abs(a).max(initial=0) for a in leaves], one_type(part))
        codes = np.concatenate([self.codes_of(np.ravel(a), s) for a, s in zip(leaves, scales, strict=True)])
        if whole := whole_type(self.bits):
            return little(scales) + little(codes.astype(whole, copy=False))
        each_bit = codes[:, None] >> np.arange(self.bits) & 1
        return little(scales) + np.packbits(each_bit.astype(np.uint8), bitorder="little").tobytes()

    def codes_of(self, row: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The codes of a leaf's numbers, from 0 on; some at a time, which stay in the cache."""
        codes = np.empty(row.size, np.uint16 if self.bits > 8 else np.uint8)
        for first in range(0, row.size, IN_CACHE):
            part = slice(first, first + IN_CACHE)
            codes[part] = np.rint(row[part] / (scale if scale else 1) * self.levels).astype(np.int32) + self.levels
        return codes

    def unpack(self, content: bytes, like: Tree) -> Tree:
        """The part from its bytes; `like` has its shapes."""
        leaves, kind, d = jax.tree.leaves(like), one_type(like), numbers_in(like)
        scales = np.frombuffer(content, kind.newbyteorder("<"), len(leaves)).astype(kind)
        codes = as_part(self.codes_in(content[scales.nbytes :], d), like)
        each = zip(jax.tree.leaves(codes), scales, strict=True)
        return jax.tree.structure(like).unflatten([(scale * self.shares(kind))[a] for a, scale in each])

    def codes_in(self, packed: bytes, d: int) -> np.ndarray:
        """The d codes in some bytes, from 0 on."""
        if whole := whole_type(self.bits):
            return np.frombuffer(packed, whole.newbyteorder("<"), d)
        each_bit = np.unpackbits(np.frombuffer(packed, np.uint8), count=d * self.bits, bitorder="little")
        return (each_bit.reshape(d, self.bits).astype(np.int64) << np.arange(self.bits)).sum(axis=1)


def whole_type(bits: int) -> np.dtype[Any] | None:
    """The type whose numbers have so many bits, if there is one: then codes need not be packed bit by bit."""
    return {8: np.dtype(np.uint8), 16: np.dtype(np.uint16)}.get(bits)


def first_places(row: np.ndarray, k: int) -> np.ndarray:
    """The places of a row that is not 0 in at most k of them, filled up to k with the first of the others, in order."""
    chosen = np.flatnonzero(row)
    if len(chosen) < k:
        zero = np.ones(len(row), bool)
        zero[chosen] = False
        chosen = np.sort(np.concatenate([chosen, np.flatnonzero(zero)[: k - len(chosen)]]))
    return chosen


def one_type(part: Tree) -> np.dtype[Any]:
    """The type of all numbers of a part; several, whole numbers, or floats too short for codes, are refused."""
    found = sorted({str(a.dtype) for a in jax.tree.leaves(part)})
    if found not in (["float32"], ["float64"]):
        raise ValueError(f"only a part whose numbers are all float32, or all float64, can be compressed, not {found}")
    return np.dtype(found[0])


def numbers_in(part: Tree) -> int:
    """How many numbers a part has."""
    return byte_size(part) // one_type(part).itemsize


def place_type(d: int) -> np.dtype[Any]:
    """The smallest type that can name one of d places."""
    return np.dtype(np.min_scalar_type(max(d - 1, 0)))


def in_a_row(part: Tree) -> jax.Array:
    """The numbers of a part in a row, leaf by leaf.

    Written one after the other: XLA's code for CPUs takes ten times as long to concatenate leaves of unequal sizes.
    """
    row, at = jnp.zeros(numbers_in(part), one_type(part)), 0
    for leaf in jax.tree.leaves(part):
        row = jax.lax.dynamic_update_slice(row, jnp.ravel(leaf), (at,))
        at += leaf.size
    return row


def as_part(row: Any, like: Tree) -> Tree:
    """A row of numbers in the shapes of a part."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([int(np.prod(a.shape)) for a in leaves])[:-1].tolist()
    split = jnp.split(row, ends) if isinstance(row, jax.Array) else np.split(row, ends)
    return structure.unflatten([piece.reshape(a.shape) for piece, a in zip(split, leaves, strict=True)])


def little(a: np.ndarray) -> bytes:
    """The bytes of an array, the lowest first, whatever the machine's order."""
    return a.astype(a.dtype.newbyteorder("<")).tobytes()
