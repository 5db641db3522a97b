"""The cells on which the choice made for `auto` was confirmed, once it was made; and checks that have one right answer.

The method was designed on Titanic, heart disease, breast cancer, diabetes and simulated cells; digits showed its
weakness afterwards. None of them took part in the choice of the local candidates.
"""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from confrere.data.heart_disease import FILES, heart_disease
from confrere.data.silos import Silos
from confrere.data.titanic import Passengers, SplitName, passengers, split_passengers, titanic_file
from confrere.reproduce import auto_tables as tables
from confrere.reproduce.auto_cells import (
    Cell,
    Dealt,
    Pair,
    Task,
    deal_parity,
    flipped,
    hand_out,
    standardised,
    turned,
)

SKEW = ({0: 9.0, 1: 1.0}, {0: 1.0, 1: 9.0})
HOSPITALS = tuple(FILES)
FEATURES = 8  # of simulated rows
SPREAD = {"small": 0.15, "big": 0.8}  # how far simulated silos' coefficients are from the user's
SPLITS: tuple[SplitName, ...] = ("age-strict", "age-some")


def deal_digits(variant: str, rows: int, seed: int) -> Dealt:
    """Odd against even as with MNIST, other silos of 60, the 64 pixels in 20 components of the training rows."""
    dealt = deal_parity(tables.digits, 200, variant, rows, seed, each=60)
    mean, directions = tables.components(np.concatenate([dealt.user[0], *(X for X, _ in dealt.others)]))
    small = lambda pair: ((pair[0] - mean) @ directions, pair[1])  # noqa: E731
    return Dealt(small(dealt.user), [small(pair) for pair in dealt.others], small(dealt.test))


def deal_bundled(source: str, task: Task, variant: str, rows: int, seed: int) -> Dealt:
    """Breast cancer or diabetes: four other silos of 60."""
    rng = np.random.default_rng(seed)
    table = tables.breast_cancer() if source == "breast" else tables.diabetes()
    if task == "classification":
        table = table._replace(y=table.group)
    natural = dict(enumerate(np.bincount(table.group).tolist()))
    shares = [natural] + [SKEW[i % 2] if variant == "skew" else natural for i in range(4)]
    dealt = standardised(hand_out(table, rng, shares, [rows] + [60] * 4, 140, None))
    if variant == "shift":
        return turned(dealt, [0, 1], rng)
    return flipped(dealt, {"flip": [0, 1], "allflip": range(4)}.get(variant, []), task)


@cache
def passenger_table() -> Passengers:
    """The prepared passengers."""
    return passengers(titanic_file())


def deal_titanic(split: SplitName, user: int, flip: Sequence[int], seed: int) -> Dealt:
    """The paper's halves: the user trains on one and is tested on the other, the others train on all rows."""
    silos = split_passengers(passenger_table(), split, seed).for_user(user)
    own, *others = [silos.silos[user], *(silo for i, silo in enumerate(silos.silos) if i != user)]
    return flipped(Dealt(own.rows("train"), [silo.rows("train") for silo in others], own.rows("test")), flip)


@cache
def hospitals() -> Silos:
    """Heart disease in four hospitals."""
    return heart_disease()


def deal_heart(user: int, flip: int | None, seed: int) -> Dealt:
    """Half of one hospital's patients for training, all of the others'; the hospital that is flipped comes first."""
    silos = hospitals().split(test=0.5, seed=seed).for_user(user)
    others = sorted((i for i in range(len(silos.silos)) if i != user), key=lambda i: i != flip)
    dealt = Dealt(silos[user].rows("train"), [silos[i].rows("train") for i in others], silos[user].rows("test"))
    return flipped(dealt, [] if flip is None else [0])


