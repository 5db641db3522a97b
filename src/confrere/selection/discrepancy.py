"""Discrepancy: how differently silo and user judge one and the same linear model, at worst.

    disc(D_i, D_0) = max over |w| <= radius of |L_i(w) - L_0(w)|,   L(w) = mean of 1/2 |y - x'w|^2

Lower is better.

Mansour, Mohri, Rostamizadeh: Domain adaptation: learning bounds and algorithms (2009). For squared losses of linear
models the difference is a quadratic function of w, whose largest and smallest value in a ball are found exactly from
one eigendecomposition (the trust-region problem). Classes are amounts here: 0 or 1 for each class, of two classes the
second alone. A silo sends the second moments of its rows and labels; x has the intercept among its features.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from confrere.checks import check_counts, check_numbers, concrete
from confrere.data.silos import Silos
from confrere.selection.asking import LEAST, Others, asked, start_with
from confrere.selection.linear import MOST_PARAMETERS
from confrere.selection.resampling import about_the_score, percentiles
from confrere.selection.selection import Crossing, Selection
from confrere.selection.words import between

RIDGE = 0.01  # of the user's own model, whose length is the radius
NUMBER = 8  # bytes


class Moments(NamedTuple):
    """Means over rows: x x' [d, d], x y' [d, k] and |y|^2."""

    xx: np.ndarray
    xy: np.ndarray
    yy: float


def moments(X: np.ndarray, Y: np.ndarray, weight: np.ndarray | None = None) -> Moments:
    """The weighted means of second moments of rows [m, d] and labels [m, k]."""
    share = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
    return Moments((X * share[:, None]).T @ X, (X * share[:, None]).T @ Y, float(share @ np.square(Y).sum(axis=1)))


def discrepancy(
    silos: Silos,
    user: int | str,
    *,
    radius: float | None = None,
    others: Others = "all",
    silent: Sequence[str] = (),
    min_count: int = LEAST,
    resamples: int = 200,
    seed: int = 0,
) -> Selection:
    """Rank silos by their discrepancy from the user for linear models with squared losses; lower is better.

    `radius` is the length of the longest model that is looked at; by default that of the user's own ridge regression.
    The intervals rest on resampled rows of the user, the median moved to the score. With few rows all discrepancies
    are too large, by chance. A silo with fewer training rows than `min_count` is not asked, as what it sent would be
    about so few.

    >>> import confrere as cf
    >>> cf.selection.discrepancy(cf.data.titanic("age-some"), user="0-35 a").ranking[0]
    '0-35 b'
    """
    check_counts(resamples=resamples)
    silos, place, model = start_with(silos, user, None, others)
    who, without = asked(silos, place, silent, min_count)
    width = len(silos.feature_names) + 1
    if width > MOST_PARAMETERS:
        raise ValueError(f"discrepancy handles {MOST_PARAMETERS} features at most, not {width - 1}")
    classes = silos.classes() if model.task == "classification" else 0
    arrays = {name: rows_and_labels(silos, name, classes) for name in (*who, silos.names[place])}
    X, Y = arrays[silos.names[place]]
    own = moments(X, Y)
    if radius is not None:
        check_numbers(radius=radius)
    length = float(np.linalg.norm(ridge_model(own))) if radius is None else float(concrete(radius) or 0.0)
    told = {name: moments(*arrays[name]) for name in who}
    rng, m = np.random.default_rng(seed), len(X)
    draws = [moments(X, Y, weight) for weight in rng.multinomial(m, np.full(m, 1 / m), size=resamples)]
    found = {name: disc(theirs, own, length) for name, theirs in told.items()}
    spread = {name: np.array([disc(theirs, draw, length) for draw in draws]) for name, theirs in told.items()}
    return assembled(silos, place, found, spread, without, length, Y.shape[1])


def rows_and_labels(silos: Silos, name: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with an intercept, and labels as amounts [m, k]."""
    X, y = silos[name].rows("train")
    X = np.column_stack([np.asarray(X, float), np.ones(len(y))])
    if classes == 0:
        return X, np.asarray(y, float)[:, None]
    one_hot = (y[:, None] == np.arange(classes)).astype(float)
    return X, one_hot[:, 1:] if classes == 2 else one_hot


