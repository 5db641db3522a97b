"""Mixers for silos that are late: what they sent before stands in for what they did not send now.

Jung's book, Algorithm 8.1: a node that is active uses the models that its neighbours sent last, however old.
"""

import jax
import jax.numpy as jnp

from confrere.checks import check_counts
from confrere.core import Mixed, Mixer, Tree, present, rows_where, silo_count


def mailbox(mixer: Mixer) -> Mixer:
    """The same mixer, to which a silent silo's last message stands in for a new one.

    A silo that was never heard is absent, as before. `ctx.age` says how many rounds old a message is (-1: never heard).
    The record keeps the mass of those who spoke in this round.
    """

    def init(shared, message):
        inbox, state = mixer.init(shared, message)
        return inbox, (state, message, jnp.full(silo_count(message), -1, jnp.int32), inbox)

    def update(message, state, ctx):
        inner, last, age, before = state
        here = present(ctx)
        last = rows_where(here, message, last)
        age = jnp.where(here, 0, jnp.where(age >= 0, age + 1, -1))
        inbox, new, mixed = mixer.update(last, inner, ctx._replace(active=age >= 0, age=age))
        inbox, new, age = kept(here.any(), (inbox, new, age), (before, inner, state[2]))
        return inbox, (new, last, age, inbox), spoken(mixed, here)

    return Mixer(init, update, mixer.axis, graded=mixer.graded, models=mixer.models)


def delayed(mixer: Mixer, longest: int) -> Mixer:
    """The same mixer, to which every message comes late, by 0 to `longest` rounds, each silo's drawn anew every round.

    What a silo sent before it was first heard does not exist: it is absent until then. A message that overtakes an
    older one is heard first; the silo's last one stands in where none arrives.
    """
    check_counts(longest=longest)

    def init(shared, message):
        inbox, state = mixer.init(shared, message)
        n = silo_count(message)
        past = jax.tree.map(lambda a: jnp.broadcast_to(a, (longest + 1, *a.shape)), message)
        return inbox, (state, past, jnp.zeros((longest + 1, n), bool), inbox)

    def update(message, state, ctx):
        inner, past, heard, before = state
        here = present(ctx)
        now = rows_where(here, message, jax.tree.map(lambda a: a[0], past))
        new_past = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b[:-1]]), now, past)
        new_heard = jnp.concatenate([(here | heard[0])[None], heard[:-1]])
        late = jax.random.randint(ctx.key, here.shape, 0, longest + 1)
        silo = jnp.arange(len(here))
        arrived = jax.tree.map(lambda a: a[late, silo], new_past)
        inbox, new, mixed = mixer.update(arrived, inner, ctx._replace(active=new_heard[late, silo], age=late))
        after = (inbox, new, new_past, new_heard)
        inbox, new, new_past, new_heard = kept(here.any(), after, (before, inner, past, heard))
        return inbox, (new, new_past, new_heard, inbox), spoken(mixed, here)

    return Mixer(init, update, mixer.axis, graded=mixer.graded, models=mixer.models)


def kept(some: jax.Array, new: Tree, old: Tree) -> Tree:
    """What is new if somebody spoke; a round of nobody changes nothing."""
    return jax.tree.map(lambda a, b: jnp.where(some, a, b), new, old)


def spoken(mixed: Mixed, here: jax.Array) -> Mixed:
    """The record of a round, with the mass of those who spoke in it."""
    if mixed.weights is None:
        return mixed._replace(mass=jnp.where(here.any(), mixed.mass, 0))
    return mixed._replace(mass=jnp.where(here, mixed.weights, 0).sum(axis=1))
