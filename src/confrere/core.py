"""The contract: small tuples of pure functions, composed.

An algorithm of collaborative learning is a `Client` (what happens inside one silo) and a `Mixer` (what
happens between silos), put together by `federate`. A mixer is mostly a server that holds one or more models
and a `Rule` that turns n messages into one mean per receiver; most rules are `weighted(weights)`, where
`Weights` decide who counts and for how much, and see the geometry of the messages only, never a message.

    Client    init: params -> (shared, private)
              update: (inbox, private, data, ctx) -> (message, private)
              personal: (inbox, private, data) -> params
    Mixer     init: (shared, message[n]) -> (inbox, state)
              update: (message[n], state, ctx) -> (inbox, state, record)
    Rule      init: message[n] -> state
              update: (message[n], state, ctx) -> (Mixed, state)
    Weights   init: n -> state
              update: (geometry, state, ctx) -> (W[r, n], state)
    Part      init: (held[r], message[n]) -> state
              update: (mixed, message[n], held[r], state, ctx) -> (held[r], state)
              (held[n], of a part that is each silo's own)

`shared` and `message` are dicts of named parts with fixed shapes. To a server the part `x` is a
pseudo-gradient (`x - y_i`, or the gradient itself); the part `told` is said openly, so rules may read it.
Receivers are rows of W, senders its columns. A host (the simulator, a deployed hub) calls these functions;
they have no side effects, and no randomness but from the key in `ctx`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from confrere.geometry import Geometry

Tree = Any  # a pytree of arrays
Loss = Callable[[Tree, "Batch"], jax.Array]  # (params, batch) -> the mean loss over the live rows


class Block(NamedTuple):
    """The rows of all silos, padded to one block; a client sees its own slice of it.

    Rows are packed at the front, so that a count is all the mask there is: row k of silo i is live if
    k < size[i]. `id` is the silo's own number: its keys are made from it, so that neither the order of the
    silos nor the absence of some changes what another silo draws.
    """

    X: jax.Array  # [n, m, ...]
    y: jax.Array  # [n, m]
    size: jax.Array  # [n] int32
    id: jax.Array  # [n] int32


class Batch(NamedTuple):
    """Some rows of one silo; `live` is False where a row must not count: padding, or a row that was not drawn.

    `real` says which rows are no padding where that is more than `live` (None: the same). Experiments that draw other
    rows of the same data then still share what depends on the rows alone.
    """

    X: jax.Array  # [b, ...]
    y: jax.Array  # [b]
    live: jax.Array  # [b] bool
    real: jax.Array | None = None  # [b] bool


class Ctx(NamedTuple):
    """What a round is about: `[n]` arrays for a mixer, the silo's own values for a client.

    round counts from 1; active: who takes part; size: rows per silo; age: how many rounds old each message
    is (0 fresh, -1 never heard, None: all fresh); key: for all randomness; prior: what was believed of every silo
    before training, by which a mixer's weights are multiplied (None: all 1; clients are not told).
    """

    round: Any
    active: Any
    size: Any
    age: Any = None
    key: Any = None
    prior: Any = None


class Inbox(NamedTuple):
    """What a silo receives: the tree of `shared`, and the mass behind it (0: nobody counted)."""

    shared: Tree
    mass: Any


class Mixed(NamedTuple):
    """One combination per receiver: mean[r], its mass[r], and the weights[r, n] as the rule gave them."""

    mean: Tree
    mass: jax.Array
    weights: jax.Array | None = None


class Record(NamedTuple):
    """What a host may keep of a round: raw weights [r, n], mass [r], who arrived [n], what was observed."""

    weights: jax.Array | None
    mass: jax.Array
    arrived: jax.Array
    observed: Tree = ()


class Client(NamedTuple):
    """What happens inside one silo.

    `wire` says how many bytes a message takes on its way, from its shapes; None: those of its arrays as they are.
    """

    init: Callable[[Tree], tuple[Tree, Tree]]
    update: Callable[[Inbox, Tree, Block, Ctx], tuple[Tree, Tree]]
    personal: Callable[[Inbox, Tree, Block], Tree]
    wire: Callable[[Tree], int] | None = None


class Listener(NamedTuple):
    """A silo that sends nothing and alone receives the named parts of the inbox, for its personal model only."""

    user: Any
    parts: tuple[str, ...]


class Mixer(NamedTuple):
    """What happens between silos.

    `axis` says what of the inbox is stacked over silos, as `in_axes` of `jax.vmap` does: 0 (everything: each receives
    its own), None (nothing: all receive the same), or a prefix of the inbox with 0 and None at its parts. `sends` is
    False for a mixer that could run inside each silo, because no message counts but its own: nothing then crosses a
    border. With a `listener` one silo only listens. `own_rows` is True where all receive the same, but each silo mixes
    it by a row of weights of its own. `graded` is False for a mixer that weighs silos by what they say alone: a prior
    can keep a silo or leave it out, but nothing between. `models` is True where the part `x` of a message is a model
    itself, of which the last one counts, not a step, of which all add up.
    """

    init: Callable[[Tree, Tree], tuple[Inbox, Tree]]
    update: Callable[[Tree, Tree, Ctx], tuple[Inbox, Tree, Mixed]]
    axis: Any = None
    sends: bool = True
    listener: Listener | None = None
    own_rows: bool = False
    graded: bool = True
    models: bool = False

    @property
    def per_silo(self) -> bool:
        """Whether weights have one row per silo, behind its own model; else they have one per model that is held."""
        return self.own_rows or self.axis == 0


class Rule(NamedTuple):
    """n messages -> one combination per receiver."""

    init: Callable[[Tree], Tree]
    update: Callable[[Tree, Tree, Ctx], tuple[Mixed, Tree]]


class Weights(NamedTuple):
    """Who counts, and for how much, from geometry alone.

    `needs`: the silo without whom a receiver's row counts for nothing: one index, or one per receiver (`slice(None)`:
    itself).
    """

    init: Callable[[int], Tree]
    update: Callable[[Geometry, Tree, Ctx], tuple[jax.Array, Tree]]
    needs: Any = None


class Part(NamedTuple):
    """What the mix does to one named part of what a server holds.

    `own` is True for a part of which one row per silo is held, which that silo alone receives: held[n], not held[r].
    `models` is True for a part that keeps what silos sent last: messages do not add up in it.
    """

    init: Callable[[Tree, Tree], Tree]
    update: Callable[[Mixed, Tree, Tree, Tree, Ctx], tuple[Tree, Tree]]
    own: bool = False
    models: bool = False


class State(NamedTuple):
    """Everything a run needs to go on: arrays only, so that it can be saved."""

    inbox: Inbox
    private: Tree
    mix: Tree
    round: jax.Array  # the round to come, counted from 1


class Algorithm(NamedTuple):
    """A client and a mixer put together: what the simulator runs.

    init: (params, data) -> state; update: (state, data, key, active, observe, each) -> (state, record), where
    each(function, in_axes) runs the silos, by default side by side; personal: (state, data, i) -> params of silo i.
    Other hosts run `client` and `mixer` themselves, with the `prior` [n] in the mixer's `ctx` and nobody active whose
    prior is 0.
    """

    init: Callable[..., State]
    update: Callable[..., tuple[State, Record]]
    personal: Callable[[State, Block, Any], Tree]
    client: Client
    mixer: Mixer
    prior: Any = None


def rows_where(mask: jax.Array, new: Tree, old: Tree) -> Tree:
    """Leaf by leaf, the rows of `new` where mask[n], else those of `old`."""

    def select(a, b):
        return jnp.where(mask.reshape(mask.shape + (1,) * (jnp.ndim(a) - mask.ndim)), a, b)

    return jax.tree.map(select, new, old)


def present(ctx: Ctx) -> jax.Array:
    """Who takes part, as booleans [n]."""
    return jnp.asarray(ctx.active) > 0


def silo_count(message: Tree) -> int:
    """The number of silos behind a stacked message."""
    return jax.tree.leaves(message)[0].shape[0]


def normalise(W: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows of W that sum to one, or to zero where the row has no mass; and the mass [r]."""
    mass = W.sum(axis=1)
    return W / jnp.where(mass > 0, mass, 1)[:, None], mass


