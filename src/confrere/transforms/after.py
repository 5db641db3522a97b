"""The client wrapper that lets an optax transformation work on one part of the message: compression, clipping, noise.

The transformation's state stays in the silo's private state. Its randomness comes from the silo's key of the round,
which a transformation takes as the extra argument `key`; one that carries a generator of its own is refused, since all
silos would draw the same numbers. The wrapped client draws what it drew before: the key of the transformation is folded
in beside it, with a number of its own for every wrapper.
"""

import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from confrere.core import Client, Tree, byte_size

OF_ITS_OWN = zlib.crc32(b"confrere.transforms.after") & 0x7FFFFFFF  # no client splits a key so often
RANDOM = ("rng", "key", "seed")  # what fields of a state are called that hold a generator


def after(client: Client, tx: Any, on: str = "x") -> Client:
    """The same client, whose messages go through `tx` in the part `on` before they are sent.

    tx: an optax transformation, or what `top_k` and `quantised` return; the latter also say how many bytes the part
    takes on its way.

    >>> import jax, optax, confrere as cf
    >>> client = cf.transforms.after(cf.clients.gradient(cf.models.logistic().loss), optax.clip_by_global_norm(1.0))
    >>> sorted(client.init({"w": jax.numpy.zeros((2, 1)), "b": jax.numpy.zeros(1)})[0])
    ['x']
    """
    depth = getattr(client.update, "wrapped", 0) + 1

    def init(params):
        shared, private = client.init(params)
        if on not in shared:
            raise ValueError(f"the client shares no part {on!r}; it shares {', '.join(sorted(shared))}")
        state = tx.init(one_model(shared[on], params))
        check_no_generator(state)
        return shared, (private, state)

    def update(inbox, private, data, ctx):
        inner, state = private
        message, inner = client.update(inbox, inner, data, ctx)
        check_model(message, inbox.shared, on)
        key = jax.random.fold_in(jax.random.fold_in(ctx.key, OF_ITS_OWN), depth)
        part, state = transformed(tx, message[on], state, key)
        return {**message, on: part}, (inner, state)

    def personal(inbox, private, data):
        return client.personal(inbox, private[0], data)

    update.wrapped = depth  # type: ignore[attr-defined]
    return Client(init, update, personal, wire_of(client, tx, on))


def one_model(shared: Tree, params: Tree) -> Tree:
    """The shapes of one silo's message: those of what is shared, or of one of several models that are."""
    if jax.tree.structure(shared) != jax.tree.structure(params):
        return shared
    return jax.tree.map(lambda a, b: a[0] if jnp.ndim(a) == jnp.ndim(b) + 1 else a, shared, params)


def transformed(tx: Any, part: Tree, state: Tree, key: jax.Array) -> tuple[Tree, Tree]:
    """A part of a message after a transformation, which is given the key if it asks for more than optax's own do."""
    if isinstance(tx, optax.GradientTransformation) and not isinstance(tx, optax.GradientTransformationExtraArgs):
        return tx.update(part, state)
    return tx.update(part, state, None, key=key)


def wire_of(client: Client, tx: Any, on: str) -> Callable[[Tree], int] | None:
    """How many bytes a message takes: where the transformation says nothing of it, as many as before."""
    before = byte_size if client.wire is None else client.wire
    if not hasattr(tx, "size"):
        return client.wire
    return lambda message: before({k: v for k, v in message.items() if k != on}) + tx.size(message[on])


def check_model(message: Tree, shared: Tree, on: str) -> None:
    """Refuse messages that have no such part, or hold something else in it than a model or a step of one."""
    if on not in message:
        raise ValueError(f"the messages have no part {on!r}; they have {', '.join(sorted(message))}")
    if jax.tree.structure(message[on]) != jax.tree.structure(shared[on]):
        raise ValueError(
            f"the part {on!r} of the messages is neither a model nor a step of one, but sums that are sent as they "
            "are: leave this algorithm's messages alone"
        )


def check_no_generator(state: Tree) -> None:
    """Refuse a transformation that carries a random generator: every silo would draw the same."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        typed = jnp.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key)
        old_style = jnp.result_type(leaf) == jnp.uint32 and jnp.shape(leaf) == (2,)
        names = [str(getattr(step, "name", getattr(step, "key", ""))).lower() for step in path]
        named = any(word in name.split("_") for name in names for word in RANDOM)
        if typed or old_style or named:
            raise ValueError(
                f"the transformation carries a random generator of its own ({jax.tree_util.keystr(path)}), so that all "
                "silos would draw the same numbers: take one that is given `key`, as confrere.transforms' are"
            )
