"""Drawing a batch without a sort has the law of a shuffle cut off."""

import functools
import itertools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from scipy.stats import chisquare

from confrere.clients.batches import shuffled
from confrere.clients.shuffle import shuffle
from confrere.clients.subset import draw_lanes, subset
from confrere.core import Block


@functools.partial(jax.jit, static_argnums=(2, 3))
def many(keys, size, m, count):
    """One draw per key, [keys, m]."""
    return jax.vmap(lambda key: subset(key, size, m, count))(keys)


def draws(size, m, count, times, seed=0):
    """Many draws, [times, m]."""
    return np.asarray(many(jax.random.split(jax.random.key(seed), times), jnp.int32(size), m, count))


@settings(max_examples=40)
@given(st.sampled_from([(32, 5), (70, 64), (150, 160)]), st.integers(0, 150), st.integers(0, 2**31 - 1))
def test_the_right_number_of_live_rows_is_drawn(shape, size, seed):
    (m, count), size = shape, min(size, shape[0])
    drawn = draws(size, m, count, 4, seed)
    assert (drawn.sum(axis=1) == min(count, size)).all()
    assert not drawn[:, size:].any()


def test_every_set_of_rows_has_the_same_chance():
    sets = {rows: k for k, rows in enumerate(itertools.combinations(range(6), 3))}
    drawn = draws(6, 8, 3, 20_000)
    seen = np.bincount([sets[tuple(np.flatnonzero(row))] for row in drawn], minlength=len(sets))
    assert chisquare(seen).pvalue > 1e-4


def test_pairs_of_rows_far_apart_are_drawn_as_a_shuffle_would():
    drawn = draws(100, 100, 30, 20_000).astype(float)
    together = drawn.T @ drawn / len(drawn)
    wanted = np.where(np.eye(100) == 1, 0.3, 30 * 29 / (100 * 99))
    error = (together - wanted) / np.sqrt(wanted * (1 - wanted) / len(drawn))
    assert np.abs(error).max() < 5.5
    assert 0.9 < error.std() < 1.1


def test_padding_changes_nothing():
    assert np.array_equal(draws(50, 50, 20, 30), draws(50, 200, 20, 30)[:, :50])


def test_one_draw_is_the_same_alone_and_among_others():
    keys = jax.random.split(jax.random.key(1), 12)
    sizes = jnp.arange(30, 42)
    one = [np.asarray(subset(k, s, 45, 10)) for k, s in zip(keys, sizes, strict=True)]
    all_at_once = jax.vmap(lambda k, s: subset(k, s, 45, 10))(keys, sizes)
    nested = jax.vmap(jax.vmap(lambda k, s: subset(k, s, 45, 10), (0, 0)), (0, 0))(
        keys.reshape(3, 4), sizes.reshape(3, 4)
    )
    assert np.array_equal(np.stack(one), np.asarray(all_at_once))
    assert np.array_equal(np.stack(one), np.asarray(nested).reshape(12, 45))


def test_rows_that_no_bit_tells_apart_are_taken_in_order(monkeypatch):
    monkeypatch.setattr("confrere.clients.subset.random_bits", lambda one, two, place, bit: jnp.zeros_like(place))
    packed = draw_lanes(jnp.zeros((1, 2), jnp.uint32), jnp.array([70]), 3, 40)
    bits = (np.asarray(packed)[:, 0, None] >> np.arange(32)) & 1
    assert bits.reshape(-1)[:70].tolist() == [1] * 40 + [0] * 30


def test_small_and_large_silos_draw_the_same_rows():
    """In place (all rows stay) or gathered: the same batch."""
    size, m = jnp.int32(40), 200
    X = jnp.arange(m, dtype=jnp.float32)[:, None]
    for rows in (60, 200):  # up to 4 batches of 16 the rows stay in place
        plan = shuffled(16, steps=1)
        block = Block(X[:rows], jnp.zeros(rows, jnp.int32), size, jnp.int32(0))
        chosen = jax.tree.map(lambda a: a[0], plan.draw(size, jnp.int32(0), jax.random.key(3), rows))
        batch = plan.batch(block, chosen)
        drawn = sorted(np.asarray(batch.X)[np.asarray(batch.live), 0].astype(int).tolist())
        wanted = np.flatnonzero(np.asarray(subset(jax.random.key(3), size, rows, 16))).tolist()
        assert drawn == wanted
        assert len(drawn) == 16


def test_a_batch_drawn_by_itself_is_the_front_of_the_shuffle():
    for seed in range(20):
        key, size = jax.random.key(seed), jnp.int32(300 - seed)
        front = sorted(np.asarray(shuffle(key, size, 310))[:100].tolist())
        assert front == np.flatnonzero(np.asarray(subset(key, size, 310, 100))).tolist()
