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

from confrere.core import Ctx, Geometry, Weights, present


class Eroded(NamedTuple):
    """What Weight Erosion remembers: the weights, in how many rounds each silo took part, who was ever seen."""

    alpha: jax.Array  # [n]
    rounds: jax.Array  # [n] int32
    seen: jax.Array  # [n] bool


def relative_distance(geometry: Geometry, user) -> jax.Array:
    """Equation (4) [n], with 0/0 = 0 and the largest finite number in place of infinity."""
    distance = jnp.sqrt(geometry.sq(user))
    own = geometry.norm(user)
    largest = jnp.finfo(distance.dtype).max
    ratio = distance / jnp.where(own > 0, own, 1)
    return jnp.where(distance > 0, jnp.where(own > 0, jnp.minimum(ratio, largest), largest), 0)


def passes_through(rounds: jax.Array, size: jax.Array, batch: int | None, passes: str) -> jax.Array:
    """How often a silo's rows have been used when it takes part after `rounds` earlier rounds."""
    if passes == "code":
        rounds = rounds + 1
    if batch is None:
        return rounds
    if passes == "code":
        return rounds // jnp.maximum(-(-size // batch), 1)
    return rounds * batch // jnp.maximum(size, 1)


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
) -> Weights:
    """The weights of Weight Erosion for one user: raw alphas, W[1, n].

    The user's own weight stays 1. A silo that is absent keeps its weight; if the user is absent nobody's weight
    changes and no message counts. A silo first seen later than the others starts at the mean (or median) weight
    of all silos seen before, the user included. `batch` is the number of rows a message is made of, None for
    all of them. `size_prior` is the paper's further "weight beta_i": a fixed factor (|S_i| / |S_user|) to that
    power, apart from alpha (1: by size; None: no such factor).

    >>> import confrere as cf
    >>> w = cf.weights.erosion(user=0, p_d=0.1, p_s=0.2, batch=10)
    >>> ctx = cf.Ctx(round=1, active=[True, True, True], size=[20, 20, 20])
    >>> W, state = w.update(cf.Geometry.from_messages([[1.0], [1.0], [-1.0]]), w.init(3), ctx)
    >>> [round(float(a), 3) for a in W[0]]
    [1.0, 1.0, 0.8]
    """
    if passes not in ("paper", "code"):
        raise ValueError(f"passes must be 'paper' or 'code', not {passes!r}")
    if newcomer not in ("mean", "median"):
        raise ValueError(f"newcomer must be 'mean' or 'median', not {newcomer!r}")
    if batch is not None and (int(batch) != batch or batch < 1):
        raise ValueError(f"batch must be a whole number above 0 or None, not {batch!r}")

    def init(n: int) -> Eroded:
        return Eroded(jnp.ones(n), jnp.zeros(n, jnp.int32), jnp.zeros(n, bool))

    def update(geometry: Geometry, state: Eroded, ctx: Ctx):
        here = present(ctx) if ctx.age is None else present(ctx) & (jnp.asarray(ctx.age) == 0)
        size = jnp.asarray(ctx.size, jnp.int32)
        start = typical(state.alpha, state.seen, newcomer)
        alpha = jnp.where(here & ~state.seen, start, state.alpha)
        penalty = (1 + p_s * passes_through(state.rounds, size, batch, passes)) * p_d
        eroded = jnp.maximum(0, alpha - penalty * relative_distance(geometry, user))
        alpha = jnp.where(here & here[user], eroded, alpha).astype(state.alpha.dtype)
        weights = alpha if size_prior is None else alpha * size_factor(size, user, size_prior)
        rounds = state.rounds + here.astype(jnp.int32)
        return weights[None], Eroded(alpha, rounds, state.seen | here)

    return Weights(init, update, needs=user)


def size_factor(size: jax.Array, user, power) -> jax.Array:
    """beta_i = (|S_i| / |S_user|)^power; an empty silo counts as one row."""
    rows = jnp.maximum(size, 1)
    return (rows / rows[user]) ** power
