"""The loop over rounds: compiled, in chunks of a second at most; or step by step, to find what is not finite."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Block, State
from confrere.debug import checked_update
from confrere.history import Outcome
from confrere.program import Entry, Held, Setup, advance, one_round, score_of

CHUNK_SECONDS = 1.0
CHUNK_BYTES = 1 << 25  # what the records of one chunk may take
MOST_ROUNDS = 12  # in one chunk, as a power of two

Given = tuple[dict[str, jax.Array], jax.Array, Block, Block | Held, jax.Array | None]  # hyper, key, train, test, user

# One compiled program per setup and shapes; other numbers, keys and rows run through the same one.
_advance = jax.jit(advance, static_argnums=(0, 1))
_score = jax.jit(score_of, static_argnums=0)


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


def no_entries(setup: Setup, given: Given, n: int, state: State) -> Entry:
    """The records of zero rounds: their shapes and types."""
    spec = jax.eval_shape(functools.partial(advance, setup, 1), *given, jnp.ones((1, n), bool), state, 1)
    return jax.tree.map(lambda s: np.zeros((0, *s.shape[1:]), s.dtype), spec.entries)


def stack(kept: list[Entry]) -> Entry:
    """Records of several chunks as one."""
    return jax.tree.map(lambda *rows: np.concatenate(rows), *kept)
