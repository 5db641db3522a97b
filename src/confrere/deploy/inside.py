"""Algorithms that send nothing: deployed, they run inside each site as a whole, and nothing crosses a border.

Training alone is a client and a mixer that moves every silo's model by its own message. In the simulator both run side
by side for all silos; deployed, the mixer's part is done in the site too. What is left of a round is that the hub says
when it is, and that the site says that it did it.
"""

import jax
import jax.numpy as jnp

from confrere.core import (
    Algorithm,
    Block,
    Client,
    Inbox,
    Mixed,
    Mixer,
    Tree,
    arrived,
    federate,
    present,
    received,
    rows_where,
    silo_count,
)


def kept_inside(algorithm: Algorithm, rows: Block) -> Algorithm:
    """The same algorithm, whose silos say no more than that they took part; `rows` are one silo's, for their shapes."""
    client, mixer = algorithm.client, algorithm.mixer
    one = lambda tree: jax.tree.map(lambda a: jnp.asarray(a)[None], tree)  # noqa: E731

    def init(params):
        state = federate(client, mixer).init(params, rows)
        nothing: dict[str, Tree] = {}
        return nothing, (state.inbox, state.private, state.mix)

    def update(_, private, data, ctx):
        inbox, own, mix = private
        message, new = client.update(received(mixer, inbox, 0), jax.tree.map(lambda a: a[0], own), data, ctx)
        message, here = arrived(one(message), one(ctx.active))
        inbox, mix, _ = mixer.update(message, mix, ctx._replace(active=here, size=one(ctx.size), age=one(ctx.age)))
        return {"told": {"done": jnp.int32(1)}}, (inbox, rows_where(here, one(new), own), mix)

    def personal(_, private, data):
        inbox, own, _ = private
        return client.personal(received(mixer, inbox, 0), jax.tree.map(lambda a: a[0], own), data)

    return federate(Client(init, update, personal), roll_call(), algorithm.prior)


def roll_call() -> Mixer:
    """A mixer that only counts who is there."""

    def init(shared, message):
        return Inbox(shared, jnp.zeros(())), ()

    def update(message, state, ctx):
        mass = present(ctx).sum(dtype=jnp.result_type(float))
        return Inbox({}, mass), (), Mixed(None, mass[None], jnp.eye(silo_count(message)))

    return Mixer(init, update)
