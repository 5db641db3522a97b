"""What all loops on a problem share: the compiled loop, its stopping rules (book 4.4), learning rates and its result.

The numbers of a problem are arguments of the program, so that another problem of the same size does not compile again.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from confrere.checks import check_counts, check_single_numbers, check_word, real_array
from confrere.core import Tree
from confrere.networks.bounds.coupled import upper_eigenvalue
from confrere.networks.bounds.steps import iterations_needed
from confrere.networks.problem import GTVMin

Schedule = Callable[[np.ndarray], Any]  # iterations counted from 1, [K] -> learning rates [K]
RULES = ("count", "decrease", "gradient")


class Run(NamedTuple):
    """What an algorithm found: models W [n, d], the objective after every iteration, and how many there were."""

    W: Any
    objective: np.ndarray  # [iterations]
    iterations: int


@dataclass(frozen=True)
class Stop:
    """When to stop before the last iteration: after `tol` iterations, or when `what` falls below `tol`.

    Made by `fixed_count`, `near_enough`, `decrease` and `small_gradient`. One iteration is made in any case.
    """

    what: Literal["count", "decrease", "gradient"]
    tol: float

    def __post_init__(self):
        check_word("what", self.what, RULES)
        check_single_numbers(tol=self.tol)


def decrease(tol: float) -> Stop:
    """Stop when an iteration lowers the objective by less than tol (or no longer at all).

    In loops that draw at random, a single iteration may lower it by little: choose tol small, or another rule.

    >>> import confrere as cf
    >>> cf.networks.decrease(1e-6)
    Stop(what='decrease', tol=1e-06)
    """
    return Stop("decrease", tol)


def small_gradient(tol: float) -> Stop:
    """Stop when the norm of the objective's gradient, at the models after an iteration, is below tol.

    >>> import confrere as cf
    >>> cf.networks.small_gradient(1e-6)
    Stop(what='gradient', tol=1e-06)
    """
    return Stop("gradient", tol)


def fixed_count(count: int) -> Stop:
    """Stop after so many iterations.

    >>> import confrere as cf
    >>> cf.networks.fixed_count(100)
    Stop(what='count', tol=100)
    """
    check_counts(count=count)
    return Stop("count", count)


def near_enough(distance: float, tol: float, contraction: float) -> Stop:
    """(4.8): stop after as many iterations as bring a distance from the minimum below tol.

    `contraction`: by how much an iteration brings models nearer, such as `bounds.contraction(lr, smallest, largest)`;
    `distance`: how far the first models are from the minimum, or a bound of it.

    >>> import confrere as cf
    >>> cf.networks.near_enough(distance=1.0, tol=1e-3, contraction=0.5)
    Stop(what='count', tol=10)
    """
    check_single_numbers(distance=distance, tol=tol, contraction=contraction)
    return fixed_count(max(iterations_needed(distance, tol, contraction), 1))


def rule_of(stop: Stop | None, known: tuple[str, ...] = RULES) -> tuple[str | None, float]:
    """A rule as a word for the program and a number for its run."""
    if stop is None:
        return None, 0.0
    if not isinstance(stop, Stop):
        raise TypeError(f"stop must be a rule such as decrease(1e-6) or fixed_count(100), not {stop!r}")
    if stop.what not in known:
        raise ValueError(f"this loop has no {stop.what} to stop by: use one of {', '.join(known)}")
    return stop.what, float(stop.tol)


def rates(lr: Any, iterations: int) -> np.ndarray:
    """The learning rate of every iteration: a number, one per iteration, or a schedule of the iterations 1, 2, ..."""
    check_counts(iterations=iterations)
    given = lr(np.arange(1, iterations + 1)) if callable(lr) else lr
    values = real_array("lr", given, None, False)
    if values.shape not in ((), (iterations,)) or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"lr must be a number of 0 or more, one for each of {iterations} iterations, or a schedule")
    return np.broadcast_to(values, (iterations,))


def size(tree: Tree) -> jax.Array:
    """The norm of all numbers together."""
    return jnp.linalg.norm(ravel_pytree(tree)[0])


def loop(step, start: Any, iterations: int, stop: str | None, tol) -> tuple[Any, jax.Array, jax.Array]:
    """Repeat step(k, state) -> (state, objective, gradient) for k = 0, 1, ..., and keep the objectives.

    Returns the state, the objectives (only the first `count` are meant) and the count. The gradient, at the models of
    the new state, is looked at by a rule that asks for it only.
    """
    dtype = jnp.result_type(float)

    def unfinished(carry):
        k, _, _, before, now, slope = carry
        goes_on = k < iterations
        if stop == "count":
            goes_on &= k < tol
        if stop == "decrease":
            goes_on &= (k == 0) | (before - now >= tol)
        if stop == "gradient":
            goes_on &= (k == 0) | (slope >= tol)
        return goes_on

    def once(carry):
        k, state, seen, _, now, slope = carry
        state, after, gradient = step(k, state)
        after = after.astype(dtype)
        slope = size(gradient).astype(dtype) if stop == "gradient" else slope
        return k + 1, state, seen.at[k].set(after), now, after, slope

    begin = (jnp.int32(0), start, jnp.zeros(iterations, dtype), *(jnp.full((), jnp.inf, dtype) for _ in range(3)))
    count, state, seen, *_ = jax.lax.while_loop(unfinished, once, begin)
    return state, seen, count


def finished(W: Tree, seen: jax.Array, count: jax.Array, advice: Callable[[], str] | None = None) -> Run:
    """The run on the host; where its models are no numbers any more a warning says so, with `advice` on what to do."""
    run = Run(jax.tree.map(np.asarray, W), np.asarray(seen)[: int(count)], int(count))
    if advice is not None and not all(np.isfinite(a).all() for a in jax.tree.leaves(run.W)):
        finite = np.isfinite(run.objective)
        when = run.iterations if finite.all() else int(finite.argmin()) + 1
        warnings.warn(f"models diverge, their objective is not finite from iteration {when}: {advice()}", stacklevel=3)
    return run


def smaller_rate(p: GTVMin, lr: Any, share: float = 1.0) -> Callable[[], str]:
    """What to do where steps of these rates diverge; `share`: of the rate by which gradient steps converge for sure."""

    def advice() -> str:
        given = f"the learning rate of {float(np.max(lr)):g} is too large"
        if p.quadratic is None:
            return f"{given}; give a smaller one"
        sure = share / upper_eigenvalue(p)
        return (
            f"{given}; gradient steps converge with {sure:.3g}, and best with bounds.best_rate(*extreme_eigenvalues(p))"
        )

    return advice
