"""Weight Erosion: a silo's weight wears away as its messages differ from the user's.

    d_i     = |g_i - g_0| / |g_0|                                            (4)
    alpha_i = max(0, alpha_i - (1 + p_s passes_i) p_d d_i)                   (5)
    mean    = sum_i alpha_i g_i / sum_i alpha_i                              (6)

with alpha_i = 1 at the start. passes_i counts how often silo i's rows have been used: in the paper
floor((r - 1) b / |S_i|), where r - 1 is the number of earlier rounds in which silo i took part.

Grimberg, Hartley, Jaggi, Karimireddy: Weight Erosion: an update aggregation scheme for personalized collaborative
machine learning (2020), equations (4)-(6) and Algorithm 1. Grimberg: semester project report (2020), section 4.5
(absent and late silos).

Where this goes beyond the paper: the paper leaves d_i undefined when the user's gradient is zero. Here a message
that equals the user's is at distance 0, and any other is infinitely far, so that its silo erodes to 0 (unless
p_d = 0). The authors' program counts passes otherwise: `passes="code"`, floor(r / ceil(|S_i| / b)), this round
included.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.checks import check_counts, check_numbers, those_given
from confrere.core import Ctx, Geometry, Weights, present


class Eroded(NamedTuple):
    """What Weight Erosion remembers of every silo [n]: its weight, in how many rounds it took part, and how far it has
    come through its rows: whole passes, and rows of the pass under way."""

    alpha: jax.Array
    rounds: jax.Array
    passes: jax.Array
    rows: jax.Array


def relative_distance(geometry: Geometry, user) -> jax.Array:
    """Equation (4) [n], with 0/0 = 0 and the largest finite number in place of infinity.

    Squares must be finite numbers: in single precision, messages between about 1e-19 and 1e19.
    """
    distance = jnp.sqrt(geometry.sq(user))
    own = geometry.norm(user)
    largest = jnp.finfo(distance.dtype).max
    ratio = distance / jnp.where(own > 0, own, 1)
    far = jnp.where((own > 0) & (ratio < largest), ratio, largest)  # also where the ratio overflows
    itself = jnp.arange(len(distance)) == user  # a compiler may round g_0 - g_0 to more than nothing
    return jnp.where((distance > 0) & ~itself, far, 0)


def passes_before(state: Eroded, size: jax.Array, batch: int | None, steps: int, passes: str) -> jax.Array:
    """How often each silo's rows have been used, as the paper counts it, or as the authors' program does."""
    if passes == "paper":
        return state.passes
    batches = 1 if batch is None else jnp.maximum(-(-size // batch), 1)
    return (state.rounds + 1) * steps // batches


def further(
    state: Eroded, here: jax.Array, size: jax.Array, batch: int | None, steps: int
) -> tuple[jax.Array, jax.Array]:
    """Passes and rows after this round; exact for any number of rounds, as the product of rounds and rows is not."""
    total = jnp.maximum(size, 1)
    used = total * steps if batch is None else batch * steps
    rows = state.rows + used % total
    passes = state.passes + used // total + rows // total
    return jnp.where(here, passes, state.passes), jnp.where(here, rows % total, state.rows)


def typical(alpha: jax.Array, among: jax.Array, newcomer: str) -> jax.Array:
    """The mean or median of `alpha` over the silos in `among`; 1 if there is none."""
    count = among.sum()
    if newcomer == "mean":
        value = jnp.where(among, alpha, 0).sum() / jnp.maximum(count, 1)
    else:
        ordered = jnp.sort(jnp.where(among, alpha, jnp.inf))
        value = (ordered[jnp.maximum(count - 1, 0) // 2] + ordered[jnp.minimum(count // 2, len(alpha) - 1)]) / 2
    return jnp.where(count > 0, value, 1)


def erosion(
    user,
    p_d,
    p_s,
    batch: int | None = None,
    passes: Literal["paper", "code"] = "paper",
    newcomer: Literal["mean", "median"] = "mean",
    size_prior=None,
    steps: int = 1,
) -> Weights:
    """The weights of Weight Erosion for one user: raw alphas, W[1, n].

    The user's own weight stays 1. A silo that is absent keeps its weight; if the user is absent nobody's weight
    changes and no message counts. A silo first seen later than the others starts at the mean (or median) weight
    of all silos seen before, the user included. A message is made of `steps` batches of `batch` rows, None for
    all rows. `size_prior` is the paper's further "weight beta_i": a fixed factor (|S_i| / |S_user|) to that
    power, apart from alpha (1: by size; None: no such factor).

    >>> import confrere as cf
    >>> w = cf.weights.erosion(user=0, p_d=0.1, p_s=0.2, batch=10)
    >>> ctx = cf.Ctx(round=1, active=[True, True, True], size=[20, 20, 20])
    >>> W, state = w.update(cf.Geometry.from_messages([[1.0], [1.0], [-1.0]]), w.init(3), ctx)
    >>> [round(float(a), 3) for a in W[0]]
    [1.0, 1.0, 0.8]
    """
    check_choices(passes, newcomer)
    check_counts(steps=steps, **those_given(batch=batch))
    check_numbers(p_d=p_d, p_s=p_s)
    if isinstance(user, str | bool) or user is None:
        raise TypeError(f"weights know silos by their places only: user must be a whole number, not {user!r}")

    def init(n: int) -> Eroded:
        if isinstance(user, int | np.integer) and not 0 <= user < n:
            raise IndexError(f"there is no silo {user} to be the user; there are {n}, counted from 0")
        zeros = jnp.zeros(n, jnp.int32)
        return Eroded(jnp.ones(n), zeros, zeros, zeros)

    def update(geometry: Geometry, state: Eroded, ctx: Ctx):
        here = present(ctx) if ctx.age is None else present(ctx) & (jnp.asarray(ctx.age) == 0)
        size = jnp.asarray(ctx.size, jnp.int32)
        seen = state.rounds > 0
        alpha = jnp.where(here & ~seen, typical(state.alpha, seen, newcomer), state.alpha)
        penalty = (1 + p_s * passes_before(state, size, batch, steps, passes)) * p_d
        penalty = jnp.minimum(penalty, jnp.finfo(alpha.dtype).max)
        eroded = jnp.maximum(0, alpha - penalty * relative_distance(geometry, user))
        alpha = jnp.where(here & here[user], eroded, alpha).astype(state.alpha.dtype)
        weights = alpha if size_prior is None else alpha * size_factor(size, user, size_prior)
        rounds = state.rounds + here.astype(jnp.int32)
        return weights[None], Eroded(alpha, rounds, *further(state, here, size, batch, steps))

    return Weights(init, update, needs=user)


def check_choices(passes: str, newcomer: str) -> None:
    """Refuse words that mean nothing here."""
    if passes not in ("paper", "code"):
        raise ValueError(f"passes must be 'paper' or 'code', not {passes!r}")
    if newcomer not in ("mean", "median"):
        raise ValueError(f"newcomer must be 'mean' or 'median', not {newcomer!r}")


def size_factor(size: jax.Array, user, power) -> jax.Array:
    """beta_i = (|S_i| / |S_user|)^power; an empty silo counts as one row."""
    rows = jnp.maximum(size, 1).astype(jnp.result_type(float))
    return (rows / rows[user]) ** power
