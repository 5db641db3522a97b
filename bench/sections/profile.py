"""The same program with drawing taken out, part by part."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from confrere.clients.shuffle import random_words, shuffle
from confrere.clients.subset import subset
from confrere.core import silo_keys
from confrere.speed.interleave import medians_ms
from confrere.speed.ours import our_run
from confrere.speed.timed_tasks import TASKS, Task
from sections.composition import ROUNDS, block_and_start, composed


def section(quick: bool) -> str:
    """A table per task: whole rounds, rounds without shuffles, and the drawing by itself."""
    lines = ["## Where the time goes", "", __doc__.replace("\n", " "), ""]
    lines += [
        "Rounds in fixed order take contiguous slices, so the difference is drawing and gathering. A single batch (L) "
        "is drawn without a sort, and its rows stay in place; several (S) are cut from a shuffle. All parts are bare "
        "programs on one device but the first, which is what the comparison measures: a call of `simulate`, with its "
        "checks, the rows put in place (over all devices, if they are many), records of rounds, and the models.",
        "",
    ]
    lines += ["| task | part | ms per round | share |", "|---|---|---|---|"]
    for name, rounds in ROUNDS.items():
        task = TASKS[name]
        parts = {
            "a call of `simulate`": our_run(task, rounds),
            "whole rounds": composed(task, rounds, "shuffled"),
            "rounds in fixed order": composed(task, rounds, "cyclic"),
            "keys and random words alone": drawing(task, rounds, random_words),
            "keys and drawing alone": drawing(task, rounds, one_batch(task) if task.steps == 1 else shuffle),
        }
        found = medians_ms(parts, 3 if quick else 21)
        whole = found["whole rounds"]
        lines += [f"| {name} | {part} | {ms / rounds:.4f} | {ms / whole:.0%} |" for part, ms in found.items()]
    return "\n".join(lines)


def one_batch(task: Task) -> Callable[..., jax.Array]:
    """The draw of a single batch."""
    return lambda key, size, m: subset(key, size, m, task.batch)


def drawing(task: Task, rounds: int, draw: Callable[..., jax.Array]) -> Callable[[], object]:
    """Only the keys of all silos, and what is drawn from them."""
    data, _ = block_and_start(task)

    @jax.jit
    def run(key, data):
        def body(k, total):
            keys = silo_keys(key, k + 1, data.id)[1]
            return total + jax.vmap(lambda one, size: draw(one, size, task.rows))(keys, data.size).astype(jnp.uint32)

        return jax.lax.fori_loop(0, rounds, body, jnp.zeros((task.silos, task.rows), jnp.uint32))

    key = jax.random.key(0)
    return lambda: run(key, data)
