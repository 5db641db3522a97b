"""A uniform shuffle of the live rows, quick on a CPU.

One-operand sort of random 32-bit words that carry the row number in their low bits: an `argsort` of random
floats costs several times as much, and more than the training itself for small models.
"""

import jax
import jax.numpy as jnp


def shuffle(key: jax.Array, size: jax.Array, m: int) -> jax.Array:
    """A random order of the rows 0..size-1 in front, the padding rows size..m-1 behind; int32 [m].

    The word is: one bit that puts padding last, random bits, the row number. Words of equal random bits are
    ordered by row number, so for m rows the bias of a pair is below m / 2^31.
    """
    bits = max(1, (m - 1).bit_length())
    low = jnp.uint32((1 << bits) - 1)
    row = jnp.arange(m, dtype=jnp.uint32)
    random = (jax.random.bits(key, (m,), jnp.uint32) >> 1) & ~low
    word = jnp.where(row < size.astype(jnp.uint32), random, jnp.uint32(1 << 31)) | row
    return (jnp.sort(word) & low).astype(jnp.int32)