def ridge_model(own: Moments) -> np.ndarray:
    """The ridge regression of rows with these moments [d, k]."""
    return np.linalg.solve(own.xx + RIDGE * np.eye(len(own.xx)), own.xy)


def disc(one: Moments, two: Moments, radius: float) -> float:
    """max over |W| <= radius of |L_one(W) - L_two(W)|."""
    M, b, c = one.xx - two.xx, one.xy - two.xy, (one.yy - two.yy) / 2
    return max(highest(M, b, radius) + c, highest(-M, -b, radius) - c)


def highest(M: np.ndarray, b: np.ndarray, radius: float) -> float:
    """The largest value of 1/2 tr(W'MW) - tr(b'W) over |W| <= radius, for a symmetric M [d, d] and b [d, k].

    In the eigenvectors of M, W = -b / (nu - m) with nu >= max(m, 0) where |W| = radius, or nu = 0 inside the ball.
    """
    if radius == 0:
        return 0.0
    m, U = np.linalg.eigh(M)
    size = np.sqrt(np.square(U.T @ b).sum(axis=1))  # of b in the direction of each eigenvector
    floor, scale = max(float(m[-1]), 0.0), max(float(np.abs(m).max()), float(size.max()) / radius, 1e-300)
    length = lambda nu: float(np.sqrt(np.square(size / (nu - m)).sum()))  # noqa: E731
    low, high = floor + 1e-14 * scale, floor + float(np.linalg.norm(size)) / radius + scale
    if length(low) <= radius:  # inside the ball, or the rest of the length along the last eigenvector
        a = size / (low - m)
        rest = radius**2 - float(a @ a) if m[-1] > 0 else 0.0
        return float(0.5 * m @ a**2 + size @ a + 0.5 * m[-1] * max(rest, 0.0))
    for _ in range(100):
        nu = (low + high) / 2
        low, high = (nu, high) if length(nu) > radius else (low, nu)
    a = size / (high - m)
    return float(0.5 * m @ a**2 + size @ a)


def assembled(
    silos: Silos, user: int, found: dict[str, float], spread: dict[str, np.ndarray], without: dict[str, str],
    radius: float, outputs: int,
) -> Selection:  # fmt: skip
    """The selection, those before the largest gap kept."""
    d = len(silos.feature_names) + 1
    up = NUMBER * (d * (d + 1) // 2 + d * outputs + 1)
    column = lambda values: np.array([values.get(name, np.nan) for name in silos.names], float)  # noqa: E731
    moved = {name: about_the_score(np.asarray(found[name]), values) for name, values in spread.items()}
    ends = {name: percentiles(np.maximum(values, 0)) for name, values in moved.items()}
    low, high = ({name: float(end[k]) for name, end in ends.items()} for k in (0, 1))
    reasons = dict(without)
    for name, value in found.items():
        reasons[name] = (
            f"of all linear models up to a length of {radius:.3f} (no interval), one loses {value:.4f} a row more here "
            f"than there ({between(low[name], high[name])}), and none more than that"
        )
    crossings = tuple(Crossing(name, "second moments of its rows and labels", up, 0) for name in found)
    prior = np.array([1.0 if i == user or name in found else 0.0 for i, name in enumerate(silos.names)])
    return Selection(
        "discrepancy", silos.names, user, column(found), column(low), column(high), True, reasons, crossings,
        "the user's rows resampled, the median moved to the score, the silos' moments as they were sent",
        "largest difference of squared losses a row of one linear model", prior,
    ).drop()  # fmt: skip
