"""Partitions by lists of class shares: every silo has a list of what share of its rows each class makes up.

The distributions of the WAFFLE paper are lists of ten numbers, moved to the right i times for agent i; agent 0 is
Alice. A star means concept shift on top: every agent but Alice has a random permutation of the labels of its own, on
its training and on its test rows.

Reference: Martin Beaussart, Felix Grimberg, Mary-Anne Hartley, Martin Jaggi: WAFFLE: Weighted averaging for
personalized federated learning (2021), section 3 and Figure 2. The test rows are those of the authors' earlier program
(Gengler, Beaussart, Yuan, 2020). The paper stars A and B only; here C may have a star as well. The paper chooses the
best round on the test rows; here as many further images of the test set are validation rows, to choose by.

A departure: classes of MNIST have 5421 to 6742 images, so that 10 agents x 6000 rows ask for more of some classes than
there are. An agent has at most its share of a class's images, in proportion to the agents' lists, and makes up for it
with its other classes as far as they go: a few silos then have a little fewer rows than was asked for.
"""

from typing import NamedTuple

import numpy as np

from confrere.data.pool import apportion, cut

LISTS: dict[str, tuple[float, ...]] = {
    "A": (0.1,) * 10,
    "B": (0.25,) * 4 + (0.0,) * 6,
    "C": (0.0, 0.0, 0.0, 0.1, 0.2, 0.4, 0.2, 0.1, 0.0, 0.0),
}
NEARLY = 0.9  # a silo with a smaller share of the rows that were asked for is refused


class Share(NamedTuple):
    """What one silo gets: its name, rows of the training images, rows of the test images to choose by and to measure
    on, and the labels of each as it sees them."""

    name: str
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    train_y: np.ndarray
    validation_y: np.ndarray
    test_y: np.ndarray


def by_lists(
    train_y: np.ndarray, test_y: np.ndarray, distribution: str, agents: int, rows: int, seed: int = 0
) -> list[Share]:
    """Deal images out to agents by a distribution of the paper, knowing their labels 0 to 9 only.

    Every training image is used at most once. The same seed gives the same images with and without a star.

    >>> labels = np.arange(1000) % 10
    >>> shares = by_lists(labels, labels, "B", agents=10, rows=40)
    >>> shares[9].name, np.bincount(shares[9].train_y, minlength=10).tolist()
    ('agent 9', [10, 10, 10, 0, 0, 0, 0, 0, 0, 10])
    """
    name = checked(distribution)
    check_rows(agents, rows, len(train_y))
    lists = np.stack([np.roll(LISTS[name], i) for i in range(agents)])
    of_images, of_labels = np.random.default_rng(seed).spawn(2)
    counts = class_counts(lists, rows, np.bincount(train_y, minlength=lists.shape[1]))
    trains = drawn(train_y, counts, of_images)
    swaps = [np.arange(lists.shape[1]) for _ in range(agents)]
    if distribution != name:
        swaps[1:] = [of_labels.permutation(lists.shape[1]) for _ in range(agents - 1)]
    given = zip(agent_names(agents), trains, lists, swaps, strict=True)
    return [share_of(agent, train, own, swap[train_y], swap[test_y], test_y) for agent, train, own, swap in given]


def share_of(
    name: str, train: np.ndarray, shares: np.ndarray, train_y: np.ndarray, seen_y: np.ndarray, test_y: np.ndarray
) -> Share:
    """A silo's training rows, with test and validation rows in which classes have the given shares.

    train_y and seen_y are all images' labels as the silo sees them; test_y are those that the shares are about.
    """
    test, validation = first_rows(test_y, shares), first_rows(test_y, shares, 1)
    return Share(name, train, validation, test, train_y[train], seen_y[validation], seen_y[test])


def agent_names(agents: int) -> list[str]:
    """Alice, agent 1, agent 2, ..."""
    return ["Alice", *(f"agent {i}" for i in range(1, agents))]


