"""What recipes share: checks at the door, and the usual servers."""

import math
from typing import Any, Literal

import optax

from confrere import mixers
from confrere import weights as weighting
from confrere.checks import check_numbers
from confrere.clients.batches import plan_for
from confrere.core import Mixer, Weights, weighted
from confrere.recipe import Recipe

Shares = Literal["size", "uniform"]


def shares(weights: Shares) -> Weights:
    """Who counts for how much in a plain average."""
    return weighting.uniform() if weights == "uniform" else weighting.by_size()


def averaging(weights: Shares) -> Mixer:
    """A server that averages the local models."""
    return mixers.server(weighted(shares(weights)))


def stepping(weights: Weights, lr) -> Mixer:
    """A server that steps by the weighted mean gradient."""
    return mixers.server(weighted(weights), x=mixers.step(optax.sgd(lr)))


def recipe_of(maker, name: str, static: dict[str, Any], **hyper: Any) -> Recipe:
    """Check a user's words and numbers at the door, and make the recipe."""
    plan_for(static["order"], static["batch"], static.get("steps"), static.get("epochs"))
    if static.get("weights", "size") not in ("size", "uniform"):
        raise ValueError(f"weights must be 'size' or 'uniform', not {static['weights']!r}")
    optional = ("momentum", "weight_decay", "l2", "size_prior", "own_share")
    needed = {k: v for k, v in hyper.items() if k not in ("user", "prior") and not (k in optional and v is None)}
    check_numbers(**{k: v for k, v in needed.items() if k != "size_prior"})
    if "size_prior" in needed:
        check_numbers(-math.inf, size_prior=needed["size_prior"])
    if "user" in hyper and hyper["user"] is None:
        raise ValueError("user must be the name or the place of a silo")
    return Recipe.of(maker, name, static, **hyper)
