"""Cases: a user and a seed, the rows to train on, the folds to tune on and the rows to measure on."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from confrere.core import Block
from confrere.data.silo import fold_numbers
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.simulation.inputs import outputs_of
from confrere.study.units import Units, in_units, units_of

TEST_SHARE = 0.5
Others = Literal["all", "train"]


class Shape(NamedTuple):
    """What cases must have in common to run in one program. Rows are rounded up, so that few shapes occur."""

    silos: int
    rows: int  # per silo, for training
    tests: int  # of the user
    held: int  # of the user, in a fold
    features: int
    outputs: int


@dataclass(frozen=True, eq=False)
class Case:
    """One user of one seed."""

    seed: int
    user: int
    name: str
    silos: Silos  # as the user's run sees them, with labels as they are learned
    shape: Shape
    digest: str  # of the seed's silos: rows, labels, parts and names
    units: Units  # of the labels

    @property
    def train_rows(self) -> int:
        """How many rows the user trains on."""
        return self.silos.sizes("train")[self.user]

    @property
    def test_rows(self) -> int:
        """How many rows the user is measured on."""
        return self.silos.sizes("test")[self.user]

    def in_own_units(self, metric: str, values: np.ndarray) -> np.ndarray:
        """What was measured on labels as they are learned, in their own units."""
        return self.units.spread * values if metric == "rmse" else values


class Folds(NamedTuple):
    """F ways to hold out rows of the user: which rows remain, and those to measure on."""

    order: Any  # [F, m] the user's rows: those that remain in front
    kept: Any  # [F] how many remain
    X: Any  # [F, t, d]
    y: Any  # [F, t]
    count: Any  # [F] how many rows to measure on


def round_up(rows: int) -> int:
    """The next row count out of a coarse list: at most an eighth more, and a multiple of 16.

    Seeds that split the rows a little differently then share one program; padded rows change nothing.
    """
    step = max(16, 1 << max(rows.bit_length() - 4, 0))
    return max(step, -(-rows // step) * step)


def seeded_silos(given: Silos | Callable[[int], Silos], seeds: Sequence[int]) -> Iterator[tuple[int, Silos]]:
    """The silos of every seed, with test rows."""
    names: tuple[str, ...] | None = None
    for seed in seeds:
        silos = given if isinstance(given, Silos) else given(seed)
        if not isinstance(silos, Silos):
            raise TypeError(
                f"silos must be Silos, or a function that makes them from a seed, not {type(silos).__name__}"
            )
        if names is not None and silos.names != names:
            raise ValueError(f"seed {seed} has the silos {', '.join(silos.names)}, but others have {', '.join(names)}")
        names = silos.names
        yield seed, silos if sum(silos.sizes("test")) else silos.split(test=TEST_SHARE, seed=seed)


def cases_of(seed: int, silos: Silos, users: Sequence[int], others: Others, model: Model, folds: int) -> list[Case]:
    """Every user's case of one seed."""
    digest = digest_of(silos)
    shape = shape_of(silos, others, model, folds)
    found = []
    for user in users:
        seen = silos.for_user(user, others)
        units = units_of(seen, model)
        found.append(Case(seed, user, silos.names[user], in_units(seen, units), shape, digest, units))
    return found


def shape_of(silos: Silos, others: Others, model: Model, folds: int) -> Shape:
    """The shape of every case of these silos, whoever the user is."""
    train, test = silos.sizes("train"), silos.sizes("test")
    whole = [len(s.y) for s in silos.silos] if others == "all" else train
    held = max(-(-rows // min(folds, rows)) for rows in train if rows > 0) if any(train) else 1
    return Shape(
        len(silos), round_up(max(whole)), round_up(max(test)), round_up(held), silos.silos[0].X.shape[1],
        outputs_of(model, silos),
    )  # fmt: skip


def digest_of(silos: Silos) -> str:
    """A hash of all that the silos hold."""
    found = hashlib.sha256(repr(silos.names).encode())
    for silo in silos.silos:
        for array in (silo.X, silo.y, silo.part):
            found.update(repr((array.shape, array.dtype.str)).encode())
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def labels(y: np.ndarray, model: Model) -> np.ndarray:
    """Class numbers as 32-bit integers; numbers of a regression as they are."""
    return y.astype(np.int32) if model.task == "classification" else y


def train_block(case: Case, model: Model) -> Block:
    """All training rows of a case, padded."""
    block = case.silos.block("train", case.shape.rows)
    return block._replace(y=labels(np.asarray(block.y), model))  # type: ignore[arg-type]


def cross_folds(case: Case, model: Model, k: int) -> Folds:
    """k folds of the user's training rows, each class dealt out evenly; with fewer than k rows as many folds as rows.

    Folds that are too many hold out nothing, and count for nothing.
    """
    block = train_block(case, model)
    X, y = (np.asarray(a)[case.user, : case.train_rows] for a in (block.X, block.y))
    own = case.silos[case.user].rows("train")[1]
    fold = fold_numbers(own, min(k, len(own)), np.random.default_rng([abs(case.seed), case.user, k]))
    return stacked_folds([np.flatnonzero(fold == j) for j in range(k)], X, y, case.shape.rows, case.shape.held)


def stacked_folds(held: Sequence[np.ndarray], X: np.ndarray, y: np.ndarray, m: int, t: int) -> Folds:
    """Folds that hold out the given rows."""
    folds = len(held)
    order, kept = np.zeros((folds, m), np.int32), np.zeros(folds, np.int32)
    held_X, held_y = np.zeros((folds, t, *X.shape[1:]), X.dtype), np.zeros((folds, t), y.dtype)
    for j, rows in enumerate(held):
        rest = np.setdiff1d(np.arange(len(y)), rows)
        order[j, : len(rest)], kept[j] = rest, len(rest)
        held_X[j, : len(rows)], held_y[j, : len(rows)] = X[rows], y[rows]
    return Folds(order, kept, held_X, held_y, np.array([len(rows) for rows in held], np.int32))


def whole_run(case: Case, model: Model) -> Folds:
    """The run that is reported: all training rows, measured on the test rows."""
    block = case.silos.block("test", case.shape.tests)
    order = np.zeros((1, case.shape.rows), np.int32)
    order[0, : case.train_rows] = np.arange(case.train_rows)
    own_y = labels(np.asarray(block.y), model)[case.user][None]
    one: Any = lambda number: np.array([number], np.int32)  # noqa: E731
    return Folds(order, one(case.train_rows), np.asarray(block.X)[case.user][None], own_y, one(case.test_rows))
