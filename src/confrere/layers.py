"""Layers by name: which leaves of a model's parameters are meant, and cutting a model in two along them.

Parameters are mostly a dict of layers, each a dict of arrays. A `Filter` turns parameters into a tree of the same
structure that says leaf by leaf whether it is meant; it looks at names alone, so that it also fits messages. Names are
ordered as people order them (layer2 before layer10): jax forgets the order in which a dict was written.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax

from confrere.core import Tree

Filter = Callable[[Tree], Tree]  # parameters -> the same structure of booleans
Names = str | tuple[str, ...]
HEAD = "head"


def names_on(path: Any) -> tuple[str, ...]:
    """The names from the root of a tree to one of its leaves."""
    return tuple(jax.tree_util.keystr((key,), simple=True) for key in path)


def people_order(name: str) -> list[Any]:
    """A sorting key under which layer2 comes before layer10."""
    return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", name)]


def layer_names(params: Tree) -> tuple[str, ...]:
    """The names of the layers in order; none for a model that is a single layer, such as a linear one.

    >>> layer_names({"layer10": {"w": 1.0}, "layer2": {"w": 1.0, "b": 1.0}}), layer_names({"w": 1.0, "b": 1.0})
    (('layer2', 'layer10'), ())
    """
    paths = [names_on(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    return tuple(sorted({path[0] for path in paths if len(path) > 1}, key=people_order))


def where(params: Tree, meant: Callable[[tuple[str, ...]], bool]) -> Tree:
    """The tree of booleans that says of every leaf whether its names are meant."""
    return jax.tree_util.tree_map_with_path(lambda path, _: meant(names_on(path)), params)


def layers(keep: Names) -> Filter:
    """The layers of the given names, or "head": the layer of that name if there is one, else the last layer.

    A name means every leaf below it, wherever it stands. Names that the model has not are refused. The head of a model
    with a single layer is the whole model.

    >>> layers("head")({"layer0": {"w": 1.0}, "layer1": {"w": 1.0}})
    {'layer0': {'w': False}, 'layer1': {'w': True}}
    """

    def chosen(params: Tree) -> Tree:
        known = {name for path, _ in jax.tree_util.tree_leaves_with_path(params) for name in names_on(path)}
        names = {keep} if isinstance(keep, str) else set(keep)
        if keep == HEAD and HEAD not in known:
            names = set(layer_names(params)[-1:]) or known
        unknown = sorted(names - known)
        if unknown:
            has = ", ".join(sorted(known, key=people_order))
            raise ValueError(f"the model has no layer named {', '.join(unknown)}; it has {has}")
        return where(params, lambda path: not names.isdisjoint(path))

    return chosen


def norms() -> Filter:
    """The normalisation layers: all leaves below a name that begins with "norm"."""

    def chosen(params: Tree) -> Tree:
        found = where(params, lambda path: any(name.startswith("norm") for name in path))
        if not any(jax.tree.leaves(found)):
            has = ", ".join(layer_names(params)) or "a single layer"
            raise ValueError(f"the model has no normalisation layer (a name that begins with 'norm'); it has {has}")
        return found

    return chosen


def split(tree: Tree, chosen: Filter) -> tuple[Tree, Tree]:
    """The chosen leaves, and the others; None stands where a leaf is on the other side."""
    mask = chosen(tree)

    def side(want: bool) -> Tree:
        return jax.tree.map(lambda meant, a: a if meant == want else None, mask, tree)

    return side(True), side(False)


def merge(one: Tree, two: Tree) -> Tree:
    """The whole tree again, from its two sides."""
    return jax.tree.map(lambda a, b: b if a is None else a, one, two, is_leaf=lambda a: a is None)


def checked_names(keep: str | Sequence[str]) -> Names:
    """Names as a user gives them, as something that can be compared and hashed."""
    if isinstance(keep, str) and keep:
        return keep
    names = tuple(keep) if isinstance(keep, Sequence) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"keep must be 'head' or the names of layers, such as ('layer1',), not {keep!r}")
    return names
