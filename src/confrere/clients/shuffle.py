"""Drawing rows at random, quick on a CPU: for small models sampling would otherwise cost more than training.

Every row gets a random word, padding the highest ones, and sorting the words shuffles the rows. Up to 2^14 rows the low
bits of the word are the row's number, so that one operand is sorted: several times quicker than an `argsort` of floats,
with 17 random bits or more. Larger silos sort 31 random bits with the row number beside them.

The words are made of random bits, 32 rows a time, which come from the given key, made by JAX's threefry, through two
rounds of the finaliser of MurmurHash3: a tenth of the work of one threefry block per word. The shuffle is uniform but
for ties of the random bits, which the row number breaks: two rows tie with a chance below 2^-17. A batch that is drawn
by itself (`subset`) looks at the same bits, and so draws the rows that the shuffle puts first.
"""

import functools

import jax
import jax.numpy as jnp


def mixed(x: jax.Array) -> jax.Array:
    """The finaliser of MurmurHash3: every bit of the input changes each bit of the output half the time."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


PACKED_BITS = 14  # up to so many bits, the row's number fits into the word
WORD = 32  # rows that share a word of random bits
BITS = 31  # random bits of a row


def random_bits(one: jax.Array, two: jax.Array, place: jax.Array, bit: jax.Array) -> jax.Array:
    """One random bit for each of the 32 rows from 32 `place` on: that bit of their random numbers, 0 the highest."""
    number = place.astype(jnp.uint32) * WORD + bit.astype(jnp.uint32)
    return mixed(mixed(number * jnp.uint32(0x9E3779B9) + one) ^ two)


@functools.partial(jax.jit, static_argnames=("m", "bits"))
def random_words(key: jax.Array, size: jax.Array, m: int, bits: int = BITS) -> jax.Array:
    """One random word per row [m]: `bits` random bits from bit 30 down for the live rows, 2^31 for padding."""
    one, two = jax.random.key_data(key)[..., -2:]
    bit, place = jnp.arange(bits, dtype=jnp.uint32)[:, None], jnp.arange(-(-m // WORD), dtype=jnp.uint32)
    planes = jax.lax.optimization_barrier(random_bits(one, two, place, bit))  # [bits, places]: made once, read 32 times
    row = jnp.arange(WORD, dtype=jnp.uint32)
    random = jnp.zeros((planes.shape[1], WORD), jnp.uint32)
    for k in range(bits):
        random = (random << 1) | ((planes[k, :, None] >> row) & 1)
    random = (random << (BITS - bits)).reshape(-1)[:m]
    return jnp.where(jnp.arange(m) < size, random, jnp.uint32(1 << 31))


def shuffle(key: jax.Array, size: jax.Array, m: int) -> jax.Array:
    """A random order of the rows 0..size-1 in front, the padding rows size..m-1 behind; int32 [m]."""
    row = jnp.arange(m, dtype=jnp.uint32)
    bits = max(1, (m - 1).bit_length())
    if bits > PACKED_BITS:
        return jax.lax.sort((random_words(key, size, m), row), num_keys=2)[1].astype(jnp.int32)
    words, low = random_words(key, size, m, BITS - bits), jnp.uint32((1 << bits) - 1)
    return (jnp.sort(words | row) & low).astype(jnp.int32)