def deal_simulated(task: Task, variant: str, silos: int, rows: int, seed: int) -> Dealt:
    """A linear truth, noise of a logistic or a normal; silos of 100 whose coefficients differ, or whose labels do."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 0.5 if task == "regression" else 1.0, FEATURES + 1)

    def draw(count: int, w: np.ndarray) -> Pair:
        X = rng.normal(size=(count, FEATURES))
        z = X @ w[:-1] + w[-1]
        return X, (
            z + rng.normal(size=count) if task == "regression" else (z + rng.logistic(size=count) > 0).astype(int)
        )

    def other(i: int) -> Pair:
        if variant == "one-class":  # the others have one class each
            X, y = draw(1000, truth)
            kept = np.flatnonzero(y == i % 2)[:100]
            return X[kept], y[kept]
        if variant == "alone" and i > 0:  # one silo is like the user
            return draw(100, rng.normal(0, 0.5 if task == "regression" else 1.0, FEATURES + 1))
        return draw(100, truth + rng.normal(0, SPREAD.get(variant, 0.0), FEATURES + 1))

    dealt = Dealt(draw(rows, truth), [other(i) for i in range(silos)], draw(2000, truth))
    which = {"flip": range(silos // 3), "one": [0], "allflip": range(silos)}
    return flipped(dealt, which.get(variant, []), task)


def confirmation() -> list[Cell]:
    """The cells looked at after the choice."""
    cells = [Cell("digits", "het", n, partial(deal_digits, "het", n)) for n in (40, 100, 200)]
    cells += [Cell("digits", v, 60, partial(deal_digits, v, 60)) for v in ("iid", "flip")]
    for split in SPLITS:
        name = split.removeprefix("age-")
        cells += [Cell("titanic", f"{name}-{u}", 0, partial(deal_titanic, split, u, ())) for u in range(4)]
    cells += [Cell("heart", name, 0, partial(deal_heart, u, None)) for u, name in enumerate(HOSPITALS)]
    for source in ("breast", "diabetes"):
        for variant in ("iid", "skew", "shift", "flip"):
            deal = partial(deal_bundled, source, "classification", variant)
            cells += [Cell(source, variant, n, partial(deal, n)) for n in (20, 60)]
    for variant in ("iid", "small", "big", "one-class", "alone", "flip"):
        deal = partial(deal_simulated, "classification", variant, 8)
        cells += [Cell("simulated", variant, n, partial(deal, n)) for n in (20, 60)]
    for silos in (1, 3, 20):
        deal = partial(deal_simulated, "classification", "small", silos)
        cells += [Cell("simulated", f"small-{silos}-silos", n, partial(deal, n)) for n in (20, 60)]
    return cells


def amounts() -> list[Cell]:
    """Cells of least squares: the progression of diabetes, and a simulated linear truth."""
    cells: list[Cell] = []
    for variant in ("iid", "shift", "flip"):
        deal = partial(deal_bundled, "diabetes", "regression", variant)
        cells += [Cell("progression", variant, n, partial(deal, n), "regression") for n in (20, 60)]
    for variant in ("iid", "small", "big", "alone", "flip"):
        deal = partial(deal_simulated, "regression", variant, 8)
        cells += [Cell("linear", variant, n, partial(deal, n), "regression") for n in (20, 60)]
    return cells


def all_flipped() -> list[Cell]:
    """Every other silo's labels are the wrong way round: the right answer is the user's own."""
    cells = [Cell("titanic", f"strict-{u}-all", 0, partial(deal_titanic, SPLITS[0], u, range(3))) for u in range(4)]
    cells += [Cell("breast", "all", 60, partial(deal_bundled, "breast", "classification", "allflip", 60))]
    cells += [Cell("simulated", "all", 60, partial(deal_simulated, "classification", "allflip", 8, 60))]
    return cells


def one_flipped() -> list[Cell]:
    """The first of the others' labels are the wrong way round, on real hospitals and passengers too."""
    cells = [Cell("simulated", "one", 60, partial(deal_simulated, "classification", "one", 8, 60))]
    for split in SPLITS:
        name = split.removeprefix("age-")
        cells += [Cell("titanic", f"{name}-{u}-one", 0, partial(deal_titanic, split, u, [0])) for u in range(4)]
    for user, name in enumerate(HOSPITALS):
        others = [(i, other) for i, other in enumerate(HOSPITALS) if i != user]
        cells += [Cell("heart", f"{name}-{other}", 0, partial(deal_heart, user, i)) for i, other in others]
    return cells
