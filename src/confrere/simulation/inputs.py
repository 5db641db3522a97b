"""What a run is asked: each part is checked at the door and put into the form that the loop wants."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Mixer, Tree
from confrere.data.silos import Silos
from confrere.history import History
from confrere.models import Model
from confrere.prior import resolved
from confrere.program import Setup
from confrere.recipe import Recipe


def check_types(model: Model, silos: Silos) -> None:
    """A model and silos must be what they are called."""
    if not isinstance(model, Model):
        raise TypeError(f"a model is what e.g. confrere.models.logistic() returns, not {type(model).__name__}")
    if not isinstance(silos, Silos):
        raise TypeError(f"silos are what e.g. Silos.from_arrays(...) returns, not {type(silos).__name__}")


def check_rounds(rounds: int) -> int:
    """A whole number of rounds, none allowed."""
    if not isinstance(rounds, int | np.integer) or isinstance(rounds, bool) or rounds < 0:
        raise ValueError(f"rounds must be a whole number, 0 or more, not {rounds!r}")
    return int(rounds)


def check_words(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse words that mean nothing here."""
    if isinstance(given, str):
        raise ValueError(f"{what}: give a list of names, not {given!r}; choose out of {', '.join(known)}")
    unknown = [word for word in given if word not in known]
    if unknown:
        raise ValueError(f"{what}: {', '.join(map(str, unknown))} is not known; choose out of {', '.join(known)}")


def warn_of_length(recipe: Recipe, rounds: int) -> None:
    """A recipe that was told how long the run is should be run for as long."""
    planned = recipe.static.get("rounds")
    if planned is not None and planned != rounds:
        warnings.warn(
            f"{recipe.name} was made for {planned} rounds, and its schedule ends there, but the run has {rounds}: say "
            f"rounds={rounds} in both places",
            stacklevel=3,
        )


def as_key(seed: int | jax.Array) -> jax.Array:
    """A typed JAX key from an integer, a typed key or an old-style key."""
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        return seed
    if isinstance(seed, jax.Array | np.ndarray) and seed.shape == (2,):
        return jax.random.wrap_key_data(jnp.asarray(seed, jnp.uint32))
    if not isinstance(seed, int | np.integer) and not (isinstance(seed, jax.Array) and seed.ndim == 0):
        raise TypeError(f"seed must be a whole number or a JAX key, not {seed!r}")
    if not -(2**63) <= int(seed) < 2**63:
        raise ValueError(f"seed must be a whole number of at most 64 bits, not {int(seed)}")
    return jax.random.key(int(seed))


@functools.lru_cache
def params_spec(model: Model, inputs: int, outputs: int) -> Tree:
    """The shapes of a model's parameters."""
    return jax.eval_shape(lambda: model.init(jax.random.key(0), inputs, outputs))


def outputs_of(model: Model, silos: Silos) -> int:
    """How many outputs a model has on these silos."""
    return silos.classes() if model.task == "classification" else 1


def initial_params(model: Model, silos: Silos, key: jax.Array) -> Tree:
    """The model before round 1; the key of round 0, which no round uses."""
    return model.init(jax.random.fold_in(key, 0), len(silos.feature_names), outputs_of(model, silos))


def check_params(params: Tree, model: Model, silos: Silos) -> Tree:
    """The model to start from, if it is one for these silos."""
    wanted = params_spec(model, len(silos.feature_names), outputs_of(model, silos))
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)  # noqa: E731
    if jax.tree.structure(params) != jax.tree.structure(wanted) or shapes(params) != shapes(wanted):
        raise ValueError(f"params must have the shapes {shapes(wanted)}, not {shapes(params)}")
    if not all(np.isfinite(a).all() for a in jax.tree.leaves(params)):
        raise ValueError("params must be finite, but some are not")
    return jax.tree.map(jnp.asarray, params)


def with_places(recipe: Recipe, silos: Silos) -> Recipe:
    """The recipe with the user's name turned into its place, and a prior into one number per silo."""
    if not isinstance(recipe, Recipe):
        raise TypeError(f"an algorithm is what e.g. confrere.fedavg(lr=0.1) returns, not {type(recipe).__name__}")
    several = [name for name, value in recipe.hyper.items() if name != "prior" and np.ndim(value) > 0]
    if several:
        raise ValueError(f"{several[0]} must be a single number here; for several at once vmap confrere.rollout")
    if "user" in recipe.hyper:
        recipe = recipe.replace(user=silos.index(recipe.hyper["user"]))
    if "prior" not in recipe.hyper:
        return recipe
    return recipe.with_prior(resolved(recipe.hyper["prior"], silos.names, recipe.hyper.get("user")))


def check_prior(recipe: Recipe, mixer: Mixer, names: Sequence[str]) -> None:
    """Refuse a prior between keeping and leaving out, where an algorithm weighs silos by itself."""
    if mixer.graded or "prior" not in recipe.hyper:
        return
    prior = recipe.hyper["prior"]
    between = np.flatnonzero(~np.isin(prior, (0, 1)))
    if len(between):
        raise ValueError(
            f"{recipe.name} weighs silos by what they say: its prior can keep a silo (1) or leave it out (0), but silo "
            f"{names[between[0]]!r} has {prior[between[0]]:g}"
        )


def availability(active: Any, rounds: int, n: int) -> np.ndarray:
    """Who takes part when, [rounds, n] booleans."""
    if active is None:
        return np.ones((rounds, n), bool)
    trace = np.asarray(active)
    if trace.shape != (rounds, n):
        raise ValueError(f"active must have the shape (rounds, silos) = ({rounds}, {n}), not {trace.shape}")
    return trace > 0


def check_resume(
    resume: History, recipe: Recipe, silos: Silos, user: int | None, setup: Setup, params: Tree, rounds: int
) -> None:
    """A run can only go on as what it was, and only forward."""
    shapes = lambda tree, skip: jax.tree.map(lambda a: jnp.shape(a)[skip:], tree)  # noqa: E731
    kept = {name for name in ("weights", "distance", "norm", "cone") if getattr(resume, name) is not None}
    for what, was, now in (
        ("algorithm", resume.algorithm, recipe.name),
        ("silos", resume.names, silos.names),
        ("numbers of training rows", resume.sizes, silos.sizes("train")),
        ("settings", resume.static, dict(recipe.static)),
        ("user", resume.user, user),
        ("metrics", sorted(resume.metrics), sorted(setup.metrics)),
        ("records", sorted(kept), sorted(set(setup.record) | ({"cone"} if setup.stop else set()))),
        ("model", shapes(resume.models, 1), shapes(params, 0)),
    ):
        if was != now:
            raise ValueError(f"the run to resume had other {what}: {was}, not {now}")
    if rounds < resume.rounds:
        raise ValueError(f"the run to resume has {resume.rounds} rounds already; ask for at least as many in all")