def combine_rows(W: jax.Array, stacked: Tree) -> Tree:
    """Leaf by leaf, W[r, n] times the messages [n, ...]."""
    return jax.tree.map(lambda a: jnp.einsum("rn,n...->r...", W.astype(a.dtype), a), stacked)


Via = Callable[[Mapping[str, Tree], str, Ctx], tuple[Geometry, Callable[[jax.Array], Tree]]]


def plain(message: Mapping[str, Tree], on: str, ctx: Ctx) -> tuple[Geometry, Callable[[jax.Array], Tree]]:
    """The open way to geometry and mean: the host sees the messages. A secure protocol takes its place."""
    return Geometry.from_messages(message[on]), lambda W: combine_rows(W, message)


def weighted(weights: Weights, on: str = "x", via: Via = plain) -> Rule:
    """The rule that averages messages with the given weights, from the geometry of the part `on`.

    The absent are masked and rows normalised here: `weights` may return raw numbers.
    """

    def update(message, state, ctx):
        if on not in message:
            raise ValueError(
                f"weights look at the part {on!r}, but the messages have only {', '.join(sorted(message))}"
            )
        if silo_count(message) != len(ctx.active):
            raise ValueError(f"{silo_count(message)} messages for {len(ctx.active)} silos")
        geometry, combine = via({k: v for k, v in message.items() if k != "told"}, on, ctx)
        geometry.told = message.get("told")
        W, state = weights.update(geometry, state, ctx)
        if ctx.prior is not None:
            W = W * jnp.asarray(ctx.prior, W.dtype)
        here = present(ctx)
        counted = jnp.where(here, W, 0)
        if weights.needs is not None:
            counted = jnp.where(here[weights.needs].reshape(-1, 1), counted, 0)
        share, mass = normalise(counted)
        return Mixed(combine(share), mass, W), state

    return Rule(lambda message: weights.init(silo_count(message)), update)


