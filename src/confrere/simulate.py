"""The simulator: one algorithm on one machine, all rounds in one compiled program.

`jax.vmap` over the silos, one compiled loop over the rounds, evaluation inside it. The loop runs in chunks of a second
at most (but for a single round that takes longer), so that a long run shows progress; how it was cut into chunks does
not change a bit.
"""

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.budget import bytes_of, rounds_within, why_stopped
from confrere.core import Block, Mixer, State, Tree
from confrere.data.silo import PartName
from confrere.data.silos import Silos
from confrere.debug import checked_update
from confrere.dilution import Limit, dilution
from confrere.each import SILO, mesh_for
from confrere.history import History, Outcome, recorded
from confrere.models import Model, metrics_of
from confrere.prior import resolved
from confrere.program import Entry, Held, Setup, advance, numbers, one_round, personal_models, score_of, start, traffic
from confrere.recipe import Recipe

RECORDS = ("weights", "distance", "norm", "cone")
CHUNK_SECONDS = 1.0
CHUNK_BYTES = 1 << 25  # what the records of one chunk may take
MOST_ROUNDS = 12  # in one chunk, as a power of two
SHARD_BYTES = 1 << 20  # rows that are worth spreading over several devices

Given = tuple[dict[str, jax.Array], jax.Array, Block, Block | Held, jax.Array | None]  # hyper, key, train, test, user

# One compiled program per setup and shapes; other numbers, keys and rows run through the same one.
_start = jax.jit(start, static_argnums=0)
_advance = jax.jit(advance, static_argnums=(0, 1))
_score = jax.jit(score_of, static_argnums=0)
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
    who = availability(active, rounds, len(silos))[first:]
    if "prior" in recipe.hyper:
        who = who & (recipe.hyper["prior"] > 0)
    up, down = _traffic(setup, hyper, state, train).by_silo()
    asked, limit = first + len(who), bytes_of(budget)
    if limit is not None:
        sending = who & (np.array(silos.sizes("train")) > 0)
        who = who[: rounds_within(limit - used_by(resume), (sending * (up + down)).sum(axis=1))]
    place = None if user is None else jnp.int32(user)
    outcome = run(setup, (hyper, key, train, test, place), who, state, silos.names, progress)
    done = len(outcome.entries.record.mass)
    sending = who[:done] & (np.array(silos.sizes("train")) > 0)
    models = lambda: jax.tree.map(np.asarray, _personal_models(setup, hyper, outcome.state, train))  # noqa: E731
    history = History(
        algorithm=recipe.name, names=silos.names, user=user, static=dict(recipe.static),
        hyper=dict(recipe.hyper), rounds=done, part=part, sizes=silos.sizes("train"),
        bytes_up=sending * up, bytes_down=sending * down, **ending(outcome.stopped, first + done, asked, limit),
        make_models=models, state=outcome.state, key=key, per_silo=setup.algorithm(recipe.hyper).mixer.per_silo,
        withdrawn=withdrawn,
        **recorded(outcome, train, test if isinstance(test, Held) else Held(test, test), everybody=user is None),
    )  # fmt: skip
    return history if resume is None else resume.then(history)


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


def warn_of_length(recipe: Recipe, rounds: int) -> None:
    """A recipe that was told how long the run is should be run for as long."""
    planned = recipe.static.get("rounds")
    if planned is not None and planned != rounds:
        warnings.warn(
            f"{recipe.name} was made for {planned} rounds, and its schedule ends there, but the run has {rounds}: say "
            f"rounds={rounds} in both places",
            stacklevel=3,
        )


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


def check_params(params: Tree, model: Model, silos: Silos) -> Tree:
    """The model to start from, if it is one for these silos."""
    wanted = params_spec(model, len(silos.feature_names), outputs_of(model, silos))
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)  # noqa: E731
    if jax.tree.structure(params) != jax.tree.structure(wanted) or shapes(params) != shapes(wanted):
        raise ValueError(f"params must have the shapes {shapes(wanted)}, not {shapes(params)}")
    if not all(np.isfinite(a).all() for a in jax.tree.leaves(params)):
        raise ValueError("params must be finite, but some are not")
    return jax.tree.map(jnp.asarray, params)


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


def prepare(recipe: Recipe, model: Model, silos: Silos, user: int | None, metrics, record, stop):
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
    mesh = mesh_for(len(train.id), train.X.nbytes, SHARD_BYTES) if model.serial else None
    setup = Setup(recipe.bound, model, tuple(chosen), bool(chosen), tuple(sorted(record)), stop == "cone", mesh)
    return setup, on_devices(train, model), held_out(silos, part, model, user), part


def held_out(silos: Silos, part: PartName, model: Model, user: int | None) -> Block | Held:
    """The rows to measure on, and the validation rows where (for the user) there are any; of a user its own alone."""

    def rows(of: PartName) -> Block:
        return in_shares(silos, of, model) if user is None else on_devices(silos.block(of, places=[user]), model)

    sizes = silos.sizes("validation")
    if (sum(sizes) if user is None else sizes[user]) == 0:
        return rows(part)
    return Held(rows(part), rows("validation"))


