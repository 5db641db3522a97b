"""Mixers without a server's model: silos receive mixes of each other's messages, or the messages themselves.

To peers the part `x` of a message is the model itself, not a pseudo-gradient.
"""

import jax
import jax.numpy as jnp

from confrere.core import Ctx, Inbox, Mixed, Mixer, Rule, present, rows_where, silo_count
from confrere.mixers.server import check_parts, check_shapes


def peers(rule: Rule) -> Mixer:
    """Nobody holds a model: every silo receives its own row of the mix.

    The rule must give one row of weights per silo. A receiver whose row has no mass keeps what it received last. The
    first inbox is the mix of the start values: since all silos have the same, these values, but with the mass that the
    rule gives them (for a graph, the degree).
    """

    def init(shared, message):
        n = silo_count(message)
        check_parts(set(shared), set(shared), set(message))
        start = {name: jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape)), shared[name]) for name in shared}
        ones = jnp.ones(n, jnp.int32)
        ctx = Ctx(jnp.int32(1), ones > 0, ones, jnp.zeros(n, jnp.int32), jax.random.key(0))
        mass = rule.update({**message, **start}, rule.init(message), ctx)[0].mass
        if mass.shape[0] != n:
            raise ValueError(f"the rule gives {mass.shape[0]} row(s) of weights, but each of {n} peers needs one")
        return Inbox(start, mass), (start, rule.init(message))

    def update(message, state, ctx):
        held, rule_state = state
        check_shapes(held, message)
        mixed, rule_state = rule.update(message, rule_state, ctx)
        held = rows_where(mixed.mass > 0, {name: mixed.mean[name] for name in held}, held)
        return Inbox(held, mixed.mass), (held, rule_state), mixed._replace(mean=None)

    return Mixer(init, update, axis=0, models=True)


def exchange() -> Mixer:
    """Every silo receives every silo's last message, weighs them by itself, and tells the weights that it used.

    What a silo receives is a table with one row per silo, and the mass says which rows are there: 0 for a silo that was
    never heard. A client for it shares a table of one row, and tells `weights` [n]; they are what is recorded.
    """

    def init(shared, message):
        n = silo_count(message)
        table = jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *a.shape[1:])), shared)
        check_parts(set(shared), set(shared), set(message))
        check_shapes(table, message)
        return Inbox(table, jnp.zeros(n)), (table, jnp.zeros(n, bool))

    def update(message, state, ctx):
        table, heard = state
        check_shapes(table, message)
        here = present(ctx)
        table = rows_where(here, {name: message[name] for name in table}, table)
        heard = heard | here
        weights = message["told"]["weights"]
        mass = jnp.where(here, weights, 0).sum(axis=1)
        return Inbox(table, 1.0 * heard), (table, heard), Mixed(None, mass, weights)

    return Mixer(init, update, own_rows=True, graded=False, models=True)
