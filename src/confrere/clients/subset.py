"""Drawing one batch without replacement, without a sort: for small models the sort is most of a round.

A batch of b rows out of `size` is the b rows with the smallest random numbers. To find them no number need be known in
full: take the numbers bit by bit, from the highest. The rows whose bit is 0 come before those whose bit is 1; if they
are no more than are still wanted all of them are taken, and the choice goes on among the others; else it goes on among
them. 32 rows share a machine word, one bit each, so that a bit of all rows is drawn and counted in a few operations.

The law is that of a shuffle cut off after b rows: every set of b rows has the same chance. Rows whose 31 bits agree are
ordered by their place; two rows do so with a chance of 2^-31 or less.

Many draws at once (silos, experiments) are laid side by side in the last axis, whatever `vmap` they come from: that is
the axis along which a processor works on several numbers at a time.
"""

import functools

import jax
import jax.numpy as jnp

from confrere.clients.shuffle import BITS, WORD, random_bits

AT_ONCE = 4  # bits between two looks at whether all is decided


def subset(key: jax.Array, size: jax.Array, m: int, count: int) -> jax.Array:
    """Which of m rows are drawn: `count` of the first `size` rows, or all of those if they are fewer; bool [m].

    >>> import jax, jax.numpy as jnp
    >>> drawn = subset(jax.random.key(0), jnp.int32(50), m=60, count=20)
    >>> int(drawn.sum()), bool(drawn[50:].any())
    (20, False)
    """
    words = jax.random.key_data(key)[..., -2:]
    packed = _draws(-(-m // WORD), count)(words[None], jnp.asarray(size, jnp.int32)[None])[0]
    rows = (packed[:, None] >> jnp.arange(WORD, dtype=jnp.uint32)) & 1
    return rows.reshape(-1)[:m] > 0


@functools.cache
def _draws(words: int, count: int):
    """keys [L, 2], sizes [L] -> rows drawn as bits [L, words]; a `vmap` of it is one call with more draws."""

    @jax.custom_batching.custom_vmap
    def draws(keys, sizes):
        return draw_lanes(keys, sizes, words, count).T

    @draws.def_vmap
    def more_draws(axis_size, batched, keys, sizes):
        spread = [a if is_batched else jnp.broadcast_to(a, (axis_size, *a.shape))
                  for a, is_batched in zip((keys, sizes), batched, strict=True)]  # fmt: skip
        flat = draws(*(a.reshape(-1, *a.shape[2:]) for a in spread))
        return flat.reshape(axis_size, -1, words), True

    return draws


def live_bits(words: int, sizes: jax.Array) -> jax.Array:
    """The first rows of each draw as bits [words, L]."""
    left = jnp.clip(sizes - WORD * jnp.arange(words, dtype=jnp.int32)[:, None], 0, WORD).astype(jnp.uint32)
    return jnp.where(left == WORD, ~jnp.uint32(0), (jnp.uint32(1) << (left % WORD)) - 1)


def draw_lanes(keys: jax.Array, sizes: jax.Array, words: int, count: int) -> jax.Array:
    """The rows of L draws as bits [words, L]."""
    place = jnp.arange(words, dtype=jnp.uint32)[:, None]

    def narrow(bit, chosen, rest, missing, rivals):
        zeros = rest & ~random_bits(keys[:, 0], keys[:, 1], place, bit)
        found = jax.lax.population_count(zeros).sum(axis=0, dtype=jnp.int32)
        take = found <= missing
        chosen = jnp.where(take, chosen | zeros, chosen)
        rest = jnp.where(take, rest & ~zeros, zeros)
        return chosen, rest, jnp.where(take, missing - found, missing), jnp.where(take, rivals - found, found)

    def step(carry):
        bit, *state = carry
        for k in range(AT_ONCE):
            state = narrow(bit + k, *state)
        return bit + AT_ONCE, *state

    def undecided(carry):
        bit, _, _, missing, rivals = carry
        return (bit < BITS) & ((missing > 0) & (rivals > missing)).any()

    live = live_bits(words, sizes)
    start = (jnp.int32(0), jnp.zeros_like(live), live, jnp.minimum(count, sizes), sizes)
    _, chosen, rest, missing, rivals = jax.lax.while_loop(undecided, step, start)
    return chosen | first_bits(rest, missing, rivals)


def first_bits(bits: jax.Array, count: jax.Array, there: jax.Array) -> jax.Array:
    """The first `count` of the `there` rows that are set: all or none of them, but for ties."""

    def drop_last(carry):
        bits, surplus = carry
        row = jnp.arange(bits.shape[0])[:, None]
        last = jnp.where(bits > 0, row, -1).max(axis=0)
        highest = jnp.uint32(1) << (WORD - 1 - jax.lax.clz(bits)).astype(jnp.uint32)
        return jnp.where((surplus > 0) & (row == last), bits & ~highest, bits), surplus - 1

    kept = jnp.where(count > 0, bits, 0)
    surplus = jnp.where(count > 0, there - count, 0)
    return jax.lax.while_loop(lambda carry: (carry[1] > 0).any(), drop_last, (kept, surplus))[0]
