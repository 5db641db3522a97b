"""The rows of nodes and silos as users give them, checked: errors name the node or silo whose rows they are.

A node without labels (None, or no row) has no loss, and takes its neighbours' model; a silo that is compared with
others must have some.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from confrere.checks import real_array

NO_LISTS: tuple[type, ...] = (str, bytes, dict, set)  # though they have a length


def check_each(n: int, of: str = "nodes", **given: Any) -> None:
    """Refuse what does not have one array for each of n nodes or silos."""
    for name, value in given.items():
        count = count_of(value)
        if count != n:
            found = "none" if count is None else count
            raise ValueError(f"{name} must have an array for each of {n} {of}, not {found}")


def count_of(given: Any) -> int | None:
    """How many arrays were given; None: it is no sequence of any."""
    try:
        return None if isinstance(given, NO_LISTS) else len(given)
    except TypeError:
        return None


def row_blocks(
    X: Any, y: Any, n: int, nodes: Sequence[int] | np.ndarray | None = None, labels: str = "y", d: int | None = None
) -> tuple[Any, Any]:
    """The rows and labels of every node, checked; a node without labels (None, or no row) has none of either.

    `nodes`: what the n nodes are called in messages; `labels`: what the argument is called; `d`: how many features the
    problem has, where it is known.
    """
    check_each(n, X=X, **{labels: y})
    nodes = range(n) if nodes is None else nodes
    X, y = (np.asarray(a) if hasattr(a, "shape") else a for a in (X, y))
    if stacked(X, 3) and stacked(y, 2) and y.shape == X.shape[:2] and X.shape[2] > 0 and d in (None, X.shape[2]):
        check_finite(X, y, nodes)
        return X, y
    matrices = [
        None if a is None else real_array(f"X of node {i}", a, None, False) for i, a in zip(nodes, X, strict=True)
    ]
    features = [a.shape[1] for a in matrices if a is not None and a.ndim == 2]
    if not features or not features[0]:
        raise ValueError("X must have a matrix [m_i, d] with at least one feature for at least one node")
    d = features[0] if d is None else d
    pairs = [one_block(f"node {i}", a, b, d, labels) for i, a, b in zip(nodes, matrices, y, strict=True)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def stacked(given: Any, axes: int) -> bool:
    """Whether this is one array of real numbers with so many axes."""
    return isinstance(given, np.ndarray) and given.ndim == axes and given.dtype.kind in "fiub"


def check_finite(X: np.ndarray, y: np.ndarray, nodes: Sequence[int] | np.ndarray) -> None:
    """Refuse values that are not finite, naming the node."""
    broken = ~(np.isfinite(X).all(axis=(1, 2)) & np.isfinite(y).all(axis=1))
    if broken.any():
        raise ValueError(f"node {nodes[int(broken.argmax())]} has a value that is not finite; leave such rows out")


def one_block(who: str, X: Any, y: Any, d: int | None = None, labels: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """The rows [m_i, d] and labels [m_i] of one node or silo; without labels, none of either."""
    answers = np.zeros(0) if y is None else real_array(f"{labels} of {who}", y, None, False)
    if answers.size == 0:
        return np.zeros((0, d or 0)), np.zeros(0)
    rows = real_array(f"X of {who}", X, None, False)
    if rows.ndim != 2 or answers.shape != rows.shape[:1]:
        raise ValueError(
            f"{who} has X of shape {rows.shape} and {labels} of shape {answers.shape}, not [m_i, d] and [m_i]"
        )
    if d is not None and rows.shape[1] != d:
        raise ValueError(f"{who} has {rows.shape[1]} features, where {d} are needed: all have the same")
    if not (np.isfinite(rows).all() and np.isfinite(answers).all()):
        raise ValueError(f"{who} has a value that is not finite; leave such rows out")
    return rows, answers


def one_regression(X: Any, y: Any, labels: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """The rows [m, d] and labels [m] of a single regression, of at least one row."""
    rows, answers = real_array("X", X, "[m, d]"), real_array(labels, y, "[m]")
    if len(rows) != len(answers) or not rows.size:
        raise ValueError(
            f"X must be [m, d] and {labels} [m], of one row at least, not of shapes {rows.shape} and {answers.shape}"
        )
    return rows, answers


def silo_pairs(X: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows and labels of every silo, if each has some."""
    check_labelled(y)
    if count_of(X) != len(y):
        raise ValueError(f"X and y must have the rows of the same silos, not of {count_of(X)} and {len(y)}")
    d = one_block("silo 0", next(iter(X)), next(iter(y)))[0].shape[1]
    return [one_block(f"silo {i}", a, b, d) for i, (a, b) in enumerate(zip(X, y, strict=True))]


