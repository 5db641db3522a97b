"""Dealing rows out to other silos: what `Silos.divide` does with a split, and the source behind silos of arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from confrere.data.silo import check_names
from confrere.data.silos import Silos
from confrere.data.source import Hand, Pool, Shared, Source, Split

ALL_TRAIN = np.int8(0)


@dataclass(frozen=True, eq=False)
class Arrays:
    """Rows that are numbers already, with the columns they were made from, if those are others.

    A split looks at `columns`; `carriers` says which features a column went into (else the feature of that name). What
    a split removes is NaN in X. `encode` fills it with the mean of the known values of the training rows of all silos,
    and adds a feature `column=missing` for every column that lost a value.
    """

    X: np.ndarray  # [rows, features], NaN: removed
    y: np.ndarray  # [rows]
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...] | None
    names: tuple[str, ...]  # of the silos
    ends: tuple[int, ...]  # the rows of silo i end here
    columns: Mapping[str, np.ndarray]
    carriers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lost: Mapping[str, np.ndarray] = field(default_factory=dict)  # column -> [rows], what was removed from it

    def places(self, column: str) -> list[int]:
        """Where the features are that a column went into."""
        return [self.feature_names.index(f) for f in self.carriers.get(column, (column,)) if f in self.feature_names]

    def pool(self) -> Pool:
        """All rows, with what was removed from numbers as NaN and from words as an empty text."""
        columns = dict(self.columns)
        for name, gone in self.lost.items():
            columns[name] = without(columns[name], gone)
        return Pool(columns, self.y)

    def deal(self, hands: Sequence[Hand]) -> "Arrays":
        """The same rows in other silos, with the changes that the hands ask for."""
        rows = np.concatenate([hand.rows for hand in hands])
        y = np.concatenate([self.y[hand.rows] if hand.y is None else hand.y for hand in hands])
        lost = {name: gone[rows] for name, gone in self.lost.items()}
        for j, name in enumerate(self.columns):
            gone = np.concatenate([np.zeros(len(h.rows), bool) if h.gone is None else h.gone[:, j] for h in hands])
            if gone.any():
                lost[name] = gone | lost.get(name, False)
        X = self.X[rows]
        for name, gone in lost.items():
            X[np.ix_(np.flatnonzero(gone), np.array(self.places(name), np.int64))] = np.nan
        return replace(
            self, X=X, y=y, lost=lost, names=tuple(hand.name for hand in hands),
            ends=tuple(np.cumsum([len(hand.rows) for hand in hands]).tolist()),
            columns={name: values[rows] for name, values in self.columns.items()},
        )  # fmt: skip

    def encode(self, parts: Sequence[np.ndarray]) -> Silos:
        """Silos whose removed values are filled with means of training rows alone."""
        training = np.concatenate(parts) == ALL_TRAIN
        told = [name for name in self.lost if self.places(name)]
        indicators = [self.lost[name][:, None].astype(self.X.dtype) for name in told]
        X = np.concatenate([filled(self.X, training), *indicators], axis=1)
        features = (*self.feature_names, *(f"{name}=missing" for name in told))
        pieces = zip(np.split(X, self.ends[:-1]), np.split(self.y, self.ends[:-1]), strict=True)
        made = Silos.from_arrays(list(pieces), self.names, features, self.label_names)
        silos = tuple(replace(s, part=np.asarray(p, np.int8)) for s, p in zip(made.silos, parts, strict=True))
        incomplete = [self.feature_names[j] for j in np.flatnonzero(np.isnan(self.X).any(axis=0))]
        shared = [
            Shared(name, f"count and sum of {feature}", 2, "missing values are filled with the mean over all silos")
            for name in self.names
            for feature in incomplete
        ]
        return replace(made, silos=silos, shared=tuple(shared), source=self)


def deal(silos: Silos, how: Split, seed: int = 0) -> Silos:
    """The rows of silos dealt out anew by a split, all for training. The same seed gives the same silos."""
    source = silos.source or of_silos(silos)
    kind = "synthetic" if silos.kind == "synthetic" else "artificial"
    made = deal_source(source, how, seed)
    return replace(made, kind=kind, origin=f"{silos.origin}, dealt out by {split_name(how)}")


def deal_source(source: Source, how: Split, seed: int) -> Silos:
    """Ask a split for hands, check them, and make the silos."""
    pool = source.pool()
    hands = how(pool, np.random.default_rng(seed))
    check_hands(hands, pool, split_name(how))
    return source.deal(hands).encode([np.full(len(hand.rows), ALL_TRAIN) for hand in hands])


def of_silos(silos: Silos) -> Arrays:
    """The rows of silos of arrays, their features being the columns."""
    X, y = np.concatenate([s.X for s in silos.silos]), np.concatenate([s.y for s in silos.silos])
    ends = tuple(np.cumsum([len(s.y) for s in silos.silos]).tolist())
    columns = dict(zip(silos.feature_names, X.T, strict=True))
    return Arrays(X, y, silos.feature_names, silos.label_names, silos.names, ends, columns)


def one_silo(
    name: str, X: np.ndarray, y: np.ndarray, feature_names: Sequence[str], label_names: Sequence[str] | None,
    columns: Mapping[str, np.ndarray], carriers: Mapping[str, tuple[str, ...]] | None = None,
) -> Arrays:  # fmt: skip
    """A whole data set before it is dealt out: the features, and the columns they were made from."""
    labels = None if label_names is None else tuple(label_names)
    return Arrays(X, y, tuple(feature_names), labels, (name,), (len(y),), columns, carriers or {})


def filled(X: np.ndarray, training: np.ndarray) -> np.ndarray:
    """X with every NaN replaced by the mean of its feature over the training rows that know it (0 if none does)."""
    unknown = np.isnan(X)
    if not unknown.any():
        return X
    known = training[:, None] & ~unknown
    sums = np.where(known, X, 0).sum(axis=0)
    return np.where(unknown, sums / np.maximum(known.sum(axis=0), 1), X)


def without(values: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """A column without some of its values."""
    if values.dtype.kind in "US":
        return np.where(gone, values.dtype.type(), values)
    if values.dtype.kind == "O":
        rest = values.copy()
        rest[gone] = None
        return rest
    return np.where(gone, np.nan, values)


def split_name(how: Split) -> str:
    """What a split is called."""
    return getattr(how, "__name__", type(how).__name__)


def check_hands(hands: Sequence[Hand], pool: Pool, name: str) -> None:
    """Every row must be dealt out exactly once, and every silo get some."""
    if not hands:
        raise ValueError(f"the split {name} made no silo")
    check_names(tuple(hand.name for hand in hands), len(hands))
    for hand in hands:
        count = len(hand.rows)
        if count == 0:
            raise ValueError(f"the split {name} leaves silo {hand.name!r} without rows")
        if hand.y is not None and np.shape(hand.y) != (count,):
            raise ValueError(f"the split {name} gives silo {hand.name!r} {np.shape(hand.y)} labels for {count} rows")
        if hand.gone is not None and np.shape(hand.gone) != (count, len(pool.columns)):
            raise ValueError(
                f"the split {name}: `gone` of silo {hand.name!r} must be one row per row, one column per column of the "
                f"pool, {(count, len(pool.columns))}, not {np.shape(hand.gone)}"
            )
    rows = np.sort(np.concatenate([np.asarray(hand.rows) for hand in hands]))
    if not np.array_equal(rows, np.arange(len(pool.y))):
        raise ValueError(f"the split {name} must deal out each of the {len(pool.y)} rows exactly once")
