"""What a hub and its sites agree on before round 1: from it each derives the same shapes and the same programs.

The names of the sites are in order: a site's place is its silo's number, from which its keys are made. A site knows its
own rows and nothing of others'; the hub knows no row, only their shape.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import (
    Algorithm,
    Block,
    Ctx,
    Inbox,
    Mixed,
    State,
    Tree,
    arrived,
    heard_by,
    received,
    silo_keys,
    taking_part,
)
from confrere.deploy.inside import kept_inside
from confrere.deploy.parcel import Parcel
from confrere.models import Model
from confrere.program import numbers
from confrere.recipe import Bound, Recipe


class Static(NamedTuple):
    """What is compiled into the programs: hashable, so that all sites of a process share one."""

    make: Bound
    model: Model
    inputs: tuple[int, ...]

    def algorithm(self, hyper: Mapping[str, Any]) -> Algorithm:
        """The algorithm with its numbers; one that sends nothing runs inside each site as a whole."""
        made = self.make.on(self.model, **hyper)
        return made if made.mixer.sends else kept_inside(made, blank_rows(self.inputs, self.model, 1))


@dataclass(frozen=True, eq=False)
class Agreed:
    """The sites by name, the algorithm, its numbers, the model before round 1 and the key of all randomness."""

    names: tuple[str, ...]
    static: Static
    hyper: dict[str, jax.Array]
    params: Tree
    key: jax.Array

    @classmethod
    def on(cls, recipe: Recipe, model: Model, names: tuple[str, ...], inputs: int, params: Tree, seed: int) -> "Agreed":
        """For a recipe whose user and prior are given by places."""
        hyper = numbers(recipe.hyper, jax.tree.leaves(params)[0].dtype)
        return cls(names, Static(recipe.bound, model, (inputs,)), hyper, params, jax.random.key(seed))

    @functools.cached_property
    def algorithm(self) -> Algorithm:
        """The algorithm."""
        return self.static.algorithm(self.hyper)

    @property
    def user(self) -> str | None:
        """The site for whom the model is made, if it is made for one alone."""
        return self.names[int(self.hyper["user"])] if "user" in self.hyper else None

    @functools.cached_property
    def listener(self) -> str | None:
        """The site that sends nothing and only listens, if there is one."""
        listener = self.algorithm.mixer.listener
        return None if listener is None else self.names[int(listener.user)]

    def start(self) -> State:
        """The state before round 1; the private part is that of every site."""
        rows = blank_rows(self.static.inputs, self.static.model, len(self.names))
        return _start(self.static, self.hyper, self.params, rows)

    def message_spec(self) -> Tree:
        """The shapes of a site's message: of what it says to the first inbox."""
        one = jax.tree.map(lambda a: a[0], blank_rows(self.static.inputs, self.static.model, 1))
        start, mixer = self.start(), self.algorithm.mixer
        said = functools.partial(client_step, self.static, self.hyper)
        return jax.eval_shape(said, received(mixer, start.inbox, 0), start.private, one, jnp.int32(1), self.key)[0]

    def parcel(self) -> Parcel:
        """How a site's message travels."""
        sends = self.static.make.on(self.static.model, **self.hyper).mixer.sends
        compression: Any = self.static.make.compression if sends else None
        return Parcel(self.message_spec(), None if compression is None else compression.format)

    def inbox_spec(self, place: int) -> Inbox:
        """The shapes of what a site is sent."""
        return jax.eval_shape(lambda state: self.sent_to(state.inbox, place), self.start())

    def sent_to(self, inbox: Inbox, place: int) -> Inbox:
        """What a site is sent of all inboxes: parts that are a listener's alone go to it alone."""
        mixer = self.algorithm.mixer
        own = received(mixer, inbox, place)
        if mixer.listener is None or int(mixer.listener.user) == place:
            return own
        return own._replace(shared={k: v for k, v in own.shared.items() if k not in mixer.listener.parts})

    def completed(self, inbox: Inbox, place: int) -> Inbox:
        """What a site received, with zeros in place of the parts that are a listener's alone."""
        mixer = self.algorithm.mixer
        if mixer.listener is None or int(mixer.listener.user) == place:
            return inbox
        whole = jax.eval_shape(lambda state: received(mixer, state.inbox, place), self.start())
        return inbox._replace(shared={k: inbox.shared.get(k, zeros(v)) for k, v in whole.shared.items()})

    def active(self, sizes: Mapping[str, int]) -> np.ndarray:
        """Who may take part at all [n]: sites with rows, whose prior is not 0; a listener is asked for nothing."""
        rows = np.array([sizes.get(name, 0) > 0 for name in self.names])
        return np.asarray(taking_part(jnp.asarray(rows), self.hyper.get("prior")))


def zeros(spec: Tree) -> Tree:
    """Zeros of these shapes."""
    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), spec)


def blank_rows(inputs: tuple[int, ...], model: Model, n: int) -> Block:
    """One row of zeros for each of n silos: shapes are all that is looked at."""
    kind = jnp.int32 if model.task == "classification" else jnp.result_type(float)
    ids = jnp.arange(n, dtype=jnp.int32)
    return Block(jnp.zeros((n, 1, *inputs)), jnp.zeros((n, 1), kind), jnp.ones(n, jnp.int32), ids)


@functools.partial(jax.jit, static_argnums=0)
def _start(static: Static, hyper: Any, params: Tree, rows: Block) -> State:
    state = static.algorithm(hyper).init(params, rows)
    return state._replace(private=jax.tree.map(lambda a: a[0], state.private))


@functools.partial(jax.jit, static_argnums=0)
def client_step(static: Static, hyper: Any, inbox: Inbox, private: Tree, own: Block, round, key) -> tuple[Tree, Tree]:
    """What one site does in a round: the very `client.update` of the simulator."""
    ctx = Ctx(round, jnp.bool_(True), own.size, jnp.int32(0), silo_keys(key, round, own.id[None])[1][0])
    algorithm = static.algorithm(hyper)
    listener = algorithm.mixer.listener
    if listener is not None:  # while training nobody is the listener
        inbox = inbox._replace(shared=heard_by(listener, inbox.shared, -1))
    return algorithm.client.update(inbox, private, own, ctx)


@functools.partial(jax.jit, static_argnums=0)
def personal_model(static: Static, hyper: Any, inbox: Inbox, private: Tree, own: Block) -> Tree:
    """A site's personal model."""
    return static.algorithm(hyper).client.personal(inbox, private, own)


@functools.partial(jax.jit, static_argnums=0)
def mixer_step(
    static: Static, hyper: Any, messages: Sequence[Tree], mix: Tree, round, here, size, key
) -> tuple[Inbox, Tree, Mixed]:
    """What the hub does in a round with the messages of all: the very `mixer.update` of the simulator."""
    message, here = arrived(jax.tree.map(lambda *rows: jnp.stack(rows), *messages), here)
    ages = jnp.zeros(len(size), jnp.int32)
    at_mixer = silo_keys(key, round, jnp.zeros(1, jnp.int32))[0]
    ctx = Ctx(round, here, size, ages, at_mixer, hyper.get("prior"))
    return static.algorithm(hyper).mixer.update(message, mix, ctx)
