"""Drawing rows at random, quick on a CPU: for small models sampling would otherwise cost more than training.

Every row gets a random 31-bit word whose low bits are the row's number, so that no two are equal, and padding gets the
highest ones. Sorting the words shuffles the rows: one operand, and several times quicker than an `argsort` of floats.

The words come from the given key, which JAX's threefry made, by two rounds of the finaliser of MurmurHash3: a tenth of
the work of one threefry block per word. The shuffle is uniform but for ties of the random bits, which the row number
breaks: for m rows the order of a pair is off by less than m / 2^31.
"""

import jax
import jax.numpy as jnp


def mixed(x: jax.Array) -> jax.Array:
    """The finaliser of MurmurHash3: every bit of the input changes each bit of the output half the time."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def row_bits(m: int) -> int:
    """How many low bits hold a row's number."""
    return max(1, (m - 1).bit_length())


def random_words(key: jax.Array, size: jax.Array, m: int) -> jax.Array:
    """One word per row [m]: below 2^31 for the live rows, above for padding; the row number in the low bits."""
    one, two = jax.random.key_data(key)[..., -2:]
    row = jnp.arange(m, dtype=jnp.uint32)
    random = mixed(mixed(row * jnp.uint32(0x9E3779B9) + one) ^ two)
    low = jnp.uint32((1 << row_bits(m)) - 1)
    return jnp.where(row < size.astype(jnp.uint32), (random >> 1) & ~low, jnp.uint32(1 << 31)) | row


def shuffle(key: jax.Array, size: jax.Array, m: int) -> jax.Array:
    """A random order of the rows 0..size-1 in front, the padding rows size..m-1 behind; int32 [m]."""
    low = jnp.uint32((1 << row_bits(m)) - 1)
    return (jnp.sort(random_words(key, size, m)) & low).astype(jnp.int32)
