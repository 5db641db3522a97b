"""Sets of labelled images dealt out to silos, every image a row of normalised pixels.

Images stay bytes until they are dealt out; each silo's rows are then made once, in single precision.
"""

from typing import NamedTuple

import numpy as np

from confrere.data.dealing import check_hands, split_name
from confrere.data.label_lists import Share, agent_names, by_lists, check_rows, share_of
from confrere.data.silo import PARTS, Silo
from confrere.data.silos import Silos
from confrere.data.source import Pool, Split


class Images(NamedTuple):
    """A data set: images as bytes [n, height, width, channels], labels [n], and how pixels are normalised.

    A pixel of value v becomes (v / 255 - mean) / std, channel by channel.
    """

    title: str
    train: np.ndarray
    train_y: np.ndarray
    test: np.ndarray
    test_y: np.ndarray
    mean: tuple[float, ...]
    std: tuple[float, ...]
    label_names: tuple[str, ...]
    channels: tuple[str, ...] = ("",)


def image_silos(images: Images, distribution: str | Split, agents: int, rows: int, seed: int) -> Silos:
    """Silos of images by a distribution of the WAFFLE paper or by a split, each with training and test rows."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number, 0 or more, not {seed!r}")
    if callable(distribution):
        shares, how = by_split(images, distribution, agents, rows, seed), split_name(distribution)
    else:
        shares = by_lists(images.train_y, images.test_y, distribution, agents, rows, seed)
        how = f"distribution {distribution}"
    origin = f"{images.title} ({len(images.train)} and {len(images.test)} images), dealt out by {how}"
    silos = tuple(one_silo(images, share) for share in shares)
    return Silos(silos, pixel_names(images), images.label_names, origin, "artificial")


def by_split(images: Images, split: Split, agents: int, rows: int, seed: int) -> list[Share]:
    """Deal agents x rows random images out by a split; test rows follow each silo's shares of the classes."""
    check_rows(agents, rows, len(images.train))
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(images.train))[: agents * rows]
    y = images.train_y[chosen]
    pixels = images.train[chosen].reshape(len(chosen), -1)
    pool = Pool(dict(zip(pixel_names(images), pixels.T, strict=True)), y)
    hands = split(pool, rng)
    check_hands(hands, pool, split_name(split))
    if len(hands) != agents:
        raise ValueError(f"the split {split_name(split)} makes {len(hands)} silos, not {agents}: give it k={agents}")
    if any(hand.y is not None or hand.gone is not None for hand in hands):
        raise ValueError(
            f"the split {split_name(split)} changes rows, and test images cannot be changed in the same way: choose a "
            "distribution with a star for concept shift, or divide the silos and split off test rows afterwards"
        )
    return [
        like_training(name, chosen[hand.rows], images) for name, hand in zip(agent_names(agents), hands, strict=True)
    ]


def like_training(name: str, rows: np.ndarray, images: Images) -> Share:
    """A silo's training rows, with test and validation rows in which classes have the shares that they have there."""
    shares = np.bincount(images.train_y[rows], minlength=len(images.label_names)) / len(rows)
    return share_of(name, rows, shares, images.train_y, images.test_y, images.test_y)


def one_silo(images: Images, share: Share) -> Silo:
    """The rows of one silo: those for training first, then those for validation and test."""
    counts = {"train": len(share.train), "validation": len(share.validation), "test": len(share.test)}
    X = np.empty((sum(counts.values()), *images.train.shape[1:]), np.float32)
    X[: counts["train"]] = images.train[share.train]
    X[counts["train"] :] = images.test[np.concatenate([share.validation, share.test])]
    X -= 255 * np.asarray(images.mean, np.float32)
    X /= 255 * np.asarray(images.std, np.float32)
    part = np.repeat([PARTS.index(name) for name in counts], list(counts.values())).astype(np.int8)  # type: ignore[arg-type]
    y = np.concatenate([share.train_y, share.validation_y, share.test_y]).astype(np.int32)
    return Silo(share.name, X.reshape(len(X), -1), y, part)


def pixel_names(images: Images) -> tuple[str, ...]:
    """pixel row,column, with the name of the channel where there are several."""
    height, width, _ = images.train.shape[1:]
    return tuple(
        f"pixel {i},{j} {channel}".rstrip() for i in range(height) for j in range(width) for channel in images.channels
    )
