"""The weights of WAFFLE: from everybody to the user alone, the nearest silos staying longest.

    d_i     = |m_i - m_u|, the distance of the messages; dM and dm the largest and smallest of the others'
    d_u     = dm (1 - (dM - dm) / dM (1 - Omega(r)))                        (2)
    alpha_i = max(0, Psi(r) - (d_i - d_u) / (dM - d_u))                     (3), then divided by their sum
    weights = the mean of alpha of this and of the last two rounds
    Omega   = Psi = 1 / (1 + exp(slope (2 r / R - 1)))                      (4)

and from round 0.95 R on alpha is the user's alone. Beaussart, Grimberg, Hartley, Jaggi: WAFFLE: weighted averaging for
personalized federated learning (2021), Algorithm 1 (CalcWeights) and equations (2)-(4).

Where this goes beyond the paper: before round 1 everybody counted the same (history 1/N). Where all others are equally
far, or all at distance 0, nobody is nearer than another: everybody counts the same until round 0.95 R. So two silos
cannot personalise gradually, which is warned of. A silo that is absent is judged by its last known distance; a silo
never heard has no weight of its own, nor has one whose distance is too large for its precision. If the user is absent
nothing changes, and no message counts. With Omega = Psi = 1 the paper speaks of global training, but the farthest silo
then has no weight: only Psi -> infinity is uniform.
"""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_numbers, concrete
from confrere.core import Ctx, Geometry, Weights, present

Schedule = Callable[[jax.Array], jax.Array]  # of r/R, from just above 0 to 1
LOCAL_FROM = 0.95  # of the rounds
SMOOTHED = 3  # rounds


class Omega(NamedTuple):
    """What WAFFLE remembers: alpha of the last two rounds [2, n], the last known distances [n], who was heard [n]."""

    alpha: jax.Array
    distance: jax.Array
    heard: jax.Array


def sigmoid(slope) -> Schedule:
    """Equation (4), as a function of r/R."""
    return lambda t: 1 / (1 + jnp.exp(slope * (2 * t - 1)))


def omega(user, rounds, slope=3.2, schedule: Schedule | None = None, threshold: Schedule | None = None) -> Weights:
    """The smoothed weights of WAFFLE for one user, W[1, n], summing to 1.

    `rounds` is R, the rounds of the whole run. `schedule` and `threshold` are Omega and Psi as functions of r/R, in
    place of the sigmoid with its `slope`; a threshold that is not given is the schedule.

    >>> import confrere as cf
    >>> w = cf.weights.omega(user=0, rounds=100)
    >>> ctx = cf.Ctx(round=50, active=[True, True, True], size=[20, 20, 20])
    >>> W, state = w.update(cf.Geometry.from_messages([[0.0], [1.0], [4.0]]), w.init(3), ctx)
    >>> [round(float(a), 3) for a in W[0]]
    [0.41, 0.368, 0.222]
    """
    check_numbers(slope=slope, rounds=rounds)
    if concrete(rounds) == 0:
        raise ValueError("rounds must be above 0: they are those of the whole run")
    for name, function in (("schedule", schedule), ("threshold", threshold)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of r/R, such as lambda t: 1 - t, not {function!r}")
    if isinstance(user, str | bool) or user is None:
        raise TypeError(f"weights know silos by their places only: user must be a whole number, not {user!r}")
    personal = sigmoid(slope) if schedule is None else schedule
    near = personal if threshold is None else threshold

    def init(n: int) -> Omega:
        if isinstance(user, int | np.integer) and not 0 <= user < n:
            raise IndexError(f"there is no silo {user} to be the user; there are {n}, counted from 0")
        if n == 2:
            warnings.warn(
                "WAFFLE compares distances of the other silos: with one other silo it cannot personalise gradually. It "
                f"listens to both alike until {LOCAL_FROM:.0%} of the rounds, then to the user alone",
                stacklevel=2,
            )
        return Omega(jnp.full((2, n), 1 / n), jnp.zeros(n), jnp.zeros(n, bool))

    def update(geometry: Geometry, state: Omega, ctx: Ctx):
        here = present(ctx)
        distance = jnp.where(here, jnp.sqrt(geometry.sq(user)), state.distance).astype(state.distance.dtype)
        heard = state.heard | here
        t = jnp.asarray(ctx.round, distance.dtype) / rounds
        alpha = shares(distance, heard, user, personal(t), near(t))
        alone = (jnp.arange(len(here)) == user).astype(alpha.dtype)
        alpha = jnp.where(late(ctx.round, rounds), alone, alpha).astype(state.alpha.dtype)
        W = (state.alpha.sum(axis=0) + alpha) / SMOOTHED
        new = Omega(jnp.stack([state.alpha[1], alpha]), distance, heard)
        new = jax.tree.map(lambda a, b: jnp.where(here[user], a, b), new, state)
        return W[None], new

    return Weights(init, update, needs=user)


def late(round, rounds) -> jax.Array:
    """Whether a round is among the last ones, where the user is alone: r >= 0.95 R, exactly for whole numbers."""
    return jnp.asarray(round) * 20 >= jnp.asarray(rounds) * 19


def shares(distance: jax.Array, heard: jax.Array, user, personal, near) -> jax.Array:
    """Alpha before smoothing [n], summing to 1 over those who were heard: equations (2) and (3)."""
    own = jnp.arange(len(distance)) == user
    heard = heard & jnp.isfinite(distance)
    others = heard & ~own
    largest = jnp.where(others, distance, -math.inf).max(initial=-math.inf)
    smallest = jnp.where(others, distance, math.inf).min(initial=math.inf)
    largest, smallest = (jnp.where(others.any(), d, 0) for d in (largest, smallest))
    between = (largest - smallest) / jnp.where(largest > 0, largest, 1)
    of_user = smallest * (1 - between * (1 - personal))
    reach = largest - of_user
    apart = (jnp.where(own, of_user, distance) - of_user) / jnp.where(reach > 0, reach, 1)
    alpha = jnp.where(heard & (reach > 0), jnp.maximum(near - apart, 0), 0)
    alpha = jnp.where(reach > 0, alpha, heard)  # nobody is nearer than another
    total = alpha.sum()
    return jnp.where(total > 0, alpha / jnp.where(total > 0, total, 1), own)
