"""Drawing rows at random, quick on a CPU: for small models sampling would otherwise cost more than training.

Every row gets a random word, padding the highest ones, and sorting the words shuffles the rows. Up to 2^14 rows the low
bits of the word are the row's number, so that one operand is sorted: several times quicker than an `argsort` of floats,
with 17 random bits or more. Larger silos sort 31 random bits with the row number beside them.

The words come from the given key, which JAX's threefry made, by two rounds of the finaliser of MurmurHash3: a tenth of
the work of one threefry block per word. The shuffle is uniform but for ties of the random bits, which the row number
breaks: two rows tie with a chance below 2^-17.
"""

import jax
import jax.numpy as jnp


def mixed(x: jax.Array) -> jax.Array:
    """The finaliser of MurmurHash3: every bit of the input changes each bit of the output half the time."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


PACKED_BITS = 14  # up to so many bits, the row's number fits into the word


def random_words(key: jax.Array, size: jax.Array, m: int) -> jax.Array:
    """One random word per row [m]: below 2^31 for the live rows, 2^31 for padding."""
    one, two = jax.random.key_data(key)[..., -2:]
    row = jnp.arange(m, dtype=jnp.uint32)
    random = mixed(mixed(row * jnp.uint32(0x9E3779B9) + one) ^ two)
    return jnp.where(row < size.astype(jnp.uint32), random >> 1, jnp.uint32(1 << 31))


def shuffle(key: jax.Array, size: jax.Array, m: int) -> jax.Array:
    """A random order of the rows 0..size-1 in front, the padding rows size..m-1 behind; int32 [m]."""
    words, row = random_words(key, size, m), jnp.arange(m, dtype=jnp.uint32)
    bits = max(1, (m - 1).bit_length())
    if bits > PACKED_BITS:
        return jax.lax.sort((words, row), num_keys=2)[1].astype(jnp.int32)
    low = jnp.uint32((1 << bits) - 1)
    return (jnp.sort((words & ~low) | row) & low).astype(jnp.int32)
