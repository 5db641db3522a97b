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

    return Part(lambda held, message: (), update)


def add() -> Part:
    """Add the mean, scaled by the share of silos that took part: c + |S|/N mean(dc), as in SCAFFOLD."""

    def update(mixed, message, held, state, ctx):
        share = present(ctx).mean(dtype=jnp.result_type(float))
        return jax.tree.map(lambda h, m: h + (share * m).astype(h.dtype), held, mixed.mean), state

    return Part(lambda held, message: (), update)


def table() -> Part:
    """Remember every silo's last value, and hold the weighted mean over all who ever spoke."""

    def init(held, message):
        return jnp.zeros(silo_count(message), bool), jax.tree.map(jnp.zeros_like, message)

    def update(mixed, message, held, state, ctx):
        known, last = state
        here = present(ctx)
        last = rows_where(here, message, last)
        known = known | here
        if mixed.weights is None:
            raise ValueError("table() needs a rule with weights, such as weighted(...)")
        share, mass = normalise(jnp.where(known, mixed.weights, 0))
        return rows_where((mass > 0) & (mixed.mass > 0), combine_rows(share, last), held), (known, last)

    return Part(init, update)
