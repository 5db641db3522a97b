"""Splits that skew one thing and keep the rest: p(y), p(x|y), p(y|x), the sizes, or what is missing.

`Labels` below are classes; where the label is an amount (a regression), its rows in order of the label are cut into
groups of equal size, and these take the place of classes.
"""

from collections.abc import Sequence

import numpy as np

from confrere.data.pool import (
    apportion,
    are_classes,
    check_count,
    check_share,
    cut,
    dealt_evenly,
    hands,
    joined,
    known_of,
    label_groups,
    letters,
    missing,
    named,
    ranks,
    values_of,
)
from confrere.data.source import Hand, Pool, Split

STRATA = 10  # groups of an amount that take the place of classes


@named
def label_skew(k: int = 4, share: float = 0.8) -> Split:
    """Skew of p(y): every label is at home in some silos, which get `share` of its rows; the rest goes evenly to all.

    Labels and silos are matched in turn: with two labels and four silos, label 0 is at home in the first and third,
    label 1 in the second and fourth. share=0 is iid within labels, share=1 gives every silo its own labels only.

    >>> import numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.zeros((8, 1)), [0, 1] * 4)])
    >>> [s.y.tolist() for s in silos.divide(cf.data.splits.label_skew(2, share=1.0)).silos]
    [[0, 0, 0, 0], [1, 1, 1, 1]]
    """
    check_share(share=share)

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        group = label_groups(pool.y, k)
        labels = int(group.max()) + 1
        meetings = [(t % labels, t % k) for t in range(max(labels, k))]
        dealt: list[list[np.ndarray]] = []
        spread = 0
        for label in range(labels):
            homes = [silo for met, silo in meetings if met == label]
            rows = rng.permutation(np.flatnonzero(group == label))
            at_home = round(share * len(rows))
            dealt.append(dealt_evenly(rows[:at_home], homes, k))
            dealt.append(dealt_evenly(rows[at_home:], range(k), k, first=spread))
            spread += len(rows) - at_home
        return hands(letters(k), without_empty(joined(dealt)), rng)

    return split


@named
def dirichlet(k: int = 4, alpha: float = 0.5) -> Split:
    """Skew of p(y) and of sizes: each label's rows go to the silos in proportions drawn from a Dirichlet distribution.

    All its k parameters are `alpha`: large is iid, small puts every label into few silos. A silo that would be empty
    gets a row of the largest. Hsu, Qi, Brown: Measuring the effects of non-identical data distribution for federated
    visual classification (2019), in the form of Yurochkin et al. (2019), which draws per label.

    >>> import confrere as cf
    >>> cf.data.titanic(split=cf.data.splits.dirichlet(3, alpha=1e6)).sizes("train")
    (218, 217, 217)
    """
    if not (np.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha must be a positive number, not {alpha!r}")

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        group = label_groups(pool.y, STRATA)
        dealt = []
        for label in np.unique(group):
            rows = rng.permutation(np.flatnonzero(group == label))
            dealt.append(cut(rows, apportion(len(rows), proportions(k, alpha, rng))))
        return hands(letters(k), without_empty(joined(dealt)), rng)

    return split


@named
def shards(k: int = 4, each: int = 2) -> Split:
    """Skew of p(y) at its worst: rows in order of the label are cut into shards, and every silo gets `each` of them.

    All shards have the same size, to one row, and which silo gets which is random: with two shards a silo has about two
    labels. McMahan et al., Communication-efficient learning of deep networks from decentralized data (2017), section 3,
    the "pathological" partition.

    >>> import numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.zeros((8, 1)), [0, 1, 2, 3] * 2)])
    >>> [sorted(s.y.tolist()) for s in silos.divide(cf.data.splits.shards(2)).silos]
    [[0, 0, 2, 2], [1, 1, 3, 3]]
    """
    if isinstance(each, bool) or not isinstance(each, int | np.integer) or each < 1:
        raise ValueError(f"each, the number of shards of a silo, must be a whole number of 1 or more, not {each!r}")

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k * each, len(pool.y))
        order = np.lexsort((rng.random(len(pool.y)), pool.y))
        pieces = cut(order, apportion(len(order), np.ones(k * each)))
        owner = rng.permutation(k * each) // each
        return hands(
            letters(k), [np.concatenate([pieces[j] for j in np.flatnonzero(owner == i)]) for i in range(k)], rng
        )

    return split


@named
def feature_skew(k: int = 4, column: str = "age", strength: float = 1.0) -> Split:
    """Skew of p(x|y) with equal p(y): within every label, silos get the rows in order of a column.

    Each label's rows are put in order of the column (missing values last); a share 1 - `strength` of them, drawn at
    random, is shuffled among itself; then the order is cut into k equal pieces. strength=0 is iid, strength=1 gives
    every silo its own range of the column within each label. Every silo has the same share of each label, to one row.

    >>> import numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.arange(8.0)[:, None], [0, 1] * 4)], feature_names=["dose"])
    >>> [sorted(s.X[:, 0].tolist()) for s in silos.divide(cf.data.splits.feature_skew(2, "dose")).silos]
    [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    """
    check_share(strength=strength)

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        place = ranks(values_of(pool, column), rng)
        group = label_groups(pool.y, STRATA)
        dealt: list[list[np.ndarray]] = []
        given = 0
        for label in np.unique(group):
            rows = np.flatnonzero(group == label)
            rows = partly_shuffled(rows[np.argsort(place[rows])], 1 - strength, rng)
            counts = np.array([len(own) for own in dealt_evenly(rows, range(k), k, first=given)])
            dealt.append(cut(rows, counts))
            given += len(rows)
        return hands(letters(k), joined(dealt), rng)

    return split


