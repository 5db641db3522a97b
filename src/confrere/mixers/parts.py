"""Parts: what the mix does to one named part of what a server holds, receiver by receiver.

Where nobody counted (zero mass) a receiver keeps what it held, its optimizer's state included.
"""

import jax
import jax.numpy as jnp
import optax

from confrere.core import Part, combine_rows, normalise, present, rows_where, silo_count


def step(tx: optax.GradientTransformation | None = None) -> Part:
    """Take the mean as a gradient and let an optimizer step; by default a plain step of size one.

    One optimizer state per receiver.
    """
    if tx is None:
        tx = optax.sgd(1.0)

    def update(mixed, message, held, state, ctx):
        updates, new = jax.vmap(tx.update)(mixed.mean, state, held)
        moved = optax.apply_updates(held, updates)
        return rows_where(mixed.mass > 0, (moved, new), (held, state))

    return Part(lambda held, message: jax.vmap(tx.init)(held), update)


def replace() -> Part:
    """Hold the mean itself."""

    def update(mixed, message, held, state, ctx):
        return rows_where(mixed.mass > 0, mixed.mean, held), state

    return Part(lambda held, message: (), update, models=True)


def add() -> Part:
    """Add the mean, scaled by the share of the weight that took part: c + |S|/N mean(dc), as in SCAFFOLD.

    N counts those who were ever heard. When it grows, what is held is scaled down accordingly, so that a sum of changes
    stays the mean of what changed: silos that have yet to come count for nothing, and once here as if always there.
    """

    def init(held, message):
        return jnp.zeros(silo_count(message), bool)

    def update(mixed, message, held, known, ctx):
        here = present(ctx)
        now = jnp.where((mixed.mass > 0).any(), known | here, known)
        weights = jnp.ones((1, len(here))) if mixed.weights is None else mixed.weights
        before, after, counted = (jnp.where(who, weights, 0).sum(axis=1) for who in (known, now, here))
        moves = (mixed.mass > 0) & (after > 0)
        total = jnp.where(after > 0, after, 1)
        kept = jnp.where(moves & (before > 0), before / total, 1)
        share = jnp.where(moves, counted / total, 0)

        def grown(h, m):
            old, new = (a.reshape(-1, *(1,) * (h.ndim - 1)) for a in (kept, share))
            return (old * h + new * m).astype(h.dtype)

        return jax.tree.map(grown, held, mixed.mean), now

    return Part(init, update)


def memory(held, message):
    """Who was ever heard [n], and their last values [n]: nobody yet."""
    return jnp.zeros(silo_count(message), bool), jax.tree.map(jnp.zeros_like, message)


def remember(state, message, ctx):
    """The memory after a round: what was heard replaces what was known."""
    known, last = state
    here = present(ctx)
    return known | here, rows_where(here, message, last)


def weights_over(known: jax.Array, mixed, part: str) -> tuple[jax.Array, jax.Array]:
    """Weights over all who were ever heard, summing to 1, and their mass."""
    if mixed.weights is None:
        raise ValueError(f"{part} needs a rule with weights, such as weighted(...)")
    return normalise(jnp.where(known, mixed.weights, 0))


def table() -> Part:
    """Remember every silo's last value, and hold the weighted mean over all who ever spoke.

    In a round in which nobody counted, what is held stays; what was heard is remembered.
    """

    def update(mixed, message, held, state, ctx):
        known, last = state = remember(state, message, ctx)
        share, mass = weights_over(known, mixed, "table()")
        return rows_where((mass > 0) & (mixed.mass > 0), combine_rows(share, last), held), state

    return Part(memory, update, models=True)


def tempered() -> Part:
    """Remember every silo's last value c_i, and hand each silo its own correction towards their mean c.

        s_i = min(1, N alpha_i)
        c   = sum_i alpha_i s_i c_i / sum_i alpha_i s_i
        silo i receives s_i (c - c_i)

    where alpha are the weights over the N silos that were ever heard, summing to 1, and the absent count by their last
    value. A silo that hardly counts has hardly a say in c: the full c - c_i would drive it ever further from the
    others, with nothing to call it back. Here a silo is corrected as far as it counts, and fully once it has an equal
    share. The corrections cancel over those N silos (sum_i alpha_i s_i (c - c_i) = 0), and so over those who are
    averaged while nobody is absent; with equal weights they are SCAFFOLD's, and a silo that counts alone is not
    corrected, nor is one that was never heard. In a round in which nobody counted, corrections stay; what was heard is
    remembered.
    """

    def update(mixed, message, held, state, ctx):
        known, last = state = remember(state, message, ctx)
        share, _ = weights_over(known, mixed, "tempered()")
        strength = jnp.minimum(1, known.sum() * share)  # [1, n]
        mean = combine_rows(normalise(share * strength)[0], last)

        def correction(c, own):
            s = strength.reshape(-1, *(1,) * (own.ndim - 1)).astype(own.dtype)
            return s * (c - own)

        return rows_where(mixed.mass > 0, jax.tree.map(correction, mean, last), held), state

    return Part(memory, update, own=True, models=True)
