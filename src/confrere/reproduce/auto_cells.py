"""Where the rows of the study of `auto` come from: cells, each a user, other silos, and test rows of the user's kind.

A cell is dealt anew for every seed; no row is in two places. Features are standardised by the mean and deviation of all
training rows, the user's and the others'; test rows enter nothing. (Titanic's are kept as the paper prepared them.)

RESERVED cells (wine, MNIST, CIFAR-10, weather) were kept for the choice of candidates alone; CONFIRMATION cells (those
that the method was designed on, and digits) were looked at when the choice was made.

    iid        everybody has the same population
    het        populations or tasks differ from silo to silo
    related    two silos have the user's task, two one that shares a class with it, two another one
    unrelated  nobody has the user's task
    skew       the others have nine rows of one class to one of the other
    shift      half of the features have the opposite sign in two silos
    flip       two silos' labels (one of three, on wine) are the wrong way round
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from confrere.reproduce import auto_tables as tables
from confrere.reproduce.auto_tables import Table

Pair = tuple[np.ndarray, np.ndarray]
Task = Literal["classification", "regression"]
SIZES = (20, 40, 60, 100, 200)
EVEN, ODD = (0, 2, 4, 6, 8), (1, 3, 5, 7, 9)
TEST_ROWS = 500


class Dealt(NamedTuple):
    """One deal: rows of the user, of every other silo, and of the test."""

    user: Pair
    others: list[Pair]
    test: Pair


class Cell(NamedTuple):
    """A setting of the study; cells of one source have arrays of the same shape, and run in one program."""

    source: str
    variant: str
    rows: int  # of the user; 0: as many as the data have
    deal: Callable[[int], Dealt]
    task: Task = "classification"

    @property
    def name(self) -> str:
        """Source, variant and, where they are a choice, the user's rows in one word."""
        return f"{self.source}/{self.variant}" + (f"/{self.rows}" if self.rows else "")


class Deck:
    """Rows of a table in random order; each is dealt once.

    >>> deck = Deck(np.random.default_rng(0), np.array([0, 0, 0, 1, 1]))
    >>> sorted(deck.take({1: 1.0}, 2).tolist())
    [3, 4]
    """

    def __init__(self, rng: np.random.Generator, group: np.ndarray):
        self.rng = rng
        self.left = {g: rng.permutation(np.flatnonzero(group == g)).tolist() for g in np.unique(group).tolist()}

    def take(self, shares: Mapping[int, float], count: int) -> np.ndarray:
        """So many rows, each from a group drawn with these shares; from those that have some, if one has run out."""
        taken: list[int] = []
        while len(taken) < count:
            open_to = [g for g in shares if self.left[g]]
            if not open_to:
                raise ValueError(f"only {len(taken)} of {count} rows are left in groups {list(shares)}")
            chances = np.array([shares[g] for g in open_to], float)
            taken.append(self.left[open_to[self.rng.choice(len(open_to), p=chances / chances.sum())]].pop())
        return np.array(taken)


def equally(groups: Sequence[int]) -> dict[int, float]:
    """The same share for every group."""
    return dict.fromkeys(groups, 1.0)


def standardised(dealt: Dealt) -> Dealt:
    """In units of all training rows; a column that is the same in all of them becomes zero."""
    train = np.concatenate([dealt.user[0], *(X for X, _ in dealt.others)])
    mean, spread = train.mean(axis=0), train.std(axis=0)
    scale = np.where(spread > 1e-12, spread, np.inf)
    units = lambda pair: ((pair[0] - mean) / scale, pair[1])  # noqa: E731
    return Dealt(units(dealt.user), [units(pair) for pair in dealt.others], units(dealt.test))


def flipped(dealt: Dealt, which: Sequence[int], task: Task = "classification") -> Dealt:
    """The labels of some of the others the wrong way round."""
    turn = lambda y: 1 - y if task == "classification" else -y  # noqa: E731
    others = [(X, turn(y)) if i in which else (X, y) for i, (X, y) in enumerate(dealt.others)]
    return dealt._replace(others=others)


