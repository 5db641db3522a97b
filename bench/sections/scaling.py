"""How time grows with silos, rounds, users and seeds: Weight Erosion in the simulator's own program."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import confrere as cf
from confrere.program import Setup, numbers, rollout
from confrere.speed.interleave import medians_ms

ROWS, FEATURES, BATCH, ROUNDS = 100, 12, 32, 100


def section(quick: bool) -> str:
    """One table per quantity that grows; all else as in its smallest case."""
    repeats = 2 if quick else 9
    lines = [
        "## How time grows",
        "",
        f"Weight Erosion on silos of {ROWS} rows and {FEATURES} features, a fresh batch of {BATCH} per silo and round, "
        f"{ROUNDS} rounds and 10 silos unless said otherwise; milliseconds for the whole run, medians of {repeats}. "
        "Users and seeds are `vmap`ped: one program for all of them.",
    ]
    grown: dict[str, dict[int, Callable[[], object]]] = {
        "silos": {n: single(silos=n) for n in (4, 10, 100, 1000)},
        "rounds": {r: single(rounds=r) for r in (10, 100, 1000)},
        "users": {u: many(users=u) for u in (1, 4, 10)},
        "seeds": {s: many(seeds=s) for s in (1, 10, 100)},
    }
    for quantity, cases in grown.items():
        found = medians_ms({str(size): run for size, run in cases.items()}, repeats)
        lines += ["", f"| {quantity} | ms | ms per {quantity[:-1]} |", "|---|---|---|"]
        lines += [f"| {size} | {ms:.2f} | {ms / int(size):.3f} |" for size, ms in found.items()]
    return "\n".join(lines)


def silos_block(silos: int) -> cf.Block:
    """Random silos that share one noisy linear law."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((silos, ROWS, FEATURES))
    y = X @ rng.standard_normal(FEATURES) + 0.5 * rng.standard_normal((silos, ROWS)) > 0
    return jax.device_put(cf.Silos.from_arrays(zip(X, y, strict=True)).block())


def program(silos: int, rounds: int) -> Callable[..., object]:
    """A run as a function of the user and the seed."""
    recipe = cf.weight_erosion(user=0, lr=0.1, batch=BATCH)
    setup = Setup(recipe.make, cf.models.logistic(), (), False, ())
    params = {"w": jnp.zeros((FEATURES, 2)), "b": jnp.zeros(2)}
    hyper = numbers(recipe.hyper)
    data = silos_block(silos)

    def run(user, seed, data):
        given = {**hyper, "user": user}
        return rollout(setup, rounds, given, jax.random.key(seed), params, data, data, user).state.inbox

    return lambda users, seeds: (lambda f: lambda: f(users, seeds, data))(
        jax.jit(jax.vmap(jax.vmap(run, (0, None, None)), (None, 0, None)))
    )


def single(silos: int = 10, rounds: int = ROUNDS) -> Callable[[], object]:
    """One run."""
    return program(silos, rounds)(jnp.arange(1), jnp.arange(1))


def many(users: int = 1, seeds: int = 1) -> Callable[[], object]:
    """Several users and seeds at once."""
    return program(10, ROUNDS)(jnp.arange(users), jnp.arange(seeds))
