"""Replicas of what a user learned: the same fit with rows and silos drawn anew, from the messages that were sent.

The user's own rows are drawn with replacement, as counts. Of another silo only its message is known, and nothing more
has to be sent: the sum of its gradients varies from draw to draw of its rows with about its curvature H_i as
covariance, so

    h_i* = h_i + H_i^1/2 z,    z standard normal,

is its message from other rows of the same population. Which silos there are is drawn with replacement, too; one that is
not drawn says nothing. Candidates keep the weights that cross-validation gave them, and the pool is their sum.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.borrowing.borrow import messages
from confrere.borrowing.candidates import Problem, fit
from confrere.borrowing.factor import semidefinite
from confrere.borrowing.glm import Quadratic, Rows, together

AT_ONCE = 8  # replicas that are fitted side by side


class Draws(NamedTuple):
    """What is drawn, per replica."""

    rows: jax.Array  # [B, m] how often each of the user's rows was drawn
    silos: jax.Array  # [B, N] whose message stands in each place
    noise: jax.Array  # [B, N, D] standard normal


def replicas(
    rows: Rows, task: str, scores: int, problem: Problem, names: tuple[str, ...], weights: jax.Array,
    beside: Rows | None, draws: Draws,
) -> jax.Array:  # fmt: skip
    """The average of the candidates for every draw [B, D]; all in standard units of the labels."""
    roots = jax.vmap(semidefinite)(problem.others.H)

    def one(draw: Draws) -> jax.Array:
        h = problem.others.h + jnp.einsum("nij,nj->ni", roots, draw.noise)
        others = Quadratic(problem.others.H[draw.silos], h[draw.silos])
        pool = Quadratic(others.H.sum(axis=0), others.h.sum(axis=0))
        drawn = rows._replace(weight=rows.weight * draw.rows)
        again = Problem(problem.prior, others, pool, problem.believed)
        return weights @ fit(together(drawn, beside), task, again, messages(others, scores), names).theta

    return jax.lax.map(one, draws, batch_size=AT_ONCE)