def silo_keys(key: jax.Array, round: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mixer's key and the silos' keys [n] of a round: independent of order and of who is absent."""
    of_round = jax.random.fold_in(key, round)
    return jax.random.fold_in(of_round, 0), jax.vmap(lambda i: jax.random.fold_in(of_round, i + 1))(ids)


def arrived(message: Tree, active: jax.Array) -> tuple[Tree, jax.Array]:
    """Zero what did not arrive or is not finite, and say who remains: rules never read garbage."""
    finite = [jnp.isfinite(a).reshape(a.shape[0], -1).all(axis=1) for a in jax.tree.leaves(message)]
    here = jnp.stack([active, *finite]).all(axis=0)
    return rows_where(here, message, jax.tree.map(jnp.zeros_like, message)), here


def byte_size(tree: Tree) -> int:
    """The bytes of all arrays of a tree, or of what has their shapes."""
    return sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(tree))


def blank_message(client: Client, shared: Tree, private: Tree, one: Block) -> Tree:
    """The shapes of one silo's message, found without computing it."""

    def say():
        ctx = Ctx(jnp.int32(1), jnp.bool_(True), one.size, jnp.int32(0), jax.random.key(0))
        return client.update(Inbox(shared, jnp.float32(0)), private, one, ctx)[0]

    return jax.eval_shape(say)


def taking_part(active: jax.Array, prior: Any) -> jax.Array:
    """Who takes part [n]: of those who are active, whose prior is not 0."""
    return active if prior is None else active & (jnp.asarray(prior) > 0)


def federate(client: Client, mixer: Mixer, prior: Any = None) -> Algorithm:
    """Put a client and a mixer together, with a prior [n] if there is one. See `Algorithm` for what comes out."""

    def init(params: Tree, data: Block) -> State:
        n = data.id.shape[0]
        shared, private = client.init(params)
        one = blank_message(client, shared, private, jax.tree.map(lambda a: a[0], data))
        if not isinstance(one, dict):
            raise TypeError(f"a message must be a dict of named parts, not {type(one).__name__}")
        blank = jax.tree.map(lambda s: jnp.zeros((n, *s.shape), s.dtype), one)
        inbox, mix = mixer.init(shared, blank)
        each = jax.tree.map(lambda a: jnp.broadcast_to(a, (n, *jnp.shape(a))), private)
        return State(inbox, each, mix, jnp.int32(1))

    def update(state: State, data: Block, key, active=None, observe=None, each=jax.vmap) -> tuple[State, Record]:
        n = data.id.shape[0]
        with_rows = data.size > 0  # a silo without a row has nothing to say
        active = taking_part(with_rows if active is None else with_rows & (jnp.asarray(active) > 0), prior)
        mixer_key, keys = silo_keys(key, state.round, data.id)
        ctx = Ctx(state.round, active, data.size, jnp.zeros(n, jnp.int32), keys)
        everybody = each(client.update, (mixer.axis, 0, 0, Ctx(None, 0, 0, 0, 0)))  # type: ignore[arg-type]
        inbox = state.inbox
        if mixer.listener is not None:  # while training nobody is the listener
            inbox = inbox._replace(shared=heard_by(mixer.listener, inbox.shared, -1))
        message, private = everybody(inbox, state.private, data, ctx)
        message, here = arrived(message, active)
        private = rows_where(here, private, state.private)
        ctx = ctx._replace(active=here, key=mixer_key, prior=prior)
        inbox, mix, mixed = mixer.update(message, state.mix, ctx)
        seen = () if observe is None else observe(message, ctx)
        record = Record(mixed.weights, mixed.mass, here, seen)
        return State(inbox, private, mix, state.round + 1), record

    def personal(state: State, data: Block, i: Any) -> Tree:
        inbox, private, one = silo_view(mixer, state, data, i)
        return client.personal(inbox, private, one)

    return Algorithm(init, update, personal, client, mixer, prior)


def silo_view(mixer: Mixer, state: State, data: Block, i: Any) -> tuple[Inbox, Tree, Block]:
    """What silo i has: its inbox, its private state and its rows."""
    at = lambda tree: jax.tree.map(lambda a: a[i], tree)  # noqa: E731
    return received(mixer, state.inbox, i), at(state.private), at(data)


def received(mixer: Mixer, inbox: Inbox, i: Any) -> Inbox:
    """What silo i receives of the inboxes of all."""
    at = lambda axis, tree: tree if axis is None else jax.tree.map(lambda a: a[i], tree)  # noqa: E731
    inbox = jax.tree.map(at, mixer.axis, inbox, is_leaf=lambda axis: axis is None)
    if mixer.listener is None:
        return inbox
    return inbox._replace(shared=heard_by(mixer.listener, inbox.shared, i))


def heard_by(listener: Listener, shared: Mapping[str, Tree], i: Any) -> dict[str, Tree]:
    """What silo i receives: zeros in place of the parts that are the listener's alone."""
    blank = lambda tree: jax.tree.map(lambda a: jnp.where(i == listener.user, a, jnp.zeros_like(a)), tree)  # noqa: E731
    return {name: blank(part) if name in listener.parts else part for name, part in shared.items()}
