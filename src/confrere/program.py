"""The compiled program of a run: pure functions of traced values, which the simulator, a study and a grid share.

`Setup` holds what is static. Everything else, the rows, the key, the user, learning rates and penalties, who is active
when, is traced: the same compiled program serves other values, and `vmap` turns it into a grid.
"""

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from confrere.clients.batches import everything
from confrere.core import (
    Algorithm,
    Block,
    Ctx,
    Geometry,
    Record,
    State,
    Tree,
    blank_message,
    byte_size,
    present,
    silo_view,
)
from confrere.each import SILO, Each, on_shares, one_by_one, specs_of, spread
from confrere.models import METRICS, Model
from confrere.recipe import Bound
from confrere.stopping import cone
from confrere.weights.erosion import relative_distance


class Setup(NamedTuple):
    """What is static about a run."""

    make: Bound
    model: Model
    metrics: tuple[str, ...] = ()
    losses: bool = True
    record: tuple[str, ...] = ("weights", "distance", "norm")
    stop: bool = False  # stop before a round whose messages fit in no cone
    mesh: Mesh | None = None  # the devices over which silos of a serial model are spread

    def algorithm(self, hyper: Mapping[str, Any]) -> Algorithm:
        """The algorithm with its numbers, for the model."""
        return self.make.on(self.model, **hyper)

    @property
    def each(self) -> Each:
        """How silos are run."""
        if not self.model.serial:
            return jax.vmap
        return one_by_one if self.mesh is None else spread(self.mesh)


class Held(NamedTuple):
    """Rows that are held out: to measure on, and to choose by."""

    test: Block
    validation: Block


class Scores(NamedTuple):
    """Training loss and metrics of the evaluated silos' personal models: [k]; k = 1 or n.

    `validation` has the metrics on validation rows, where there are any.
    """

    loss: jax.Array
    metrics: Mapping[str, jax.Array]
    validation: Mapping[str, jax.Array]


class Entry(NamedTuple):
    """What is kept of one round."""

    record: Record
    scores: Scores


class Trace(NamedTuple):
    """A run: the final state, its entries [R, ...] and, of a whole run, the scores before round 1."""

    state: State
    entries: Entry
    before: Scores | None
    done: jax.Array  # how many rounds were run
    stopped: jax.Array


def numbers(hyper: Mapping[str, Any], dtype=None) -> dict[str, jax.Array]:
    """Hyper-parameters as arrays: the user an integer, all else in the precision of the parameters."""
    precision = jnp.result_type(float) if dtype is None else dtype
    return {k: jnp.asarray(v, jnp.int32 if k == "user" else precision) for k, v in hyper.items()}


def observer(setup: Setup, user: jax.Array | None):
    """What the simulator looks at in every round, being allowed to see the messages: norms, distances, the cone."""

    def observe(message: Tree, ctx: Ctx) -> dict[str, jax.Array]:
        x = message.get("x", message)
        seen = {}
        if "norm" in setup.record:
            seen["norm"] = Geometry.from_messages(x).norm()
        if "distance" in setup.record:
            seen["distance"] = distance_from(x, user, present(ctx))
        if "cone" in setup.record or setup.stop:
            fit = cone(Geometry.from_messages(x), ctx.active)
            seen |= {"cone": fit.margin, "fits": fit.fits}
        return seen

    return observe


def distance_from(x: Tree, user: jax.Array | None, here: jax.Array) -> jax.Array:
    """Relative distances [n] from the user's message, or from the mean of those who are there; 0 for the absent."""
    if user is not None:
        distance = relative_distance(Geometry.from_messages(x), user)
        return jnp.where(here & here[user], distance, 0)
    share = here / jnp.maximum(here.sum(), 1)
    extended = jax.tree.map(lambda a: jnp.concatenate([a, jnp.tensordot(share.astype(a.dtype), a, 1)[None]]), x)
    distance = relative_distance(Geometry.from_messages(extended), len(here))[:-1]
    return jnp.where(here, distance, 0)


