"""The client wrapper under which some layers never leave the silo: FedPer's, FedRep's and FedBN's.

Of the model y_i that a silo trained from the common layers and its own, only the common layers are sent, as x - y_i;
the kept ones stay in its private state. The server has no place for them, and they cost no byte.
"""

import jax
import jax.numpy as jnp

from confrere.core import Client, Inbox, Tree
from confrere.layers import Filter, merge, split


def keep(client: Client, kept: Filter) -> Client:
    """The same client, of whose model the leaves that `kept` chooses are neither shared nor sent.

    For clients that send how far they came (x - y_i) and nothing else: the kept leaves move all the way to y_i.
    """

    def init(params):
        shared, private = client.init(params)
        check_only_x(set(shared))
        own, common = split(shared["x"], kept)
        check_something_left(common)
        return {"x": common}, (private, own)

    def update(inbox, private, data, ctx):
        inner, own = private
        message, inner = client.update(whole(inbox, own), inner, data, ctx)
        check_only_x(set(message) - {"told"})
        moved, common = split(message["x"], kept)
        return {**message, "x": common}, (inner, jax.tree.map(jnp.subtract, own, moved))

    def personal(inbox, private, data):
        inner, own = private
        return client.personal(whole(inbox, own), inner, data)

    return Client(init, update, personal)


def whole(inbox: Inbox, own: Tree) -> Inbox:
    """The inbox with the kept leaves in their places."""
    return inbox._replace(shared={"x": merge(inbox.shared["x"], own)})


def check_only_x(parts: set[str]) -> None:
    """Refuse parts in which kept leaves could leave unseen."""
    if parts != {"x"}:
        raise ValueError(f"only the part x can be kept in parts, but the client has {', '.join(sorted(parts))}")


def check_something_left(common: Tree) -> None:
    """Refuse to keep everything: there would be nothing to send."""
    if not jax.tree.leaves(common):
        raise ValueError(
            "the whole model is kept, so that nothing would be shared: that is training alone, confrere.local. The "
            "head of a linear model is all of it: choose a network, or name what to keep, as in keep=('b',), intercepts"
        )
