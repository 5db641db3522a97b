"""One silo: a data holder's rows, and what arrays must be like to become some."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

PartName = Literal["train", "validation", "test"]
PARTS: tuple[str, ...] = get_args(PartName)
AS_CLASSES = "write them as 0 and 1 (y > 0) and say label_names=['-1', '1']"


def part_number(part: str) -> int:
    """The number that stands for a part."""
    if part not in PARTS:
        raise ValueError(f"there is no part {part!r}; the parts are {', '.join(PARTS)}")
    return PARTS.index(part)


@dataclass(frozen=True, eq=False)
class Silo:
    """One data holder's rows; `part` says for each row which part it belongs to (its place in `PARTS`)."""

    name: str
    X: np.ndarray  # [rows, features]
    y: np.ndarray  # [rows]
    part: np.ndarray  # [rows] int8

    def rows(self, part: PartName) -> tuple[np.ndarray, np.ndarray]:
        """X and y of one part, in the order of the rows."""
        chosen = self.part == part_number(part)
        return self.X[chosen], self.y[chosen]

    def count(self, part: PartName) -> int:
        """The number of rows of one part."""
        return int((self.part == part_number(part)).sum())


def place_of(names: Sequence[str], which: Any) -> int:
    """The place of a silo, given its name or its place."""
    if isinstance(which, str):
        if which not in names:
            raise KeyError(f"there is no silo {which!r}; the silos are {', '.join(names)}")
        return names.index(which)
    whole = hasattr(which, "dtype") and np.ndim(which) == 0 and np.issubdtype(which.dtype, np.integer)
    if isinstance(which, bool) or not (isinstance(which, int) or whole):
        raise TypeError(f"a silo is given by its name or its place (a whole number), not {which!r}")
    if not 0 <= which < len(names):
        raise IndexError(f"there is no silo {which}; there are {len(names)}, counted from 0")
    return int(which)


def fold_numbers(y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """A fold 0..k-1 for every row: class by class in random order, dealt out in turn."""
    classes = y if y.dtype.kind in "biu" or ((y == np.floor(y)).all() and len(np.unique(y)) <= 20) else np.zeros(len(y))
    order = np.concatenate([rng.permutation(np.flatnonzero(classes == c)) for c in np.unique(classes)])
    fold = np.empty(len(y), np.int64)
    fold[order] = (np.arange(len(y)) + rng.integers(k)) % k
    return fold


def signs_only(labels: Iterable[np.ndarray]) -> bool:
    """Whether all labels are -1 or 1, and both occur: classes, as many programs write them.

    -1 alone, and -1 beside 0 and 1, may as well be amounts.

    >>> signs_only([np.array([1, 1]), np.array([-1.0, 1.0])])
    True
    """
    return {value for y in labels for value in np.unique(y).tolist()} == {-1, 1}


def fits_int32(y: np.ndarray) -> bool:
    """Whether labels are whole numbers that 32 bits can hold."""
    return y.dtype.kind != "f" and (y.size == 0 or bool(np.abs(y.astype(np.float64)).max() < 2**31))


def check_names(names: tuple[str, ...], count: int) -> None:
    """Names must be as many as silos, and differ."""
    if len(names) != count:
        raise ValueError(f"{len(names)} names for {count} silos")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"silo names must differ, but {', '.join(twice)} occurs more than once")


def list_of_pairs(arrays: Any) -> list[Any]:
    """What was given for all silos, as a list."""
    wanted = "pass a list of (X, y) pairs, one per silo"
    if isinstance(arrays, Mapping):
        raise TypeError(f"a mapping is no list of pairs: {wanted}, and their names as names=[...]")
    if not isinstance(arrays, Iterable):
        raise TypeError(f"{type(arrays).__name__} is no list of pairs: {wanted}")
    pairs = list(arrays)
    if not pairs:
        raise ValueError(f"no silo given: {wanted}")
    return pairs


def check_pair(name: str, pair: Any) -> tuple[Any, Any]:
    """One silo's rows and labels."""
    if isinstance(pair, np.ndarray) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"silo {name!r}: give a pair (X, y) in a list with one pair per silo: [(X, y), ...]")
    return pair[0], pair[1]


def check_widths(silos: Sequence[Silo]) -> int:
    """The number of features, which all silos must share."""
    width = silos[0].X.shape[1:]
    for silo in silos:
        if silo.X.shape[1:] != width:
            raise ValueError(
                f"silo {silo.name!r} has {silo.X.shape[1]} features, but silo {silos[0].name!r} has {width[0]}"
            )
    if width[0] == 0:
        raise ValueError("X has no columns: there is nothing to learn from")
    return width[0]


def as_array(name: str, what: str, values: Any) -> np.ndarray:
    """Values as an array of their own, or an error that names the silo."""
    try:
        return np.array(np.ma.filled(values.astype(float), np.nan) if np.ma.isMaskedArray(values) else values)
    except ValueError as problem:
        raise ValueError(f"silo {name!r}: {what} is ragged: its rows must have the same length") from problem


def checked_silo(name: str, X: Any, y: Any) -> Silo:
    """A silo from arrays, or an error that says what is wrong with which."""
    X, y = as_array(name, "X", X), as_array(name, "y", y)
    if X.ndim != 2:
        raise ValueError(f"silo {name!r}: X must have rows and columns, but its shape is {X.shape}")
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(f"silo {name!r}: y must be one label per row ({len(X)}), but its shape is {y.shape}")
    if len(X) == 0:
        raise ValueError(f"silo {name!r} has no rows: leave it out")
    for what, array in (("X", X), ("y", y)):
        if array.dtype.kind not in "biuf":
            raise TypeError(f"silo {name!r}: {what} must hold numbers, not {array.dtype}")
    bad = ~np.isfinite(X.reshape(len(X), -1))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"silo {name!r}: {int(bad.sum())} value(s) of X are not finite, the first in row {row}, column {column}; "
            "fill or drop them"
        )
    if not np.isfinite(y).all():
        raise ValueError(f"silo {name!r}: {int((~np.isfinite(y)).sum())} label(s) are not finite; drop those rows")
    precision = np.float64 if X.dtype.kind != "f" else X.dtype
    return Silo(name, X.astype(precision), y, np.zeros(len(y), np.int8))
