"""The simulator: one algorithm on one machine, all rounds in one compiled program.

`jax.vmap` over the silos, one compiled loop over the rounds, evaluation inside it. The loop runs in chunks of a second
at most (but for a single round that takes longer), so that a long run shows progress; how it was cut into chunks does
not change a bit.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.budget import bytes_of, rounds_within, why_stopped
from confrere.core import Block, Tree
from confrere.data.silo import PartName
from confrere.data.silos import Silos
from confrere.dilution import Limit, dilution
from confrere.each import mesh_for
from confrere.history import History, recorded
from confrere.models import Model, metrics_of
from confrere.program import Held, Setup, numbers, personal_models, start, traffic
from confrere.recipe import Recipe
from confrere.simulation import rows
from confrere.simulation.inputs import (
    as_key,
    availability,
    check_params,
    check_prior,
    check_resume,
    check_rounds,
    check_types,
    check_words,
    initial_params,
    warn_of_length,
    with_places,
)  # fmt: skip
from confrere.simulation.loop import run_chunks, run_debug

RECORDS = ("weights", "distance", "norm", "cone")

# One compiled program per setup and shapes; other numbers, keys and rows run through the same one.
_start = jax.jit(start, static_argnums=0)
_traffic = jax.jit(traffic, static_argnums=0)
_personal_models = jax.jit(personal_models, static_argnums=0)


def simulate(
    algorithm: Recipe,
    model: Model,
    silos: Silos,
    rounds: int,
    seed: int | jax.Array = 0,
    *,
    user: int | str | None = None,
    active: Any = None,
    params: Tree = None,
    metrics: Sequence[str] | None = None,
    record: Sequence[str] = ("weights", "distance", "norm"),
    stop: str | None = None,
    min_dilution: Limit = None,
    budget: Any = None,
    resume: History | None = None,
    progress: Callable[[int, int], None] | None = None,
    debug: bool = False,
) -> History:
    """Run an algorithm on silos for some rounds.

    Args:
        seed: an integer or a JAX key.
        user: whom to evaluate and to measure distances from; by default the algorithm's user if it has one, else
            everybody, and the mean message.
        active: who takes part when, [rounds, n]; by default everybody always.
        params: the model to start from; by default drawn from the seed.
        metrics: names out of accuracy, balanced_accuracy, log_loss, auroc, brier, rmse; by default those of the model's
            task; empty: no evaluation. Measured before round 1 and after every round, on test rows or, if there are
            none, on training rows; and on validation rows, if there are any.
        record: what to keep of every round, out of weights, distance, norm, cone.
        stop: "cone" stops before the first round in which the messages fit in no cone.
        min_dilution: silos whose contribution could be mixed with less of others' than this withdraw before round 1
            (see `insight.dilution`); one number for all, or by name. `history.withdrawn` tells who did, and why.
        budget: bytes that all silos together may send and receive, the rounds of `resume` included: a number, or words
            such as "2MB". The run stops before the first round that would exceed it.
        resume: a history to go on from, up to `rounds` in all, with the bits of a run at once; its key goes on too, so
            `seed` and `params` say nothing then. The algorithm's numbers may change.
        progress: called with (rounds done, rounds) after every chunk of a second or less.
        debug: without compilation, naming silo, round and stage when something is not finite.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2, 40, 3))
    >>> silos = cf.Silos.from_arrays([(x, x[:, 0] > 0) for x in X], names=["a", "b"])
    >>> history = cf.simulate(cf.weight_erosion(user="a", lr=0.5), cf.models.logistic(), silos, rounds=5)
    >>> history.weights.shape, history.metrics["accuracy"].shape, history.bytes_up[0].tolist()
    ((5, 1, 2), (6,), [32, 32])
    """
    rounds = check_rounds(rounds)
    check_types(model, silos)
    recipe = with_places(algorithm, silos)
    warn_of_length(recipe, rounds)
    user = recipe.hyper.get("user") if user is None else silos.index(user)
    recipe, withdrawn = after_withdrawal(recipe, silos, user, min_dilution, active)
    setup, train, test, part = prepare(recipe, model, silos, user, metrics, record, stop)
    key = resume.key if resume is not None else as_key(seed)
    params = initial_params(model, silos, key) if params is None else check_params(params, model, silos)
    hyper = numbers(recipe.hyper, jax.tree.leaves(params)[0].dtype)
    if resume is not None:
        check_resume(resume, recipe, silos, user, setup, params, rounds)
        state, first = resume.state, resume.rounds
    else:
        state, first = _start(setup, hyper, params, train), 0
    run = run_debug if debug else run_chunks
    up, down = _traffic(setup, hyper, state, train).by_silo()
    asked, limit = availability(active, rounds, len(silos))[first:], bytes_of(budget)
    who = affordable(listened_to(asked, recipe), silos, up + down, None if limit is None else limit - used_by(resume))
    place = None if user is None else jnp.int32(user)
    outcome = run(setup, (hyper, key, train, test, place), who, state, silos.names, progress)
    done = len(outcome.entries.record.mass)
    sending = senders(who[:done], silos)
    models = lambda: jax.tree.map(np.asarray, _personal_models(setup, hyper, outcome.state, train))  # noqa: E731
    history = History(
        algorithm=recipe.name, names=silos.names, user=user, static=dict(recipe.static),
        hyper=dict(recipe.hyper), rounds=done, part=part, sizes=silos.sizes("train"),
        bytes_up=sending * up, bytes_down=sending * down, **ending(outcome.stopped, first + done, rounds, limit),
        make_models=models, state=outcome.state, key=key, per_silo=setup.algorithm(recipe.hyper).mixer.per_silo,
        withdrawn=withdrawn,
        **recorded(outcome, train, test if isinstance(test, Held) else Held(test, test), everybody=user is None),
    )  # fmt: skip
    return history if resume is None else resume.then(history)


def listened_to(who: np.ndarray, recipe: Recipe) -> np.ndarray:
    """Who takes part, without those whom a prior leaves out."""
    return who & (recipe.hyper["prior"] > 0) if "prior" in recipe.hyper else who


def senders(who: np.ndarray, silos: Silos) -> np.ndarray:
    """Who sends and receives: those who take part and have rows."""
    return who & (np.array(silos.sizes("train")) > 0)


def affordable(who: np.ndarray, silos: Silos, each: np.ndarray, left: int | None) -> np.ndarray:
    """The rounds that fit in the bytes that are left, where `each` is what a round costs a silo."""
    return who if left is None else who[: rounds_within(left, (senders(who, silos) * each).sum(axis=1))]


def after_withdrawal(
    recipe: Recipe, silos: Silos, user: int | None, limit: Limit, active: Any
) -> tuple[Recipe, dict[str, str]]:
    """The recipe with a prior of 0 for silos that withdraw, as they would be diluted too little; and why they do."""
    if limit is None:
        return recipe, {}
    found = dilution(silos, recipe, user=user, min_dilution=limit, active=active)
    if not found.prior.any():
        first, why = next(iter(found.withdrawn.items()))
        raise ValueError(f"min_dilution: nobody is left to take part; silo {first!r} leaves because {why}")
    return (recipe.with_prior(found.prior) if found.withdrawn else recipe), dict(found.withdrawn)


def used_by(resume: History | None) -> int:
    """The bytes of the rounds before."""
    return 0 if resume is None else int(resume.bytes_up.sum() + resume.bytes_down.sum())


def ending(by_rule: bool, done: int, asked: int, limit: int | None) -> dict[str, Any]:
    """Whether a run was stopped before the rounds asked for, and by what."""
    if by_rule:
        said = f"stopped before round {done + 1} of {asked}: the messages fit in no cone"
        return {"stopped": True, "stopped_by": said}
    if limit is not None and done < asked:
        return {"stopped": True, "stopped_by": why_stopped(limit, done, asked)}
    return {"stopped": False, "stopped_by": ""}


def prepare(
    recipe: Recipe, model: Model, silos: Silos, user: int | None,
    metrics: Sequence[str] | None, record: Sequence[str], stop: str | None,
) -> tuple[Setup, Block, Block | Held, PartName]:  # fmt: skip
    """What is static about the run, its training rows, the rows it is measured on, and their name."""
    chosen = metrics_of(model.task) if metrics is None else metrics
    check_words(f"metrics of a {model.task}", chosen, metrics_of(model.task))
    check_words("record", record, RECORDS)
    if stop not in (None, "cone"):
        raise ValueError(f"stop must be None or 'cone', not {stop!r}")
    if model.task == "classification":
        silos.classes()
    part = "test" if sum(silos.sizes("test")) > 0 else "train"
    mixer = recipe.bound.on(model, **recipe.hyper).mixer
    check_prior(recipe, mixer, silos.names)
    listens = mixer.listener is not None  # who does needs no rows of its own
    if user is not None and silos.sizes("train")[user] == 0 and not listens:
        raise ValueError(f"the user, silo {silos.names[user]!r}, has no training rows")
    if user is not None and silos.sizes(part)[user] == 0:
        part = "train"
    train = silos.block("train")
    mesh = mesh_for(len(train.id), train.X.nbytes, rows.SHARD_BYTES) if model.serial else None
    setup = Setup(recipe.bound, model, tuple(chosen), bool(chosen), tuple(sorted(record)), stop == "cone", mesh)
    return setup, rows.on_devices(train, model), rows.held_out(silos, part, model, user), part
