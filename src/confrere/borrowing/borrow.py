"""Evidence: how related is another silo, judged by the user's own rows, and what may be borrowed from it.

A silo whose parameters differ from the user's by N(0, T), T = diag(tw, .., tw, tb), says of the user's parameters

    P_i(T) = (I + H_i T)^-1 H_i,   p_i(T) = (I + H_i T)^-1 h_i          (precision, and precision times mean)

so that its precision is capped at 1/tw however many rows it has. The evidence of the user's rows, to second order
(H_0, h_0), under the prior information (S, p) is

    E = -1/2 (log|S + H_0| - log|S|) + 1/2 (p + h_0)'(S + H_0)^-1 (p + h_0) - 1/2 p'S^-1 p

Over a grid of T and "unrelated" (with prior 1/2) it says what is borrowed on average, and how relevant the silo is.
All is computed around the user's own optimum, so that no large numbers cancel.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.factor import cholesky, forward, scaled, semidefinite, solve
from confrere.borrowing.glm import Quadratic

INTERCEPT_VARIANCES = (0.05, 0.5, 5.0)
VARIANCES = (0.001, 0.01, 0.05, 0.25, 1.0)
UNRELATED = 0.5  # prior probability
OPPOSITE = 0.1  # the part of it, where relevance is told, that is for a silo which means the opposite of what it says
GRID = np.array([(tb, tw) for tb in INTERCEPT_VARIANCES for tw in VARIANCES])  # [G, 2]


class Borrowed(NamedTuple):
    """What the user takes from each silo: mean information, and the chance that the silo is related at all."""

    from_each: Quadratic  # [N, D, D], [N, D]
    relevance: jax.Array  # [N]


def messages(others: Quadratic, scores: int) -> Quadratic:
    """P_i(T) and p_i(T) for every silo and grid point: [N, G, D, D] and [N, G, D]."""
    D = others.h.shape[-1]
    tb, tw = jnp.asarray(GRID, others.h.dtype).T
    T = jnp.where(jnp.arange(D) >= D - scores, tb[:, None], tw[:, None])  # [G, D]

    def of_silo(H, h):
        F = semidefinite(H)
        return jax.vmap(lambda t: message(H, h, F, t))(T)

    return jax.vmap(of_silo)(others.H, others.h)


@jax.jit
def message(H: jax.Array, h: jax.Array, F: jax.Array, t: jax.Array) -> Quadratic:
    """P(T) and p(T) for T = diag(t) and H = F F'.

    P is formed as F (I + F'TF)^-1 F', so that rounding cannot give it a negative direction.
    """
    eye, root = jnp.eye(len(t), dtype=t.dtype), jnp.sqrt(t)
    lower, s = scaled(eye + F.T @ (t[:, None] * F))
    half = forward(lower, s[:, None] * F.T)
    return Quadratic(half.T @ half, solve(eye + root[:, None] * H * root, root * h) / root)


@jax.jit
def log_evidence(prior: Quadratic, own: Quadratic, centre: jax.Array) -> jax.Array:
    """E up to a constant that is the same for every prior; `centre` is any point near the user's optimum."""
    shifted = prior.h - prior.H @ centre
    both = shifted + own.h - own.H @ centre
    lower, joint = cholesky(prior.H), cholesky(prior.H + own.H)
    half_log = lambda L: jnp.log(jnp.diag(L)).sum()  # noqa: E731
    square = lambda L, v: jnp.square(forward(L, v)).sum()  # noqa: E731
    return half_log(lower) - half_log(joint) + 0.5 * square(joint, both) - 0.5 * square(lower, shifted)


def chances(evidences: jax.Array, unrelated: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Posterior probabilities of the grid points [G], and that the silo is related at all.

    What a forged message makes overflow has no evidence.
    """
    possible = jnp.where(jnp.isfinite(evidences), evidences, -jnp.inf)
    share = jnp.log((1 - UNRELATED) / evidences.shape[0])
    logits = jnp.concatenate([possible + share, (unrelated + jnp.log(UNRELATED))[None]])
    posterior = jax.nn.softmax(logits)
    return posterior[:-1], 1 - posterior[-1]


def relevance_by_itself(prior: jax.Array, said: Quadratic, own: Quadratic, centre: jax.Array) -> jax.Array:
    """How probable it is [N] that a silo is related to the user as it says: not unrelated, nor the opposite.

    The opposite is the same message with the other sign, as if the silo's labels were the wrong way round. Without it
    such a silo can seem related: what it says holds the coefficients near zero, and that alone may be better than
    nothing. It is not better than its own mirror image.
    """
    base = Quadratic(jnp.diag(prior), jnp.zeros_like(prior))
    unrelated = log_evidence(base, own, centre) + jnp.log(UNRELATED - OPPOSITE)

    def of_silo(P, p):
        def taken(sign):
            found = jax.vmap(lambda P, p: log_evidence(Quadratic(base.H + P, sign * p), own, centre))(P, p)
            return jax.nn.logsumexp(jnp.where(jnp.isfinite(found), found, -jnp.inf)) - jnp.log(len(found))

        related, opposite = taken(1) + jnp.log(1 - UNRELATED), taken(-1) + jnp.log(OPPOSITE)
        return jax.nn.softmax(jnp.stack([related, unrelated, opposite]))[0]

    return jax.vmap(of_silo)(said.H, said.h)


def borrow_from(base: Quadratic, said: Quadratic, own: Quadratic, centre: jax.Array) -> tuple[Quadratic, jax.Array]:
    """One silo's mean information and relevance, on top of `base`; said: [G, ...]."""
    evidences = jax.vmap(lambda P, p: log_evidence(Quadratic(base.H + P, base.h + p), own, centre))(said.H, said.h)
    posterior, relevance = chances(evidences, log_evidence(base, own, centre))
    return Quadratic(jnp.tensordot(posterior, said.H, 1), posterior @ said.h), relevance


def pair(prior: jax.Array, said: Quadratic, own: Quadratic, centre: jax.Array) -> Borrowed:
    """Every silo by itself against the base precision."""
    base = Quadratic(jnp.diag(prior), jnp.zeros_like(prior))
    each, relevance = jax.vmap(lambda P, p: borrow_from(base, Quadratic(P, p), own, centre))(said.H, said.h)
    return Borrowed(each, relevance)


def sweep(prior: jax.Array, said: Quadratic, own: Quadratic, centre: jax.Array, before: Borrowed) -> Borrowed:
    """Every silo in turn, on top of what is borrowed from all the others."""

    def one(i, now: Borrowed) -> Borrowed:
        each = now.from_each
        base = Quadratic(jnp.diag(prior) + each.H.sum(0) - each.H[i], each.h.sum(0) - each.h[i])
        new, relevance = borrow_from(base, Quadratic(said.H[i], said.h[i]), own, centre)
        return Borrowed(Quadratic(each.H.at[i].set(new.H), each.h.at[i].set(new.h)), now.relevance.at[i].set(relevance))

    return jax.lax.fori_loop(0, said.h.shape[0], one, before)


@jax.jit
def information_shares(prior: jax.Array, own: Quadratic, from_each: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Shares of the user (one number) and each silo [N] in all information; what is missing to 1 is the prior's.

    tr(S H_0)/D and tr(S P_i)/D with S the inverse of all precision together.
    """
    D = prior.shape[0]
    S = solve(jnp.diag(prior) + from_each.sum(0) + own.H, jnp.eye(D, dtype=prior.dtype))
    return jnp.vdot(S, own.H) / D, jnp.tensordot(from_each, S, 2) / D
