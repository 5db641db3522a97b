"""Clusters of silos by the directions of their updates, divided in two whenever training has come to rest in dispute.

    a_ij = <u_i, u_j> / (|u_i| |u_j|)                              cosine similarity of updates
    divide c if |mean of u over c| < eps1 and max |u_i| > eps2     the mean is at rest, but its silos are not,
    and if gamma < sqrt((1 - a_cross) / 2)                         and their noise cannot explain it
    c1, c2 = argmin of a_cross = max of a_ij, i in c1, j in c2     over all ways to divide c

The best division is what single linkage leaves as its last two groups: they fall apart at the weakest link of the
widest paths (the path between two silos whose smallest similarity is largest).

Sattler, Müller, Samek: Clustered federated learning: model-agnostic distributed multitask optimization under privacy
constraints (2020); gamma is a bound on the relative noise of an update.

Where this departs from the paper: eps1 and eps2 are in units of the largest update of any silo so far, because absolute
ones depend on the learning rate and the model; clusters are looked at after every round rather than after a run to
convergence; an update of zero is similar to none. The paper has everybody there in every round. Here a cluster is
divided only in a round with all members there who were ever heard, those not heard yet staying with the member of the
largest update; clusters never join again.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Ctx, Geometry, Weights, normalise, present


class Clusters(NamedTuple):
    """Who is with whom [n, n], who was ever heard [n], the largest update so far, and the state of the shares."""

    together: jax.Array
    heard: jax.Array
    largest: jax.Array
    among: Any


def cosines(products: jax.Array) -> jax.Array:
    """Cosine similarities [n, n] from inner products; 0 with an update of zero."""
    norm = jnp.sqrt(jnp.diag(products))
    scale = jnp.where(norm > 0, norm, 1)
    similar = products / scale[:, None] / scale
    return jnp.maximum(similar, similar.T)  # as symmetric as it should be


def widest(similar: jax.Array) -> jax.Array:
    """The smallest similarity on the path between two silos where that is largest [n, n]."""

    def through(k, width):
        return jnp.maximum(width, jnp.minimum(width[:, k, None], width[k]))

    return jax.lax.fori_loop(0, similar.shape[0], through, similar)


class Division(NamedTuple):
    """The best division of each silo's cluster [n]: its a_cross, a member of the near side, who is on the far side."""

    cross: jax.Array
    seed: jax.Array
    far: jax.Array


def divisions(similar: jax.Array, norm: jax.Array, members: jax.Array) -> Division:
    """The best division of every cluster; members: who is in the cluster of each [n, n].

    The near side has the member with the largest update. A silo by itself cannot be divided: its a_cross is infinite.
    """
    width = widest(jnp.where(members, similar, -jnp.inf))
    pairs = members & ~jnp.eye(len(norm), dtype=bool)
    cross = jnp.where(pairs, width, jnp.inf).min(axis=1)
    seed = jnp.where(members, norm, -1).argmax(axis=1)
    place = jnp.arange(len(norm))
    return Division(cross, seed, (width[seed, place] <= cross) & (place != seed))


def in_dispute(members: jax.Array, row: jax.Array, products: jax.Array, least, most) -> jax.Array:
    """Whose cluster [n] has a mean update shorter than `least`, but an update longer than `most`."""
    share = normalise(jnp.where(members, row, 0))[0]
    mean = jnp.maximum(jnp.einsum("ri,ij,rj->r", share, products, share), 0)
    longest = jnp.where(members, jnp.diag(products), 0).max(axis=1)
    return (jnp.sqrt(mean) < least) & (jnp.sqrt(longest) > most)


def cluster(eps1, eps2, gamma, among: Weights) -> Weights:
    """Every silo is a receiver and listens to its cluster alone, by the plain shares of `among`; at first one for all.

    >>> import confrere as cf
    >>> w = cf.weights.cluster(0.1, 0.2, 0.0, cf.weights.uniform())
    >>> ctx = cf.Ctx(round=1, active=[True, True, True], size=[10, 10, 20])
    >>> W, state = w.update(cf.Geometry.from_messages([[1.0, 0.0], [0.9, 0.1], [-2.0, 0.0]]), w.init(3), ctx)
    >>> W.tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def init(n: int) -> Clusters:
        return Clusters(jnp.ones((n, n), bool), jnp.zeros(n, bool), jnp.zeros(()), among.init(n))

    def update(geometry: Geometry, state: Clusters, ctx: Ctx):
        row, shares = among.update(geometry, state.among, ctx)
        here, products = present(ctx), geometry.dot()
        heard, members = state.heard | here, state.together & here & here[:, None]
        norm = jnp.sqrt(jnp.diag(products))
        largest = jnp.maximum(state.largest, norm.max()).astype(state.largest.dtype)
        best = divisions(cosines(products), norm, members)
        complete = ~(state.together & heard & ~here).any(axis=1)
        torn = complete & in_dispute(members, row, products, eps1 * largest, eps2 * largest)
        torn = torn & (2 * gamma**2 < 1 - best.cross)
        side = here & best.far & torn[best.seed]  # the seed speaks for all: rounding cannot make members disagree
        together = state.together & (side[:, None] == side)
        return jnp.where(together, row, 0), Clusters(together, heard, largest, shares)

    return Weights(init, update)