@named
def concept_shift(k: int = 4, changed: int | Sequence[int] = 1, column: str | None = None, share: float = 1.0) -> Split:
    """Skew of p(y|x) with equal p(x): rows at random, and in the `changed` silos a share of the labels is another.

    `changed` counts silos from the end, or lists their places. A class becomes the next one (of two: the other), an
    amount is mirrored at the mean. With `column`, only rows whose value is above its median change (of words: all but
    the commonest word), so that the label depends on that column otherwise than elsewhere; without, any rows.

    >>> import numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.arange(8.0)[:, None], [0] * 8)])
    >>> [s.y.tolist() for s in silos.divide(cf.data.splits.concept_shift(2, share=0.5)).silos]
    [[0, 0, 0, 0], [1, 1, 0, 0]]
    """
    check_share(share=share)
    places = range(k - changed, k) if isinstance(changed, int) else changed
    wrong = [place for place in places if not 0 <= place < k]
    if wrong:
        raise ValueError(f"changed={changed!r} names a silo that is not there: there are {k}, counted from 0")

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        concerned = np.ones(len(pool.y), bool) if column is None else upper_half(values_of(pool, column))
        other = another_label(pool.y)
        dealt = hands(letters(k), dealt_evenly(rng.permutation(len(pool.y)), range(k), k), rng)
        for place in places:
            rows = dealt[place].rows
            able = np.flatnonzero(concerned[rows])
            turned = able[: round(share * len(able))]  # rows come in random order
            y = np.where(np.isin(np.arange(len(rows)), turned), other[rows], pool.y[rows])
            dealt[place] = dealt[place]._replace(y=y)
        return dealt

    return split


@named
def unequal_sizes(k: int = 4, ratio: float = 10.0) -> Split:
    """Rows at random, sizes that grow by a constant factor: the last silo is `ratio` times as large as the first.

    >>> import confrere as cf
    >>> [len(s.y) for s in cf.data.titanic(split=cf.data.splits.unequal_sizes(3, ratio=4)).silos]
    [187, 374, 748]
    """
    if not (np.isfinite(ratio) and ratio >= 1):
        raise ValueError(f"ratio must be 1 or more, not {ratio!r}")

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        counts = np.sort(apportion(len(pool.y), ratio ** (np.arange(k) / max(k - 1, 1))))
        if counts.min() == 0:
            raise ValueError(f"{len(pool.y)} rows are too few for {k} silos with sizes 1 to {ratio:g}: lower the ratio")
        return hands(letters(k), cut(rng.permutation(len(pool.y)), counts), rng)

    return split


@named
def unequal_missingness(k: int = 4, most: float = 0.8, columns: Sequence[str] | None = None) -> Split:
    """Rows at random; silo i of k loses a share `most` * i / (k - 1) of the known values of the columns (all: None).

    So the first silo loses nothing and the last one loses `most`; which values go is random, column by column.

    >>> import confrere as cf
    >>> silos = cf.data.titanic(split=cf.data.splits.unequal_missingness(3, 0.5, ["fare"]))
    >>> silos.feature_names[-1], [round(float(s.X[:, -1].mean()), 2) for s in silos.silos]
    ('fare=missing', [0.0, 0.25, 0.5])
    """
    check_share(most=most)
    if k < 2:
        raise ValueError(f"k must be 2 silos or more for their missing values to differ, not {k!r}")

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        check_count(k, len(pool.y))
        chosen = list(pool.columns) if columns is None else list(columns)
        known = {name: ~missing(values_of(pool, name)) for name in chosen}
        dealt = hands(letters(k), dealt_evenly(rng.permutation(len(pool.y)), range(k), k), rng)
        for i, hand in enumerate(dealt):
            gone = np.zeros((len(hand.rows), len(pool.columns)), bool)
            for j, name in enumerate(pool.columns):
                if name in known:
                    able = rng.permutation(np.flatnonzero(known[name][hand.rows]))
                    gone[able[: round(most * i / (k - 1) * len(able))], j] = True
            dealt[i] = hand._replace(gone=gone)
        return dealt

    return split


def proportions(k: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """A draw from the Dirichlet distribution; where alpha is so small that it vanishes, one silo gets all."""
    drawn = rng.dirichlet(np.full(k, float(alpha)))
    return drawn if np.isfinite(drawn).all() and drawn.sum() > 0 else np.eye(k)[rng.integers(k)]


def without_empty(groups: list[np.ndarray]) -> list[np.ndarray]:
    """Every empty group gets a row of the largest one."""
    for i, rows in enumerate(groups):
        if len(rows) == 0:
            largest = int(np.argmax([len(group) for group in groups]))
            groups[i], groups[largest] = groups[largest][-1:], groups[largest][:-1]
    return groups


def partly_shuffled(rows: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The same order, but for a share of the places whose rows are shuffled among themselves."""
    places = rng.permutation(len(rows))[: round(share * len(rows))]
    mixed = rows.copy()
    mixed[places] = rows[rng.permutation(places)]
    return mixed


def upper_half(values: np.ndarray) -> np.ndarray:
    """Values above the median; of words, all but the commonest; missing values never."""
    gone = missing(values)
    known = known_of(values)
    if known.dtype.kind in "biuf" and len(np.unique(known)) > 2:
        high = known > np.median(known)
    else:
        kinds, counts = np.unique(known, return_counts=True)
        high = known != kinds[np.argmax(counts)]
    upper = np.zeros(len(values), bool)
    upper[~gone] = high
    return upper


def another_label(y: np.ndarray) -> np.ndarray:
    """For every row a label that is not its own: the next class, or the amount mirrored at the mean."""
    if are_classes(y):
        classes = max(2, int(y.max(initial=0)) + 1)
        return ((y.astype(np.int64) + 1) % classes).astype(y.dtype)
    return 2 * y.mean() - y
