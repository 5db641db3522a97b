"""Silos: n local data sets with names, each with rows for training, validation and test."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np

from confrere.core import Block

PartName = Literal["train", "validation", "test"]
PARTS: tuple[str, ...] = get_args(PartName)


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


@dataclass(frozen=True, eq=False)
class Silos:
    """Several silos that agree on features and label.

    >>> import numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.eye(2), [0, 1]), (np.ones((3, 2)), [1, 1, 0])], names=["a", "b"])
    >>> silos.names, silos.sizes("train"), silos.index("b")
    (('a', 'b'), (2, 3), 1)
    """

    silos: tuple[Silo, ...]
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...] | None = None  # the classes in order; None: numbers as they are
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)  # found once, kept

    @classmethod
    def from_arrays(
        cls,
        arrays: Iterable[tuple[Any, Any]],
        names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> "Silos":
        """From one (X, y) pair per silo, all rows for training. Numbers are taken as they are.

        Labels of a classification are class numbers 0, 1, ...; use `split` to set test rows aside.
        """
        pairs = list(arrays)
        if not pairs:
            raise ValueError("no silo given: pass a list of (X, y) pairs, one per silo")
        names = tuple(str(i) for i in range(len(pairs))) if names is None else tuple(map(str, names))
        check_names(names, len(pairs))
        silos = tuple(checked_silo(name, *pair) for name, pair in zip(names, pairs, strict=True))
        width = check_widths(silos)
        features = tuple(f"x{j}" for j in range(width)) if feature_names is None else tuple(feature_names)
        if len(features) != width:
            raise ValueError(f"{len(features)} feature names for {width} columns")
        return cls(silos, features, None if label_names is None else tuple(map(str, label_names)))

    def __len__(self) -> int:
        return len(self.silos)

    def __getitem__(self, which: int | str) -> Silo:
        return self.silos[self.index(which)]

    @property
    def names(self) -> tuple[str, ...]:
        """The silos' names, in order."""
        return tuple(s.name for s in self.silos)

    def sizes(self, part: PartName = "train") -> tuple[int, ...]:
        """The number of rows of a part, silo by silo."""
        key = ("sizes", part)
        if key not in self._known:
            self._known[key] = tuple(s.count(part) for s in self.silos)
        return self._known[key]

    def index(self, which: int | str) -> int:
        """The place of a silo, given its name or its place."""
        return place_of(self.names, which)

    def split(self, test: float = 0.5, validation: float = 0.0, seed: int = 0) -> "Silos":
        """Set a share of each silo's rows aside at random, for test and for validation."""
        if min(test, validation) < 0 or test + validation >= 1:
            raise ValueError("test and validation are shares of the rows: 0 or more, together below 1")
        rng = np.random.default_rng(seed)

        def cut(silo: Silo) -> Silo:
            place = rng.permutation(len(silo.y))
            tests, both = round(test * len(place)), round((test + validation) * len(place))
            part = np.where(place < tests, PARTS.index("test"), np.where(place < both, PARTS.index("validation"), 0))
            return replace(silo, part=part.astype(np.int8))

        return replace(self, silos=tuple(cut(s) for s in self.silos))

    def for_user(self, user: int | str, others: Literal["all", "train"] = "all") -> "Silos":
        """The data of one user's run: the user keeps its parts, the others give all their rows for training.

        That is how the Weight Erosion paper does it; `others="train"` keeps the others' test and validation
        rows out altogether, so that several users' runs never train on one another's test rows.
        """
        if others not in ("all", "train"):
            raise ValueError(f"others must be 'all' or 'train', not {others!r}")
        chosen = self.index(user)

        def seen(i: int, silo: Silo) -> Silo:
            if i == chosen:
                return silo
            if others == "all":
                return replace(silo, part=np.zeros_like(silo.part))
            X, y = silo.rows("train")
            return Silo(silo.name, X, y, np.zeros(len(y), np.int8))

        return replace(self, silos=tuple(seen(i, s) for i, s in enumerate(self.silos)))

    def classes(self) -> int:
        """The number of classes, if the labels are class numbers."""
        if "classes" not in self._known:
            self._known["classes"] = self._count_classes()
        return self._known["classes"]

    def _count_classes(self) -> int:
        for silo in self.silos:
            wrong = (silo.y < 0) | (silo.y != np.floor(silo.y))
            if wrong.any():
                raise ValueError(
                    f"silo {silo.name!r} has the label {silo.y[wrong][0]}, which is no class number (0, 1, ...); "
                    "for a regression choose a model such as models.linear()"
                )
        highest = max(int(s.y.max(initial=0)) for s in self.silos) + 1
        if self.label_names is not None and highest > len(self.label_names):
            raise ValueError(f"there is a label {highest - 1}, but only {len(self.label_names)} label names")
        return max(2, highest) if self.label_names is None else len(self.label_names)

    def block(self, part: PartName = "train", rows: int | None = None) -> Block:
        """All silos' rows of one part, padded to one block (at least one row, or `rows` if given)."""
        precision = np.dtype(jnp.result_type(float))
        key = ("block", part, rows, precision)
        if key not in self._known:
            self._known[key] = self._make_block(part, rows, precision)
        return self._known[key]

    def _make_block(self, part: PartName, rows: int | None, precision: np.dtype[Any]) -> Block:
        counts = self.sizes(part)
        m = max(1, *counts) if rows is None else rows
        if m < max(counts):
            raise ValueError(f"a block of {m} rows is too small: the largest silo has {max(counts)}")
        X = np.zeros((len(self), m, *self.silos[0].X.shape[1:]), precision)
        y = np.zeros((len(self), m), np.int32 if all(fits_int32(s.y) for s in self.silos) else precision)
        for i, silo in enumerate(self.silos):
            own_X, own_y = silo.rows(part)
            with np.errstate(over="ignore"):
                X[i, : counts[i]], y[i, : counts[i]] = own_X, own_y
            if np.isinf(X[i]).sum() > np.isinf(own_X).sum() or np.isinf(y[i]).sum() > np.isinf(own_y).sum():
                raise ValueError(f"silo {silo.name!r} has numbers too large for {precision}: rescale them")
        for array in (X, y):
            array.flags.writeable = False  # the block is kept, and handed out again
        return Block(X, y, np.asarray(counts, np.int32), np.arange(len(self), dtype=np.int32))  # type: ignore[arg-type]


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


def check_widths(silos: Sequence[Silo]) -> int:
    """The number of features, which all silos must share."""
    width = silos[0].X.shape[1:]
    for silo in silos:
        if silo.X.shape[1:] != width:
            raise ValueError(
                f"silo {silo.name!r} has {silo.X.shape[1]} features, but silo {silos[0].name!r} has {width[0]}"
            )
    return width[0]


def as_array(name: str, what: str, values: Any) -> np.ndarray:
    """Values as an array of their own, or an error that names the silo."""
    try:
        return np.array(values)
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
