"""What composing costs: recipes against the same algorithms written by hand as one function.

By hand means: the same draws, keys, masks for ragged silos, absences, finite check, zero mass and record of who took
part, but no `Client`, `Mixer`, `Rule` or `Weights`.
"""

import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp

import confrere as cf
from confrere.clients.shuffle import shuffle
from confrere.clients.subset import subset
from confrere.program import Setup, advance, numbers, start
from confrere.speed.interleave import laps_ms
from confrere.speed.timed_tasks import TASKS, Task, make_data

ROUNDS = {"L": 300, "S": 20}


def section(quick: bool) -> str:
    """A table of both tasks: composed, by hand, and their ratio."""
    lines = ["## What composing costs", "", __doc__.split("\n\n")[1].replace("\n", " "), ""]
    lines += [
        "| task | composed, ms per round | by hand, ms per round | composed / by hand, median lap by lap |",
        "|---|---|---|---|",
    ]
    for name, rounds in ROUNDS.items():
        task = TASKS[name]
        both = {"composed": composed(task, rounds), "hand": by_hand(task, rounds)}
        laps = laps_ms(both, repeats=3 if quick else 101)
        ratio = statistics.median(one / two for one, two in zip(laps["composed"], laps["hand"], strict=True))
        ours, hand = (statistics.median(times) / rounds for times in laps.values())
        lines.append(f"| {name} | {ours:.4f} | {hand:.4f} | {ratio:.3f} |")
    return "\n".join(lines)


def block_and_start(task: Task) -> tuple[cf.Block, dict[str, jax.Array]]:
    """The task's rows, and the model from zero."""
    silos = cf.Silos.from_arrays(zip(*make_data(task), strict=True))
    return jax.device_put(silos.block()), {"w": jnp.zeros((task.features, 2)), "b": jnp.zeros(2)}


def composed(task: Task, rounds: int, order: str = "shuffled") -> Callable[[], object]:
    """The recipe, in the simulator's own program."""
    make = cf.fedsgd if task.steps == 1 else cf.fedavg
    recipe = make(lr=task.lr, batch=task.batch, weights="uniform", order=order)
    setup = Setup(recipe.make, cf.models.logistic(), (), False, ())
    data, params = block_and_start(task)
    hyper, key, active = numbers(recipe.hyper), jax.random.key(0), jnp.ones((rounds, task.silos), bool)
    state = start(setup, hyper, params, data)
    program = jax.jit(advance, static_argnums=(0, 1))
    return lambda: program(setup, rounds, hyper, key, data, data, None, active, state, rounds)


def by_hand(task: Task, rounds: int) -> Callable[[], object]:
    """FedSGD or FedAvg as one function."""
    grad = jax.grad(cf.models.logistic().loss)
    m, b = task.rows, task.batch

    def silo(params, key, data, lr):
        if task.steps == 1:  # a batch that is a good part of the rows: they stay in place
            drawn = subset(key, data.size, m, b)
            return grad(params, cf.Batch(data.X, data.y, drawn, jnp.arange(m) < data.size))
        order = shuffle(key, data.size, m)

        def step(w, rows):
            index, live = rows
            g = grad(w, cf.Batch(data.X[index], data.y[index], live))
            return jax.tree.map(lambda a, d: jnp.where(live.any(), a - lr * d, a), w, g), None

        plan = order.reshape(-1, b), (jnp.arange(m) < data.size).reshape(-1, b)
        trained = jax.lax.scan(step, params, plan)[0]
        return jax.tree.map(jnp.subtract, params, trained)

    def round_(params, number, key, data, active, lr):
        key = jax.random.fold_in(key, number)
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i + 1))(data.id)
        updates = jax.vmap(silo, (None, 0, 0, None))(params, keys, data, lr)
        finite = [jnp.isfinite(a).reshape(a.shape[0], -1).all(1) for a in jax.tree.leaves(updates)]
        here = jnp.stack([active, data.size > 0, *finite]).all(0)
        count = here.sum()
        share = here / jnp.maximum(count, 1)
        rate = lr if task.steps == 1 else 1.0

        def move(a, u):
            u = jnp.where(here.reshape(-1, *(1,) * (u.ndim - 1)), u, 0)
            return jnp.where(count > 0, a - rate * jnp.einsum("n,n...->...", share, u), a)

        return jax.tree.map(move, params, updates), here, count

    @jax.jit
    def run(params, key, data, active, lr, count):
        def body(k, carry):
            params, arrived, mass = carry
            params, here, counted = round_(params, k + 1, key, data, active[k], lr)
            return params, arrived.at[k].set(here), mass.at[k].set(1.0 * counted)

        return jax.lax.fori_loop(0, count, body, (params, jnp.zeros_like(active), jnp.zeros(len(active))))

    data, params = block_and_start(task)
    key, active, lr = jax.random.key(0), jnp.ones((rounds, task.silos), bool), jnp.float32(task.lr)
    return lambda: run(params, key, data, active, lr, rounds)
