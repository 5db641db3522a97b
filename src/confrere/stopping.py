"""When to stop: do all gradients still fit in a cone?

If some direction v has a positive inner product with every silo's gradient, a small step along -v improves the loss of
every silo; the appendix of the Weight Erosion paper asks not to stop as long as that is so. Such a v exists exactly if
the origin lies outside the convex hull of the gradients, and then the point of the hull nearest to the origin is one.
That point is found from inner products alone: no message is looked at.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Geometry


class Cone(NamedTuple):
    """fits: there is a common direction of descent. margin: the cosine between the axis of the cone and the gradient
    farthest from it (0 or less: no cone was found). axis: the weights [n] of the unit gradients that make the axis."""

    fits: jax.Array
    margin: jax.Array
    axis: jax.Array


def cone(geometry: Geometry, active: Any = None, steps: int = 10_000) -> Cone:
    """Do all (active) messages fit in a cone? Decided from their inner products.

    A `fits` is certain: the axis found has a positive inner product with every message. A message of norm zero fits in
    no cone; no message at all fits in any. The nearest point is sought by the method of Mitchell, Demyanov and
    Malozemov (1974), for at most `steps` exchanges of weight.

    >>> import confrere as cf
    >>> bool(cf.cone(cf.Geometry.from_messages([[1.0, 0.1], [0.1, 1.0]])).fits)
    True
    >>> bool(cf.cone(cf.Geometry.from_messages([[1.0, 0.0], [-1.0, 0.0]])).fits)
    False
    """
    gram = geometry.dot()
    here = jnp.ones(gram.shape[0], bool) if active is None else jnp.asarray(active) > 0
    length = jnp.sqrt(jnp.diagonal(gram))
    scale = jnp.where(length > 0, length, 1)
    cosine = gram / scale[:, None] / scale
    axis, along = nearest_point(cosine, here, steps)
    tolerance = 16 * jnp.finfo(gram.dtype).eps
    least = jnp.where(here, along, jnp.inf).min()
    size = jnp.sqrt(jnp.maximum(axis @ along, 0))
    margin = jnp.where(size > 0, least / jnp.where(size > 0, size, 1), 0)
    fits = least > tolerance
    nobody = ~here.any()
    return Cone(nobody | fits, jnp.where(nobody, 1, jnp.where(fits, margin, jnp.minimum(margin, 0))), axis)


def nearest_point(gram: jax.Array, here: jax.Array, steps: int) -> tuple[jax.Array, jax.Array]:
    """Weights of the point of the convex hull nearest to the origin, and its inner products with all points."""
    tolerance = 4 * jnp.finfo(gram.dtype).eps

    def gap(carry):
        weight, along, _ = carry
        worst = jnp.where(weight > 0, along, -jnp.inf).max()
        return worst - jnp.where(here, along, jnp.inf).min()

    def unfinished(carry):
        return (carry[2] < steps) & (gap(carry) > tolerance)

    def exchange(carry):
        weight, along, step = carry
        giver = jnp.where(weight > 0, along, -jnp.inf).argmax()
        taker = jnp.where(here, along, jnp.inf).argmin()
        curvature = gram[giver, giver] - 2 * gram[giver, taker] + gram[taker, taker]
        best = (along[giver] - along[taker]) / jnp.where(curvature > 0, curvature, 1)
        moved = jnp.where(curvature > 0, jnp.minimum(best, weight[giver]), weight[giver])
        weight = weight.at[giver].add(-moved).at[taker].add(moved)
        return weight, along + moved * (gram[:, taker] - gram[:, giver]), step + 1

    start = jnp.where(here, 1.0, 0.0).astype(gram.dtype) / jnp.maximum(here.sum(), 1)
    weight, _, _ = jax.lax.while_loop(unfinished, exchange, (start, gram @ start, jnp.int32(0)))
    return weight, gram @ weight
