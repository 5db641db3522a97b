"""How strongly models are coupled, coordinate by coordinate or leaf by leaf, and whether models fit these strengths."""

from typing import Any

import jax
import numpy as np

from confrere.core import Tree

KINDS = "penalty must be 'squared', 'norm' or strengths: numbers of 0 or more"


def strengths_of(penalty: Any) -> Any:
    """How strongly every coordinate, or every leaf, is coupled; 1 for the named penalties."""
    if isinstance(penalty, str):
        if penalty not in ("squared", "norm"):
            raise ValueError(f"{KINDS}, not {penalty!r}")
        return 1.0
    try:
        given = jax.tree.map(lambda s: np.asarray(s, float), penalty, is_leaf=lambda s: type(s) in (list, tuple))
    except (TypeError, ValueError):
        raise ValueError(f"{KINDS}, not {penalty!r}") from None
    leaves = jax.tree.leaves(given)
    if not leaves:
        raise ValueError(f"{KINDS}, not {penalty!r}")
    if any((~np.isfinite(s) | (s < 0)).any() for s in leaves):
        raise ValueError("strengths of a penalty must be finite and 0 or more")
    return given


def check_strengths(strengths: Any, d: int) -> None:
    """Refuse strengths that are neither one number nor one for each of d parameters."""
    if not isinstance(strengths, float | np.ndarray):
        raise ValueError(f"models are arrays of {d} parameters: penalty must be one number or [{d}], not {strengths!r}")
    if np.shape(strengths) not in ((), (d,)):
        raise ValueError(f"a model has {d} parameters, but penalty has {np.shape(strengths)} strengths")


def check_stacked(W: Tree, strengths: Any, n: int, name: str) -> None:
    """Refuse models that are not stacked over n nodes, or have other parts than the strengths."""
    shapes = [np.shape(a) for a in jax.tree.leaves(W)]
    wrong = [shape for shape in shapes if shape[:1] != (n,)]
    if wrong or not shapes:
        part = f"a part has the shape {wrong[0]}" if wrong else "there are none"
        raise ValueError(f"{name} must be stacked over {n} nodes, but {part}")
    given = jax.tree.leaves(strengths)
    if isinstance(strengths, float | np.ndarray):
        given = given * len(shapes)
    elif jax.tree.structure(strengths) != jax.tree.structure(W):
        raise ValueError(f"{name} have other parts than the penalty: {jax.tree.structure(W)}")
    for strength, shape in zip(given, shapes, strict=True):
        if np.shape(strength) not in ((), shape[1:]):
            raise ValueError(f"{name} have a part of shape {shape[1:]}, but its strengths {np.shape(strength)}")