def evaluate(setup: Setup, algorithm: Algorithm, state: State, train: Block, test: Block | Held, user) -> Scores:
    """Score the user's personal model, or everybody's, on their own rows."""

    def measured(params, block, i) -> dict[str, jax.Array]:
        place = 0 if is_of_one(block) else i
        rows = everything(jax.tree.map(lambda a: a[place], block))
        scores = setup.model.apply(params, rows.X) if setup.metrics else jnp.zeros(())
        return {name: METRICS[name](scores, rows.y, rows.live) for name in setup.metrics}

    def one(i):
        params = algorithm.personal(state, train, i)
        own = jax.tree.map(lambda a: a[i], train)
        loss = setup.model.loss(params, everything(own)) if setup.losses else jnp.zeros(())
        if isinstance(test, Held):
            return Scores(loss, measured(params, test.test, i), measured(params, test.validation, i))
        return Scores(loss, measured(params, test, i), {})

    who = jnp.arange(train.id.shape[0]) if user is None else jnp.asarray(user)[None]
    return setup.each(one, (0,))(who)


def is_of_one(block: Block) -> bool:
    """Whether rows are those of a single silo: the one that is measured."""
    return block.id.shape[0] == 1


def one_round(setup: Setup, algorithm: Algorithm, state: State, train, test, key, active, user):
    """One round and what is kept of it; the state before it, if the stop rule says so."""
    how = {"each": setup.each} if setup.model.serial else {}  # silos side by side are what `update` does by itself
    new, record = algorithm.update(state, train, key, active, observer(setup, user), **how)
    go_on = jnp.bool_(True)
    if setup.stop:
        go_on = record.observed["fits"]
        new = jax.tree.map(lambda a, b: jnp.where(go_on, a, b), new, state)
    if "weights" not in setup.record:
        record = record._replace(weights=None)
    return new, Entry(record, score(setup, algorithm, new, train, test, user)), go_on


def score(setup: Setup, algorithm: Algorithm, state: State, train: Block, test: Block | Held, user) -> Scores:
    """The scores of a state, if any were asked for."""
    if not setup.metrics and not setup.losses:
        return Scores(jnp.zeros(0), {}, {})
    if setup.mesh is not None:
        return evaluate_shares(setup.mesh, setup, algorithm, state, train, test, user)
    return evaluate(setup, algorithm, state, train, test, user)


def evaluate_shares(
    mesh: Mesh, setup: Setup, algorithm: Algorithm, state: State, train: Block, test: Block | Held, user
) -> Scores:
    """`evaluate` where silos are spread over devices: each scores its own, so that no row is moved."""
    alone = setup._replace(mesh=None)

    def of_share(state, train, test, user):
        if user is None:
            return evaluate(alone, algorithm, state, train, test, None)
        place = user - jax.lax.axis_index(SILO) * train.id.shape[0]
        here = (place >= 0) & (place < train.id.shape[0])
        score_it = lambda: evaluate(alone, algorithm, state, train, test, jnp.where(here, place, 0))  # noqa: E731
        nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(score_it))
        return jax.lax.psum(jax.lax.cond(here, score_it, lambda: nothing), SILO)

    silo, same = PartitionSpec(SILO), PartitionSpec()
    inbox = specs_of(algorithm.mixer.axis)
    held = State(inbox, silo, same, same)  # type: ignore[arg-type]
    out = silo if user is None else same
    rows = same if is_of_one(test.test if isinstance(test, Held) else test) else silo
    return on_shares(mesh, of_share, (held, silo, rows, same), out)(state, train, test, user)


def score_of(setup: Setup, hyper, state: State, train: Block, test: Block | Held, user) -> Scores:
    """The scores of a state outside the loop."""
    return score(setup, setup.algorithm(hyper), state, train, test, user)


def advance(setup: Setup, length: int, hyper, key, train, test, user, active, state: State, count) -> Trace:
    """Run `count` rounds (at most `length`) from a state, in one loop whose length is no part of the program.

    user: whom to evaluate and to measure distances from (None: everybody, and the mean); active: [length, n].
    Because the body is the same for every count, a run in chunks has the bits of a run at once.
    """
    algorithm = setup.algorithm(hyper)

    def body(carry):
        state, k, kept, _ = carry
        new, entry, go_on = one_round(setup, algorithm, state, train, test, key, active[k], user)
        kept = jax.tree.map(lambda rows, row: rows.at[k].set(row), kept, entry)
        return new, k + go_on.astype(jnp.int32), kept, ~go_on

    blank = jax.eval_shape(lambda: one_round(setup, algorithm, state, train, test, key, active[0], user)[1])
    kept = jax.tree.map(lambda s: jnp.zeros((length, *s.shape), s.dtype), blank)
    start = (state, jnp.int32(0), kept, jnp.bool_(False))
    state, done, kept, stopped = jax.lax.while_loop(lambda c: (c[1] < count) & ~c[3], body, start)
    return Trace(state, kept, None, done, stopped)