def silo_rows(rows: Any, least: int = 1) -> list[np.ndarray]:
    """The rows of every silo as matrices of the same features, if each has at least so many."""
    check_some("rows", rows)
    found: list[np.ndarray] = []
    for i, given in enumerate(rows):
        if given is None or count_of(given) == 0:
            raise ValueError(f"silo {i} has no rows [m_i, d]: leave it out")
        a = real_array(f"rows of silo {i}", given, None, False)
        if a.ndim != 2 or not a.size or a.shape[1] != (found or [a])[0].shape[1]:
            raise ValueError(f"silo {i} has rows of shape {a.shape}, not [m_i, d] with the features of silo 0")
        if len(a) < least:
            raise ValueError(f"silo {i} has {len(a)} rows, where {least} are needed: leave it out")
        if not np.isfinite(a).all():
            raise ValueError(f"silo {i} has a value that is not finite; leave such rows out")
        found.append(a)
    return found


def silo_labels(y: Any) -> list[np.ndarray]:
    """The labels of every silo [m_i], amounts, if each has some."""
    check_labelled(y)
    return [real_array(f"y of silo {i}", b, "[m_i]") for i, b in enumerate(y)]


def silo_classes(y: Any) -> list[np.ndarray]:
    """The labels of every silo, numbers or words, if each has some."""
    check_labelled(y)
    found = [plain_labels(f"y of silo {i}", b, "one label per row [m_i]") for i, b in enumerate(y)]
    words = [b.dtype.kind in "US" for b in found]
    if len(set(words)) > 1:
        raise ValueError(f"silo {words.index(not words[0])} and silo 0 have labels of two kinds, words and numbers")
    return found


def plain_labels(name: str, given: Any, what: str) -> np.ndarray:
    """Words or numbers [m], without gaps."""
    try:
        found = np.asarray(given)
        found = np.array(found.tolist()) if found.dtype == object else found
    except ValueError:
        found = np.asarray(None)
    if found.ndim != 1 or found.dtype == object or (found.dtype.kind == "f" and np.isnan(found).any()):
        raise ValueError(f"{name} must be {what}, all of them words or all numbers, and none missing")
    return found


def check_some(name: str, given: Any) -> None:
    """Refuse what has no silo."""
    if not count_of(given):
        raise ValueError(f"{name} must have an array for every silo, and there is none")


def check_labelled(y: Any) -> None:
    """Refuse a silo that has no labels."""
    check_some("y", y)
    for i, given in enumerate(y):
        if given is None or count_of(given) == 0:
            raise ValueError(
                f"silo {i} has no labels, which say how alike it is to others: leave it out, or join it by what it has"
            )


def noise_of(noise: Any, n: int, rows: Sequence[np.ndarray] | None = None) -> list[np.ndarray]:
    """The errors of every node's labels [m_i], as many as it has labels; None or none, where it has no labels.

    `rows`: the labels of every node, where they are known.
    """
    check_each(n, noise=noise)
    found = [np.zeros(0) if e is None else real_array(f"noise of node {i}", e, "[m_i]") for i, e in enumerate(noise)]
    for i, e in enumerate(found):
        if rows is not None and len(e) != len(rows[i]):
            raise ValueError(f"node {i} has {len(rows[i])} labels, but {len(e)} values of noise: each label has one")
    return found


def models_of(name: str, given: Any, n: int | None = None, d: int | None = None) -> np.ndarray:
    """Models [n, d], also those of a run that went off to infinity."""
    found = real_array(name, given, None, False)
    if found.ndim != 2 or n not in (None, len(found)) or d not in (None, found.shape[1]):
        shape = f"({'n' if n is None else n}, {'d' if d is None else d})"
        over = "the nodes" if n is None else f"{n} nodes"
        raise ValueError(f"{name} must have the shape {shape}, models stacked over {over}, not {found.shape}")
    return found


def vector_of(name: str, given: Any, d: int) -> np.ndarray:
    """A model [d], one number for every feature."""
    found = real_array(name, given, "[d]")
    if len(found) != d:
        raise ValueError(f"{name} must have a number for each of {d} features, not {len(found)}")
    return found
