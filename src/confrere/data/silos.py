"""Silos: n local data sets with names, each with rows for training, validation and test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import jax.numpy as jnp
import numpy as np

from confrere.core import Block
from confrere.data.silo import (
    AS_CLASSES,
    PARTS,
    PartName,
    Silo,
    check_names,
    check_pair,
    check_widths,
    checked_silo,
    fits_int32,
    fold_numbers,
    list_of_pairs,
    place_of,
    signs_only,
)
from confrere.data.source import Hand, Kind, Shared, Source, Split

if TYPE_CHECKING:
    from confrere.data.intake import Encoding


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
    origin: str = "arrays"  # where the rows come from, in words
    kind: Kind = "real"  # artificial: real rows in silos that never were; synthetic: invented rows
    shared: tuple[Shared, ...] = ()  # what left each silo so that their features agree
    source: Source | None = field(default=None, repr=False)
    encoding: "Encoding | None" = field(default=None, repr=False)  # how rows of a table became features
    notes: tuple[str, ...] = ()  # what there is to say about the tables, warnings included
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

        Labels of a classification are class numbers 0, 1, ...; use `split` to set test rows aside. Labels -1 and 1 are
        amounts unless they are written as 0 and 1, with `label_names=["-1", "1"]` so that predictions have their names.
        `personalise` asks which is meant if all silos together have both and nothing else; if they have -1 alone, or
        -1, 0 and 1, it takes them as amounts without a word, and models of classes refuse them.
        """
        pairs = list_of_pairs(arrays)
        names = tuple(str(i) for i in range(len(pairs))) if names is None else tuple(map(str, names))
        check_names(names, len(pairs))
        silos = tuple(checked_silo(name, *check_pair(name, pair)) for name, pair in zip(names, pairs, strict=True))
        width = check_widths(silos)
        features = tuple(f"x{j}" for j in range(width)) if feature_names is None else tuple(feature_names)
        if len(features) != width:
            raise ValueError(f"{len(features)} feature names for {width} columns")
        return cls(silos, features, None if label_names is None else tuple(map(str, label_names)))

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        label: str,
        silo: str | None,
        drop: str | Sequence[str] = (),
        categorical: str | Sequence[str] = (),
        numeric: str | Sequence[str] = (),
        missing: Mapping[str, Any] | None = None,
        scale: Literal["shared", "silo"] | None = "shared",
        task: Literal["classification", "regression"] | None = None,
        min_level: int = 1,
    ) -> "Silos":
        """From one table with a column that says whose rows they are, all rows for training.

        `table` is a pandas, polars or pyarrow table, or the path of a CSV or Parquet file; `silo=None` takes all rows
        as one silo, to be divided later. `drop`, `categorical` and `numeric` name columns; `missing` gives for a column
        the values that mean that there is none, such as `{"chol": [0]}`. `scale` standardises numbers with statistics
        that silos share, each silo with its own ("silo": none leave it), or not at all (None). `task` is guessed from
        the label: text, booleans and few whole numbers are classes. A level seen in fewer than `min_level` training
        rows of a silo is not named by it, and of a column that fewer know it says nothing: mean and scale are then
        those of the other silos. `silos.shared` lists what left the silos, `silos.notes` what was noticed.

        >>> import polars as pl, confrere as cf
        >>> table = pl.DataFrame(
        ...     {
        ...         "age": [40, 60, 50, None],
        ...         "sex": ["f", "m", "m", "m"],
        ...         "ill": ["no", "yes", "no", "yes"],
        ...         "clinic": ["a", "a", "b", "b"],
        ...     }
        ... )
        >>> silos = cf.Silos.from_table(table, label="ill", silo="clinic")
        >>> silos.names, silos.feature_names, silos.label_names
        (('a', 'b'), ('age', 'age=missing', 'sex=m'), ('no', 'yes'))
        >>> silos["b"].X.tolist()
        [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
        """
        from confrere.data import intake

        options = intake.make_options(label, drop, categorical, numeric, missing, scale, task, min_level)
        return intake.from_table(table, options, silo)

    @classmethod
    def from_folder(
        cls,
        folder: "str | PathLike[str]",
        *,
        label: str,
        drop: str | Sequence[str] = (),
        categorical: str | Sequence[str] = (),
        numeric: str | Sequence[str] = (),
        missing: Mapping[str, Any] | None = None,
        scale: Literal["shared", "silo"] | None = "shared",
        task: Literal["classification", "regression"] | None = None,
        min_level: int = 1,
    ) -> "Silos":
        """From a folder with one CSV or Parquet file per silo, named after it; the options are those of `from_table`.

        >>> import pathlib, tempfile, confrere as cf
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "north.csv").write_text("age,ill\\n40,no\\n60,yes\\n")
        >>> _ = (folder / "south.csv").write_text("age,ill\\n50,no\\n70,yes\\n")
        >>> cf.Silos.from_folder(folder, label="ill").names
        ('north', 'south')
        """
        from confrere.data import intake

        options = intake.make_options(label, drop, categorical, numeric, missing, scale, task, min_level)
        return intake.from_folder(folder, options)

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

        def cut(silo: Silo) -> np.ndarray:
            place = rng.permutation(len(silo.y))
            tests, both = round(test * len(place)), round((test + validation) * len(place))
            part = np.where(place < tests, PARTS.index("test"), np.where(place < both, PARTS.index("validation"), 0))
            return part.astype(np.int8)

        return self.with_parts([cut(s) for s in self.silos])

    def halve(self) -> "Silos":
        """The halves of the Weight Erosion paper: the first 1 + floor(n/2) rows are for test, the rest for training."""

        def cut(silo: Silo) -> np.ndarray:
            test = np.arange(len(silo.y)) < 1 + len(silo.y) // 2
            return np.where(test, PARTS.index("test"), PARTS.index("train")).astype(np.int8)

        return self.with_parts([cut(s) for s in self.silos])

    def folds(self, k: int = 5, seed: int = 0) -> Iterator["Silos"]:
        """k times the same silos, each time another k-th of every silo's rows for test.

        Where labels are class numbers every fold gets its share of each class.
        """
        if k < 2:
            raise ValueError(f"there must be 2 folds or more, not {k}")
        rng = np.random.default_rng(seed)
        fold = [fold_numbers(s.y, k, rng) for s in self.silos]
        for j in range(k):
            yield self.with_parts([np.where(f == j, PARTS.index("test"), 0).astype(np.int8) for f in fold])

    def with_parts(self, parts: Sequence[np.ndarray]) -> "Silos":
        """The same rows, each in the part that is given for it; features from tables are made anew."""
        if self.source is not None:
            return replace(self.source.encode(parts), origin=self.origin, kind=self.kind)
        return replace(self, silos=tuple(replace(s, part=p) for s, p in zip(self.silos, parts, strict=True)))

    def only(self, names: Sequence[int | str]) -> "Silos":
        """Some of the silos, in their order; features from tables are made anew from these silos' rows alone.

        >>> import numpy as np, confrere as cf
        >>> silos = cf.Silos.from_arrays([(np.eye(2), [0, 1])] * 3, names=["a", "b", "c"])
        >>> silos.only(["c", "a"]).names
        ('a', 'c')
        """
        chosen = sorted({self.index(name) for name in names})
        if not chosen:
            raise ValueError("no silo is named")
        kept = tuple(self.silos[i] for i in chosen)
        if len(kept) == len(self):
            return self
        if self.source is None:
            return replace(self, silos=kept, shared=tuple(s for s in self.shared if s.silo in {k.name for k in kept}))
        ends = np.cumsum([len(silo.y) for silo in self.silos])
        hands = [Hand(self.names[i], np.arange(ends[i] - len(self.silos[i].y), ends[i])) for i in chosen]
        made = self.source.deal(hands).encode([silo.part for silo in kept])
        return replace(made, origin=self.origin, kind=self.kind, notes=self.notes)

    def divide(self, how: Split, seed: int = 0) -> "Silos":
        """The same rows dealt out to other silos, all for training; see `confrere.data.splits`.

        >>> import numpy as np, confrere as cf
        >>> silos = cf.Silos.from_arrays([(np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1])])
        >>> silos.divide(cf.data.splits.iid(3)).sizes()
        (2, 2, 2)
        """
        from confrere.data.dealing import deal

        return deal(self, how, seed)

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

        return replace(self, silos=tuple(seen(i, s) for i, s in enumerate(self.silos)), source=None)

    def classes(self) -> int:
        """The number of classes, if the labels are class numbers."""
        if "classes" not in self._known:
            self._known["classes"] = self._count_classes()
        return self._known["classes"]

    def _count_classes(self) -> int:
        for silo in self.silos:
            wrong = (silo.y < 0) | (silo.y != np.floor(silo.y))
            if wrong.any():
                hint = f"{AS_CLASSES}; " if signs_only(s.y for s in self.silos) else ""
                raise ValueError(
                    f"silo {silo.name!r} has the label {silo.y[wrong][0]}, which is no class number (0, 1, ...); {hint}"
                    "for a regression choose a model such as models.linear()"
                )
        highest = max(int(s.y.max(initial=0)) for s in self.silos) + 1
        if self.label_names is not None and highest > len(self.label_names):
            raise ValueError(f"there is a label {highest - 1}, but only {len(self.label_names)} label names")
        return max(2, highest) if self.label_names is None else len(self.label_names)

    def block(self, part: PartName = "train", rows: int | None = None, places: Sequence[int] | None = None) -> Block:
        """All silos' rows of one part, padded to one block (at least one row, or `rows` if given).

        With `places` those of some silos alone, padded as all are; such a block is not kept.
        """
        precision = np.dtype(jnp.result_type(float))
        if places is not None:
            return self._make_block(part, rows, precision, places)
        key = ("block", part, rows, precision)
        if key not in self._known:
            self._known[key] = self._make_block(part, rows, precision, range(len(self)))
        return self._known[key]

    def _make_block(self, part: PartName, rows: int | None, precision: np.dtype[Any], places: Sequence[int]) -> Block:
        counts = self.sizes(part)
        m = max(1, *counts) if rows is None else rows
        if m < max(counts):
            raise ValueError(f"a block of {m} rows is too small: the largest silo has {max(counts)}")
        X = np.zeros((len(places), m, *self.silos[0].X.shape[1:]), precision)
        y = np.zeros((len(places), m), np.int32 if all(fits_int32(s.y) for s in self.silos) else precision)
        for i, silo in enumerate(self.silos[place] for place in places):
            own_X, own_y = silo.rows(part)
            with np.errstate(over="ignore"):
                X[i, : len(own_y)], y[i, : len(own_y)] = own_X, own_y
            if np.isinf(X[i]).sum() > np.isinf(own_X).sum() or np.isinf(y[i]).sum() > np.isinf(own_y).sum():
                raise ValueError(f"silo {silo.name!r} has numbers too large for {precision}: rescale them")
        for array in (X, y):
            array.flags.writeable = False  # the block is kept, and handed out again
        size = np.array([counts[place] for place in places], np.int32)
        return Block(X, y, size, np.array(places, np.int32))  # type: ignore[arg-type]
