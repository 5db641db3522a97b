"""Normalisation of channels, for pictures [c, h, w, b]: per row in groups (the default), or over the batch.

Group norm (Wu and He, 2018) looks at one row at a time: nothing is shared between rows or silos, training and
prediction are the same function, and padding cannot matter. It is what federated work mostly uses, since a batch of a
skewed silo says little about the others' (Hsieh et al., The non-IID data quagmire of decentralized machine learning,
2020).

Batch norm (Ioffe and Szegedy, 2015) normalises with mean and variance over the live rows of the batch, and predicts
with running ones. These are parameters like any other here, `mean` and `var` beside `scale` and `shift` in a sub-dict
named `norm`, so that a model stays a plain tree: averages average them, and what keeps layers at home (FedBN) can keep
them by that name. Their gradient is

    running - batch,

from a term of the loss whose value is 0: plain SGD moves them by lr (batch - running), which is the usual running mean
with momentum lr. So decay and momentum of the optimizer act on them, too, and a server's adaptive step scales them. The
batch's variance is the biased one in both places.
"""

from math import gcd
from typing import Literal, get_args

import jax
import jax.numpy as jnp

from confrere.core import Tree

Norm = Literal["group", "batch"]
GROUPS = 8
EPSILON = 1e-5


def check_norm(norm: str) -> None:
    """Refuse a norm that there is not."""
    if norm not in get_args(Norm):
        raise ValueError(f"norm must be one of {', '.join(get_args(Norm))}, not {norm!r}")


def init_norm(norm: Norm, channels: int) -> Tree:
    """Scale 1 and shift 0; for batch norm also a running mean of 0 and variance of 1."""
    params = {"scale": jnp.ones(channels), "shift": jnp.zeros(channels)}
    if norm == "batch":
        params |= {"mean": jnp.zeros(channels), "var": jnp.ones(channels)}
    return params


def normalised(norm: Norm, params: Tree, x: jax.Array, live: jax.Array | None) -> tuple[jax.Array, jax.Array | float]:
    """The channels normalised, and the term of the loss that makes running statistics follow (0 in value).

    `live` [b] says which rows of a batch count; None: predict with what is known already.
    """
    if norm == "group":
        return scaled(params, in_groups(x)), 0.0
    if live is None:
        mean, var, term = params["mean"], jnp.maximum(params["var"], 0), 0.0
    else:
        mean, var = over_batch(x, live)
        term = follow(params["mean"], mean, live) + follow(params["var"], var, live)
    return scaled(params, (x - across(mean)) * across(jax.lax.rsqrt(var + EPSILON))), term


def in_groups(x: jax.Array) -> jax.Array:
    """Every row with mean 0 and variance 1 in each group of channels (8, or as many as divide the channels)."""
    c, h, w, b = x.shape
    groups = gcd(c, GROUPS)
    g = x.reshape(groups, c // groups * h * w, b)
    centred = g - g.mean(axis=1, keepdims=True)
    var = jnp.square(centred).mean(axis=1, keepdims=True)
    return (centred * jax.lax.rsqrt(var + EPSILON)).reshape(c, h, w, b)


def over_batch(x: jax.Array, live: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of every channel over the live rows' pixels [c]; 0 if no row is live."""
    _, h, w, _ = x.shape
    weight = live.astype(x.dtype) / (jnp.maximum(live.sum(), 1) * h * w).astype(x.dtype)
    mean = (x * weight).sum(axis=(1, 2, 3))
    return mean, (jnp.square(x - across(mean)) * weight).sum(axis=(1, 2, 3))


def follow(running: jax.Array, batch: jax.Array, live: jax.Array) -> jax.Array:
    """0, with the gradient running - batch; a batch without a live row pulls at nothing."""
    apart = jnp.where(live.any(), running - jax.lax.stop_gradient(batch), 0)
    half = 0.5 * jnp.square(apart).sum()
    return half - jax.lax.stop_gradient(half)


def scaled(params: Tree, x: jax.Array) -> jax.Array:
    """Scale and shift, channel by channel."""
    return x * across(params["scale"]) + across(params["shift"])


def across(values: jax.Array) -> jax.Array:
    """Numbers per channel [c], for pictures."""
    return values[:, None, None, None]
