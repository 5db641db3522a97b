"""A finding about a silo's own data: what, how much, how sure, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

Kind = Literal["code", "limit", "unit", "impossible", "digits", "missing", "constant", "location", "spread", "share"]
ORDER: tuple[Kind, ...] = (
    "code", "unit", "impossible", "limit", "constant", "missing", "location", "spread", "share", "digits",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """Something about one column that is worth a look.

    `effect` is how large it is, in the words of `unit`, with its 95 % interval. `chance` is how probable so much is
    without any difference, `discovery` the same after all tests of all columns were counted (Benjamini and Hochberg);
    both are None where a rule was applied and not a test. `usual` is the largest effect of that kind by which another
    silo differs from the rest, if it can be told: below it, the finding is nothing out of the way.
    """

    kind: Kind
    column: str
    words: str
    evidence: str
    advice: str
    effect: float
    low: float | None
    high: float | None
    unit: str
    chance: float | None = None
    discovery: float | None = None
    usual: float | None = None
    rows: tuple[int, ...] = ()  # of the silo's own table; for its own eyes
    notable: bool = True  # large enough to be worth a word, if it is no chance

    @property
    def beyond(self) -> bool | None:
        """Whether it is more than the other silos differ from one another; None: not known."""
        return None if self.usual is None else bool(self.size > self.usual)

    @property
    def size(self) -> float:
        """How large the effect is, whichever way: ratios by their logarithm."""
        return float(abs(np.log(self.effect))) if self.unit.startswith("times") else abs(self.effect)

    def to_dict(self, rows: bool = True) -> dict[str, Any]:
        """As plain values; without `rows`, for others' eyes."""
        plain = {k: v for k, v in vars(self).items() if k not in ("rows", "notable")} | {"beyond": self.beyond}
        return plain | ({"rows": list(self.rows)} if rows else {})


def discoveries(found: Sequence[Finding], alpha: float) -> list[Finding]:
    """Findings of tests with their false discovery rates; those above alpha, and small effects, are left out.

    All tests count, also those of effects that are too small for a word. Findings by a rule are kept.

    Benjamini, Hochberg: Controlling the false discovery rate (1995): with m tests, the k-th smallest p becomes the
    smallest of p_j m / j over j >= k. It holds for independent tests and for many that depend on one another.
    """
    rates = false_discovery_rates([f.chance for f in found if f.chance is not None])
    given = iter(rates)
    rated = [f if f.chance is None else replace(f, discovery=float(next(given))) for f in found]
    return [f for f in rated if f.notable and (f.discovery is None or f.discovery <= alpha)]


def false_discovery_rates(chances: Sequence[float]) -> np.ndarray:
    """The rate of false discoveries at which each test would be one.

    >>> false_discovery_rates([0.01, 0.5, 0.02]).tolist()
    [0.03, 0.5, 0.03]
    """
    p = np.asarray(chances, float)
    order = np.argsort(p)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    rates = np.empty(len(p))
    rates[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return rates


def in_order(found: Sequence[Finding]) -> tuple[Finding, ...]:
    """What is most likely a mistake first; within a kind, what others do not have first, then by size."""
    return tuple(sorted(found, key=lambda f: (ORDER.index(f.kind), f.beyond is False, -f.size, f.column)))