def checked(distribution: str) -> str:
    """The distribution's name without its star, or an error that lists the distributions."""
    if isinstance(distribution, str) and distribution.removesuffix("*") in LISTS:
        return distribution.removesuffix("*")
    known = ", ".join([*LISTS, *(f"{name}*" for name in LISTS)])
    raise ValueError(f"distribution must be one of {known}, not {distribution!r}, or a split of data.splits")


def check_rows(agents: int, rows: int, images: int) -> None:
    """There must be an agent, a row for each, and as many images as they ask for together."""
    for name, value in (("agents", agents), ("rows", rows)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a whole number of 1 or more, not {value!r}")
    if agents * rows > images:
        most = f"at most {images // agents} rows each" if agents <= images else f"at most {images} agents"
        raise ValueError(
            f"{agents} agents with {rows} rows each need {agents * rows} images; there are {images}: {most}"
        )


def class_counts(lists: np.ndarray, rows: int, supply: np.ndarray) -> np.ndarray:
    """How many images of each class every agent gets [agents, classes]: its list times `rows`, rounded to sum to it.

    >>> class_counts(np.array([[0.5, 0.5, 0], [0, 0.5, 0.5]]), 10, np.array([100, 8, 100])).tolist()
    [[6, 4, 0], [0, 4, 6]]
    """
    asked = lists.sum(axis=0)
    most = np.stack(
        [
            apportion(n, column) if total > 0 else np.zeros(len(lists), np.int64)
            for n, column, total in zip(supply, lists.T, asked, strict=True)
        ],
        axis=1,
    )
    counts = np.stack([poured(rows, shares, limits) for shares, limits in zip(lists, most, strict=True)])
    short = counts.sum(axis=1) < NEARLY * rows
    if short.any():
        raise ValueError(
            f"{rows} rows for each of {len(lists)} agents are more than some classes have images for: at most "
            f"{most.sum(axis=1).min()} rows each are possible with this distribution and so many agents"
        )
    return counts


def poured(total: int, weights: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Whole numbers in proportion to weights that sum to `total`, none above its limit; all limits, if they are less.

    >>> poured(10, np.array([1.0, 1.0, 2.0]), np.array([1, 9, 9])).tolist()
    [1, 3, 6]
    """
    counts, full = np.zeros(len(weights), np.int64), weights == 0
    while not full.all():
        counts[full] = np.where(weights > 0, limits, 0)[full]
        counts[~full] = apportion(max(total - counts[full].sum(), 0), weights[~full])
        over = ~full & (counts > limits)
        if not over.any():
            return counts
        full |= over
    return np.where(weights > 0, limits, 0)


def drawn(y: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows for every agent, drawn at random class by class, no row twice, in random order."""
    classes = range(counts.shape[1])
    dealt = [cut(rng.permutation(np.flatnonzero(y == k))[: counts[:, k].sum()], counts[:, k]) for k in classes]
    return [rng.permutation(np.concatenate(own)) for own in zip(*dealt, strict=True)]


def first_rows(y: np.ndarray, shares: np.ndarray, skipped: int = 0) -> np.ndarray:
    """The first floor(p_k n_k) rows of every class k, in their order: test rows by a list of shares.

    `skipped` leaves so many times as many out in front: with 1, the rows behind the test rows, as far as they go.

    >>> first_rows(np.array([0, 1, 0, 1, 0, 1]), np.array([1.0, 0.4])).tolist()
    [0, 1, 2, 4]
    >>> first_rows(np.array([0, 1, 0, 1, 0, 1]), np.array([1.0, 0.4]), skipped=1).tolist()
    [3]
    """
    rows = [np.flatnonzero(y == k) for k in range(len(shares))]
    counts = [int(np.floor(p * len(own) + 1e-9)) for p, own in zip(shares, rows, strict=True)]
    kept = [own[skipped * count : (skipped + 1) * count] for own, count in zip(rows, counts, strict=True)]
    return np.sort(np.concatenate(kept))