def turned(dealt: Dealt, which: Sequence[int], rng: np.random.Generator) -> Dealt:
    """Half of the (standardised) features with the opposite sign at some of the others."""
    width = dealt.user[0].shape[1]
    sign = np.where(rng.permutation(width) < width // 2, -1.0, 1.0)
    others = [(X * sign, y) if i in which else (X, y) for i, (X, y) in enumerate(dealt.others)]
    return dealt._replace(others=others)


def hand_out(
    table: Table, rng: np.random.Generator, shares: Sequence[Mapping[int, float]], sizes: Sequence[int], test: int,
    labels: Sequence[Callable[[np.ndarray], np.ndarray]] | None = None,
) -> Dealt:  # fmt: skip
    """The user first, then the test rows (of the user's kind), then the others; labels made silo by silo."""
    deck = Deck(rng, table.group)
    label = lambda i, rows: table.y[rows] if labels is None else labels[i](table.y[rows])  # noqa: E731
    hands = [deck.take(shares[0], sizes[0]), deck.take(shares[0], test)]
    hands += [deck.take(share, size) for share, size in zip(shares[1:], sizes[1:], strict=True)]
    owner = [0, 0, *range(1, len(sizes))]
    user, test_rows, *others = [(table.X[rows], label(i, rows)) for i, rows in zip(owner, hands, strict=True)]
    return Dealt(user, others, test_rows)


def deal_wine(variant: str, rows: int, seed: int, cultivar: int = 1) -> Dealt:
    """One cultivar against the rest; three other silos of 22, which on `het` tell another cultivar."""
    rng = np.random.default_rng(seed)
    told = [cultivar] * 4 if variant != "het" else [cultivar, cultivar, (cultivar + 1) % 3, (cultivar + 2) % 3]
    labels = [lambda y, c=c: (y == c).astype(int) for c in told]
    dealt = standardised(hand_out(tables.wine(), rng, [equally([0])] * 4, [rows, 22, 22, 22], 52, labels))
    return flipped(dealt, [0]) if variant == "flip" else dealt


def deal_parity(read: Callable[[], Table], test: int, variant: str, rows: int, seed: int, each: int = 100) -> Dealt:
    """Odd against even; six other silos, on `het` each silo with two even and two odd digits of its own."""
    rng = np.random.default_rng(seed)
    some = lambda: [*rng.choice(EVEN, 2, replace=False).tolist(), *rng.choice(ODD, 2, replace=False).tolist()]  # noqa: E731
    shares = [equally(some() if variant == "het" else range(10)) for _ in range(7)]
    odd = lambda y: y % 2  # noqa: E731
    dealt = standardised(hand_out(read(), rng, shares, [rows] + [each] * 6, test, [odd] * 7))
    return flipped(dealt, [0, 1]) if variant == "flip" else dealt


class Contest(NamedTuple):
    """Two classes to be told apart, and pairs that are related (a class in common) or are not."""

    own: tuple[int, int]
    related: tuple[tuple[int, int], tuple[int, int]]
    unrelated: tuple[tuple[int, int], tuple[int, int]]


CONTESTS = {
    "mnist35": Contest((3, 5), ((3, 8), (8, 5)), ((0, 1), (6, 2))),
    "mnist49": Contest((4, 9), ((4, 7), (6, 9)), ((0, 1), (3, 5))),
    "mnist79": Contest((7, 9), ((7, 4), (1, 9)), ((0, 1), (3, 5))),
    "cifar": Contest((3, 5), ((3, 7), (4, 5)), ((2, 6), (1, 9))),  # cat, dog; horse, deer; bird, frog; car, lorry
}


def deal_contest(read: Callable[[], Table], contest: Contest, variant: str, rows: int, seed: int) -> Dealt:
    """The second class of a pair against the first; six other silos of 100."""
    rng = np.random.default_rng(seed)
    own, related, unrelated = contest
    theirs = {"related": [own, own, *related, *unrelated], "unrelated": [*related, *unrelated, *unrelated]}
    pairs = [own, *theirs.get(variant, [own] * 6)]
    labels = [lambda y, pair=pair: (y == pair[1]).astype(int) for pair in pairs]
    dealt = hand_out(read(), rng, [equally(pair) for pair in pairs], [rows] + [100] * 6, TEST_ROWS, labels)
    return flipped(standardised(dealt), [0, 1] if variant == "flip" else [])


def deal_weather(variant: str, rows: int, seed: int) -> Dealt:
    """`station`: one station and eight others, all rows there are; else bands of latitude with 100 rows."""
    rng = np.random.default_rng(seed)
    if variant == "station":
        table = tables.weather()
        stations = rng.choice(table.group.max() + 1, 9, replace=False).tolist()
        return standardised(hand_out(table, rng, [equally([s]) for s in stations], [rows] + [80] * 8, 87 - rows))
    bands = rng.permutation(tables.BANDS).tolist()
    sizes = [rows] + [100] * (len(bands) - 1)
    dealt = standardised(hand_out(tables.weather_bands(), rng, [equally([b]) for b in bands], sizes, TEST_ROWS))
    return flipped(dealt, [0, 1]) if variant == "flip" else dealt


def reserved() -> list[Cell]:
    """The cells kept for the choice of candidates."""
    found = [Cell("wine", v, n, partial(deal_wine, v, n)) for v in ("iid", "het", "flip") for n in SIZES[:3]]
    for v in ("iid", "het", "flip"):
        found += [Cell("mnist", v, n, partial(deal_parity, tables.mnist, TEST_ROWS, v, n)) for n in SIZES]
    for source, contest in CONTESTS.items():
        read = tables.cifar10 if source == "cifar" else tables.mnist
        variants = ("related", "unrelated", "flip", "iid") if source in ("cifar", "mnist49") else ("related", "flip")
        found += [Cell(source, v, n, partial(deal_contest, read, contest, v, n)) for v in variants for n in SIZES]
    found += [Cell("weather", "station", n, partial(deal_weather, "station", n)) for n in SIZES[:3]]
    found += [Cell("weather", v, n, partial(deal_weather, v, n)) for v in ("het", "flip") for n in SIZES]
    return found