def in_shares(silos: Silos, part: PartName, model: Model) -> Block:
    """What `on_devices` makes of all silos' rows, made device by device: no block of all of them is kept beside it."""
    numbers_each = max(1, *silos.sizes(part)) * silos[0].X[0].size
    mesh = mesh_for(len(silos), len(silos) * numbers_each * np.dtype(jnp.result_type(float)).itemsize, SHARD_BYTES)
    if mesh is None:
        return on_devices(silos.block(part), model)
    devices = list(mesh.devices.flat)
    shares = np.split(np.arange(len(silos)), len(devices))
    pieces = [
        jax.device_put(with_classes(silos.block(part, places=share.tolist()), model), device)
        for share, device in zip(shares, devices, strict=True)
    ]
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(SILO))
    whole = lambda *a: jax.make_array_from_single_device_arrays((len(silos), *a[0].shape[1:]), spread, list(a))  # noqa: E731
    return jax.tree.map(whole, *pieces)


def with_classes(block: Block, model: Model) -> Block:
    """The rows with class numbers as 32-bit integers, if the labels are classes."""
    return block._replace(y=block.y.astype(np.int32)) if model.task == "classification" else block


def on_devices(block: Block, model: Model) -> Block:
    """The rows where they are worked on: spread over all devices, silo by silo, if that is worth it and comes out even.

    With several devices (on a CPU: those that `jax_num_cpu_devices` asks for before JAX starts) JAX then cuts the whole
    program along the silos. Below a megabyte the devices would wait for one another longer than they work.
    """
    block = with_classes(block, model)
    mesh = mesh_for(len(block.id), block.X.nbytes, SHARD_BYTES)
    if mesh is None:
        return jax.device_put(block)
    return jax.device_put(block, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(SILO)))


def check_words(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    """Refuse words that mean nothing here."""
    if isinstance(given, str):
        raise ValueError(f"{what}: give a list of names, not {given!r}; choose out of {', '.join(known)}")
    unknown = [word for word in given if word not in known]
    if unknown:
        raise ValueError(f"{what}: {', '.join(map(str, unknown))} is not known; choose out of {', '.join(known)}")


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


def chunk_length(n: int, receivers: int) -> int:
    """How many rounds' records fit in a chunk: a power of two that depends on shapes alone."""
    size = 4 * n * (receivers + 8)  # the weights, and some numbers per silo
    return 1 << min(MOST_ROUNDS, max(0, (CHUNK_BYTES // size).bit_length() - 1))


def run_chunks(setup: Setup, given: Given, active, state: State, names, progress) -> Outcome:
    """Run all rounds in chunks of a second at most; the first chunk is one round, to measure."""
    length = chunk_length(len(names), jnp.size(state.inbox.mass))
    kept: list[Entry] = []
    hyper, _, train, test, user = given
    before = _score(setup, hyper, state, train, test, user)
    done, count = 0, 1
    while True:
        count = min(count, len(active) - done)
        rows = np.zeros((length, len(names)), bool)
        rows[:count] = active[done : done + count]
        began = time.perf_counter()
        trace = jax.block_until_ready(_advance(setup, length, *given, rows, state, count))
        seconds = time.perf_counter() - began
        kept.append(jax.tree.map(lambda a, end=int(trace.done): np.array(a[:end]), jax.device_get(trace.entries)))
        state, done = trace.state, done + int(trace.done)
        if progress is not None:
            progress(done, len(active))
        if done >= len(active) or bool(trace.stopped):
            return Outcome(state, stack(kept), before, bool(trace.stopped))
        count = max(1, min(length, int(CHUNK_SECONDS * count / max(seconds, 1e-9))))


def no_entries(setup: Setup, given: Given, n: int, state: State) -> Entry:
    """The records of zero rounds: their shapes and types."""
    spec = jax.eval_shape(functools.partial(advance, setup, 1), *given, jnp.ones((1, n), bool), state, 1)
    return jax.tree.map(lambda s: np.zeros((0, *s.shape[1:]), s.dtype), spec.entries)


def run_debug(setup: Setup, given: Given, active, state: State, names, progress) -> Outcome:
    """Run round by round and silo by silo, without compilation, checking everything."""
    hyper, key, train, test, user = given
    setup = setup._replace(mesh=None)
    algorithm = setup.algorithm(hyper)
    checked = algorithm._replace(update=checked_update(algorithm, names))
    kept = [no_entries(setup, given, len(names), state)]
    with jax.disable_jit():
        before = score_of(setup, hyper, state, train, test, user)
        for done, here in enumerate(active, start=1):
            state, entry, go_on = one_round(setup, checked, state, train, test, key, jnp.asarray(here), user)
            if not go_on:
                return Outcome(state, stack(kept), before, True)
            kept.append(jax.tree.map(lambda a: np.asarray(a)[None], entry))
            if progress is not None:
                progress(done, len(active))
    return Outcome(state, stack(kept), before, False)


def stack(kept: list[Entry]) -> Entry:
    """Records of several chunks as one."""
    return jax.tree.map(lambda *rows: np.concatenate(rows), *kept)
