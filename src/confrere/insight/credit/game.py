"""The game: what the user loses, row by row, when it learns with one coalition of the other silos or another.

    loss(S) [t] = loss of every judging row of the user under the model made from the rows of the user and of S

The user pays and judges, and so is in every coalition, but is no player: the empty coalition is the user by itself, and
a coalition without the user would be worth nothing, there being nobody to train for and no rows to judge by. The
judging rows are the user's own and take no part in training: its test rows, else its validation rows, else one training
row in `every`, which is set apart.

Two ways to the model of a coalition. "optimum": the optimum of the pooled mean loss + l2/2 w'A0w of a linear model (as
in `selection.influence`), so that the value is of the rows, whatever algorithm trains. A recipe: a run of it in which
the others are absent in every round, from the same key, so that the value is of what was sent in that run. Either way
all coalitions run through one compiled program.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import QUICK_COMPILATION, Rows, losses, minimise
from confrere.core import Block, Tree
from confrere.data.silo import PARTS
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.models.model import row_losses
from confrere.plural import plural
from confrere.program import Setup, numbers, rollout
from confrere.recipe import Recipe
from confrere.selection.influence import judging_rows
from confrere.selection.linear import linear_rows
from confrere.simulation.inputs import as_key, check_prior, initial_params, with_places
from confrere.simulation.rows import on_devices
from confrere.study.units import in_units, units_of

Progress = Callable[[int, int], None]
CHUNK = 256  # coalitions between two signs of progress
SIDE_BY_SIDE = 32  # coalitions that are run together: more would not fit the cache


class Game(NamedTuple):
    """Who plays, and what the user's judging rows lose [C, t] with coalitions [C, k] of the players."""

    silos: Silos
    user: int
    players: tuple[int, ...]  # their places among the silos
    losses: Callable[[np.ndarray], np.ndarray]
    judged: str  # the judging rows, in words
    made: str  # how the model of a coalition is made, in words


def game_of(
    silos: Silos, user: int, model: Model, recipe: Recipe | None, rounds: int, l2: float, every: int, seed: int
) -> Game:
    """The game on silos as the user may use them."""
    silos, X, y, judged = set_apart(silos, user, every, seed)
    players = tuple(i for i in range(len(silos)) if i != user)
    if recipe is None:
        found, made = optima(silos, model, l2, X, y), f"the optimum of the pooled rows (l2 = {l2:g})"
    else:
        found = runs(silos, user, model, recipe, rounds, X, y, seed)
        made = f"a run of {recipe.name}, {rounds} rounds"

    def losses_of(coalitions: np.ndarray) -> np.ndarray:
        member = np.ones((len(coalitions), len(silos)), bool)
        member[:, players] = coalitions
        return found(member)

    return Game(silos, user, players, losses_of, judged, made)


def set_apart(silos: Silos, user: int, every: int, seed: int) -> tuple[Silos, np.ndarray, np.ndarray, str]:
    """The silos to train on, the user's rows that judge, and which they are."""
    name = silos.names[user]
    for part in ("test", "validation"):
        X, y = silos[user].rows(part)
        if len(y):
            return silos, X, y, f"the {plural(len(y), f'{part} row')} of {name}"
    judges = judging_rows(silos, user, every, seed, silos.sizes("train")[user])
    rows = np.flatnonzero(silos[user].part == PARTS.index("train"))[judges]
    parts = [s.part.copy() for s in silos.silos]
    parts[user][rows] = PARTS.index("validation")
    silos = silos.with_parts(parts)
    X, y = silos[user].rows("validation")
    return silos, X, y, f"{plural(len(y), 'row')} of {name}, set apart, one in {every}"


