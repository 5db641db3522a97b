"""Replicas of an answer's model: everything done again with rows and silos drawn anew, in one compiled program.

For evidence-weighted borrowing they are made from the messages that were sent (`confrere.borrowing.replicas`). Any
other algorithm is run again: every silo's rows are drawn with replacement, and a silo that is drawn k times counts k
times (a prior on silos; where weights cannot be graded, it counts or not). The user always takes part.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows, scores_of, to_params
from confrere.borrowing.replicas import AT_ONCE, Draws, replicas
from confrere.clients.summaries import known_to
from confrere.core import Block, Tree, silo_view
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.program import Setup, numbers, rollout
from confrere.recipe import Recipe
from confrere.simulation.inputs import initial_params, with_places
from confrere.simulation.rows import on_devices


class Replicas(NamedTuple):
    """Members of the model, each stacked over replicas [B, ...], and how often each of the user's rows was drawn."""

    members: tuple[Tree, ...]
    counts: np.ndarray  # [B, m]

    def moved_by(self, log_odds: float) -> "Replicas":
        """The same with another intercept, of models of two classes."""
        if log_odds == 0:
            return self
        shift = np.array([-log_odds / 2, log_odds / 2], np.float32)
        return self._replace(members=tuple({**member, "b": member["b"] + shift} for member in self.members))


class Run(NamedTuple):
    """One run behind a model."""

    recipe: Recipe
    rounds: int


def row_counts(rows: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of so many rows was drawn [B, rows]; rows are drawn with replacement."""
    if rows == 0:
        return np.zeros((count, 0), np.int32)
    return rng.multinomial(rows, np.full(rows, 1 / rows), size=count).astype(np.int32)


def drawn_silos(places: int, who: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Whose message stands in each place [B, places]: for those in `who`, drawn with replacement among them."""
    found = np.tile(np.arange(places, dtype=np.int32), (count, 1))
    if len(who):
        found[:, who] = rng.choice(who, size=(count, len(who)))
    return found


def by_messages(
    setup: Setup, rounds: int, user: int, params: Tree, block: Block, beside: Rows | None, weights: np.ndarray,
    believed: np.ndarray, count: int, seed: int,
) -> Replicas:  # fmt: skip
    """Replicas of evidence-weighted borrowing, from the messages that were sent."""
    rng = np.random.default_rng(seed)
    own = row_counts(int(np.asarray(block.size)[user]), count, rng)
    rows = np.zeros((count, block.y.shape[1]), np.float32)
    rows[:, : own.shape[1]] = own
    places, D = len(believed), (params["w"].shape[0] + 1) * scores_of(params, setup.model)
    silos = drawn_silos(places, np.flatnonzero(believed), count, rng)
    noise = rng.normal(size=(count, places, D)).astype(np.float32)
    draws = Draws(*map(jnp.asarray, (rows, silos, noise)))
    thetas = _by_messages(setup, rounds, np.int32(user), params, block, beside, weights, draws)
    return Replicas((jax.device_get(jax.vmap(lambda t: to_params(t, params, setup.model))(thetas)),), own)


@functools.partial(jax.jit, static_argnums=(0, 1), compiler_options={"xla_backend_optimization_level": 1})
def _by_messages(setup: Setup, rounds: int, user, params, block, beside, weights, draws: Draws) -> jax.Array:
    hyper = {"user": user}
    state = rollout(setup, rounds, hyper, jax.random.key(0), params, block, block, user).state
    inbox, private, own = silo_view(setup.algorithm(hyper).mixer, state, block, user)
    how: dict[str, Any] = dict(setup.make.static)
    known = known_to(setup.model, how["share"], inbox, private, own, how["min_cell"], beside)
    scores = scores_of(private[2], setup.model)
    given = (known.rows, setup.model.task, scores, known.problem, how["candidates"], weights, known.beside)
    thetas = replicas(*given, jax.tree.map(lambda a: a.astype(known.rows.X.dtype) if a.dtype.kind == "f" else a, draws))
    return thetas if known.scale is None else known.scale.raw(thetas)


def by_runs(runs: Sequence[Run], model: Model, silos: Silos, user: int, count: int, seed: int) -> Replicas:
    """Replicas of one or several runs, all on the same draws."""
    rng = np.random.default_rng(seed)
    sizes = silos.sizes("train")
    counts = [row_counts(rows, count, rng) for rows in sizes]
    block = on_devices(silos.block("train"), model)
    which = np.zeros((count, len(sizes), block.y.shape[1]), np.int32)
    for i, drawn in enumerate(counts):
        for b in range(count):
            which[b, i, : sizes[i]] = np.repeat(np.arange(sizes[i]), drawn[b])
    others = np.array([i for i, rows in enumerate(sizes) if i != user and rows])
    times = drawn_silos(len(sizes), others, count, rng)
    prior = np.stack([(times == i).sum(axis=1) for i in range(len(sizes))], axis=1).astype(np.float32)
    prior[:, user] = 1
    members = tuple(run_again(run, model, silos, user, block, which, prior, seed) for run in runs)
    return Replicas(members, counts[user])


def run_again(
    run: Run, model: Model, silos: Silos, user: int, block: Block, which: np.ndarray, prior: np.ndarray, seed: int
) -> Tree:
    """One run on every draw: the user's personal model, stacked over replicas."""
    recipe = with_places(run.recipe, silos)
    key = jax.random.key(seed)
    params = initial_params(model, silos, key)
    hyper = numbers(recipe.hyper, jax.tree.leaves(params)[0].dtype)
    setup = Setup(recipe.bound, model, (), False, ())
    if not setup.algorithm(hyper).mixer.graded:
        prior = (prior > 0).astype(np.float32)
    prior = prior * np.asarray(hyper.pop("prior", 1.0))
    return jax.device_get(_run_again(setup, run.rounds, hyper, key, params, block, np.int32(user), which, prior))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _run_again(setup: Setup, rounds: int, hyper, key, params, block: Block, user, which, prior) -> Tree:
    def one(drawn) -> Tree:
        rows, silos, b = drawn
        take = jax.vmap(lambda a, places: a[places])
        again = Block(take(block.X, rows), take(block.y, rows), block.size, block.id)
        given = {**hyper, "prior": silos.astype(jax.tree.leaves(params)[0].dtype)}
        state = rollout(setup, rounds, given, jax.random.fold_in(key, b), params, again, again, user).state
        return setup.algorithm(given).personal(state, again, user)

    at_once = None if setup.model.serial else AT_ONCE
    return jax.lax.map(one, (which, prior, jnp.arange(len(which))), batch_size=at_once)
