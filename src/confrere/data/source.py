"""What silos know about where their rows come from: what was shared, and the tables behind them, if any."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from confrere.data.silos import Silos

Kind = Literal["real", "artificial", "synthetic"]


class Shared(NamedTuple):
    """One quantity that left a silo: what, how many numbers (or words), and what for."""

    silo: str
    what: str
    count: int
    why: str


class Hand(NamedTuple):
    """What one silo gets when rows are dealt out: which rows, and what is changed about them.

    `y` takes the place of the rows' labels; `gone` [rows, columns] says which values are removed.
    """

    name: str
    rows: np.ndarray
    y: np.ndarray | None = None
    gone: np.ndarray | None = None


class Pool(NamedTuple):
    """All rows before they are dealt out: columns by name, as they were recorded, and the labels."""

    columns: Mapping[str, np.ndarray]
    y: np.ndarray


Split = Callable[[Pool, np.random.Generator], list[Hand]]  # see confrere.data.splits


class Source(Protocol):
    """The tables behind silos, from which features are made anew whenever the training rows change."""

    def encode(self, parts: Sequence[np.ndarray]) -> "Silos":
        """Silos whose features rest on statistics of the training rows alone."""
        ...

    def pool(self) -> Pool:
        """All rows of all silos, in order."""
        ...

    def deal(self, hands: Sequence[Hand]) -> "Source":
        """The same rows in other silos."""
        ...