def optima(silos: Silos, model: Model, l2: float, X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Losses of the judging rows under the pooled optimum of each coalition, in double precision."""

    def losses_of(member: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            data = linear_rows(silos, model, l2, "shapley (without a recipe)")
            dtype, length = data.rows.X.dtype, max(len(silo.y) for silo in silos.silos)  # the same for every user
            columns = np.concatenate([X, np.ones((len(y), 1))], axis=1).astype(dtype)
            labels, weight = np.asarray(y, data.rows.y.dtype), np.ones(len(y), dtype)
            test = Rows(*(padded(a, length) for a in (columns, labels, weight)))
            found = _optima(data.rows, test, jnp.asarray(data.penalty), jnp.asarray(member), model.task)
            return np.asarray(found)[:, : len(y)]

    return losses_of


def padded(values: np.ndarray, length: int) -> jax.Array:
    """Rows with zeros after them, so that users with different numbers of rows share one program."""
    return jnp.asarray(np.pad(values, [(0, length - len(values))] + [(0, 0)] * (values.ndim - 1)))


@functools.partial(jax.jit, static_argnames="task", compiler_options=QUICK_COMPILATION)
def _optima(rows: Rows, test: Rows, penalty: jax.Array, member: jax.Array, task: str) -> jax.Array:
    flat = Rows(*(a.reshape(-1, *a.shape[2:]) for a in rows))

    def one(here: jax.Array) -> jax.Array:
        weight = (rows.weight * here[:, None]).reshape(-1)
        start = jnp.zeros_like(penalty)
        theta = minimise(flat._replace(weight=weight), task, jnp.diag(penalty * weight.sum()), start, start)
        return losses(test, test.X @ theta.reshape(test.X.shape[1], -1), task)

    return jax.lax.map(one, member, batch_size=min(SIDE_BY_SIDE, member.shape[0]))


def user_of(recipe: Recipe, silos: Silos) -> str | None:
    """The name of the user for whom a recipe makes its model; None: it makes one for all."""
    return silos.names[silos.index(recipe.hyper["user"])] if "user" in recipe.hyper else None


def check_user_of(what: str, whose: str | None, user: str) -> None:
    """Refuse what was made for another user."""
    if whose not in (None, user):
        raise ValueError(
            f"the {what} was made for {whose!r}, but credit is asked for by {user!r}: make one for {user!r}"
        )


def runs(
    silos: Silos, user: int, model: Model, recipe: Recipe, rounds: int, X: np.ndarray, y: np.ndarray, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Losses of the judging rows under the user's personal model after a run with each coalition alone."""
    check_user_of("recipe", user_of(recipe, silos), silos.names[user])
    units = units_of(silos, model)
    train = on_devices(in_units(silos, units).block("train"), model)
    recipe, key = with_places(recipe, silos), as_key(seed)
    setup = Setup(recipe.bound, model, (), False, ())
    check_prior(recipe, setup.algorithm(recipe.hyper).mixer, silos.names)
    params = initial_params(model, silos, key)
    hyper = numbers(recipe.hyper, jax.tree.leaves(params)[0].dtype)
    labels = np.asarray(y, np.int32) if model.task == "classification" else units.standard(np.asarray(y, float))
    given = (hyper, key, params, train, np.int32(user), jnp.asarray(X, train.X.dtype), jnp.asarray(labels))

    def losses_of(member: np.ndarray) -> np.ndarray:
        found = np.asarray(_runs(setup, rounds, *given, member), float)
        return found * units.spread**2 if model.task == "regression" else found

    return losses_of


@functools.partial(jax.jit, static_argnums=(0, 1))
def _runs(
    setup: Setup, rounds: int, hyper: Tree, key: jax.Array, params: Tree, train: Block, user: jax.Array, X: jax.Array,
    y: jax.Array, member: jax.Array,
) -> jax.Array:  # fmt: skip
    def one(here: jax.Array) -> jax.Array:
        active = jnp.broadcast_to(here, (rounds, here.shape[0]))
        state = rollout(setup, rounds, hyper, key, params, train, train, user, active).state
        own = setup.algorithm(hyper).personal(state, train, user)
        return row_losses(setup.model.task, setup.model.apply(own, X), y)

    together = 1 if setup.model.serial else min(SIDE_BY_SIDE, member.shape[0])
    return jax.lax.map(one, member, batch_size=together)


def losses_by_chunks(game: Game, coalitions: np.ndarray, progress: Progress | None) -> np.ndarray:
    """The losses of many coalitions [C, t], in chunks of one length, each coalition tried once."""
    different, back = np.unique(coalitions, axis=0, return_inverse=True)
    length = min(CHUNK, len(different))
    found = []
    for start in range(0, len(different), length):
        chunk = different[start : start + length]
        missing = length - len(chunk)
        padded = np.concatenate([chunk, np.repeat(chunk[-1:], missing, axis=0)])
        found.append(game.losses(padded)[: len(chunk)])
        if progress is not None:
            progress(min(start + length, len(different)), len(different))
    return np.concatenate(found)[back.reshape(-1)]