def start(setup: Setup, hyper, params: Tree, train: Block) -> State:
    """The state before round 1."""
    return setup.algorithm(hyper).init(params, train)


def rollout(setup: Setup, rounds: int, hyper, key, params, train, test, user=None, active=None) -> Trace:
    """A whole run as one pure function: `vmap` it over keys, numbers, users or data."""
    train, test = jax.tree.map(jnp.asarray, (train, test))
    active = jnp.ones((rounds, train.id.shape[0]), bool) if active is None else jnp.asarray(active)
    state = start(setup, hyper, params, train)
    before = score_of(setup, hyper, state, train, test, user)
    return advance(setup, rounds, hyper, key, train, test, user, active, state, rounds)._replace(before=before)


class Traffic(NamedTuple):
    """Bytes of a round, for a silo that takes part in it; known from shapes alone."""

    up: int
    down: int
    reserved: int  # the part of `down` that only a listener receives
    listens: jax.Array | np.ndarray  # [n] who sends nothing, and receives what is reserved

    def by_silo(self) -> tuple[np.ndarray, np.ndarray]:
        """Bytes sent and received, silo by silo [n]."""
        listens, up, down, reserved = np.asarray(self.listens), *map(int, self[:3])
        return np.where(listens, 0, up), np.where(listens, down, down - reserved)


def traffic(setup: Setup, hyper, state: State, train: Block) -> Traffic:
    """What a round of this run costs."""
    algorithm, n = setup.algorithm(hyper), train.id.shape[0]
    nobody = jnp.zeros(n, bool)
    if not algorithm.mixer.sends:
        return Traffic(0, 0, 0, nobody)
    inbox, private, own = silo_view(algorithm.mixer, state, train, 0)
    message = blank_message(algorithm.client, inbox.shared, private, own)
    up = byte_size(message) if algorithm.client.wire is None else algorithm.client.wire(message)
    if algorithm.mixer.listener is None:
        return Traffic(up, byte_size(inbox), 0, nobody)
    user, parts = algorithm.mixer.listener
    reserved = sum(byte_size(inbox.shared[name]) for name in parts)
    return Traffic(up, byte_size(inbox), reserved, jnp.arange(n) == user)


def expected_traffic(setup: Setup, hyper: Mapping[str, Any], params: Tree, train: Block) -> Traffic:
    """The traffic of a run that has not begun, found without computing anything; nobody is marked as listening."""
    leaves, structure = jax.tree.flatten((dict(hyper), params, train))
    shapes = tuple(jax.ShapeDtypeStruct(np.shape(a), jnp.result_type(a)) for a in leaves)
    return _traffic_of_shapes(Setup(setup.make, setup.model), structure, shapes)


@functools.lru_cache(maxsize=128)
def _traffic_of_shapes(setup: Setup, structure: Any, shapes: tuple[jax.ShapeDtypeStruct, ...]) -> Traffic:
    """Traced once: the next user's run, and the next split's, has the same shapes."""
    found: list[Traffic] = []

    def look(hyper, params: Tree, train: Block) -> None:
        found.append(traffic(setup, hyper, start(setup, hyper, params, train), train))

    given = jax.tree.unflatten(structure, shapes)
    jax.eval_shape(look, *given)
    return found[0]._replace(listens=np.zeros(given[2].id.shape[0], bool))


def personal_models(setup: Setup, hyper, state: State, train: Block) -> Tree:
    """Everybody's personal model, stacked."""
    personal = setup.algorithm(hyper).personal
    each = one_by_one if setup.model.serial else jax.vmap
    return each(lambda i: personal(state, train, i), (0,))(jnp.arange(train.id.shape[0]))
