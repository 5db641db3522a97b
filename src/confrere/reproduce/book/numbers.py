"""Numbers beside their references: what the author's notebooks printed, and what another program of ours found.

The notebooks of 2024 were run with an older file of 16,469 rows; where that matters their numbers differ from those on
the present file of 19,768 rows, for which there is the second reference.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

ROUNDING = 1e-10  # relative difference that sums in another order may make


class Reference(NamedTuple):
    """What a number should be."""

    printed: float | None = None  # in the author's notebook
    checked: float | None = None  # by a program of our own on the present file; None: as printed
    within: tuple[float, float] | None = None  # where a number cannot be known more exactly
    why: str = ""  # it cannot

    @property
    def expected(self) -> float | None:
        """The number that ours is compared with."""
        return self.printed if self.checked is None else self.checked

    def verdict(self, value: float) -> bool | None:
        """Whether a number agrees to all digits that the reference has; None: there is no reference."""
        if self.within is not None:
            return self.within[0] <= value <= self.within[1]
        if self.expected is None:
            return None
        return abs(value - self.expected) <= max(ROUNDING * abs(self.expected), half_digit(self.expected))


def half_digit(value: float) -> float:
    """Half a unit of the last digit that is written, and a hair.

    >>> half_digit(38.1243)
    5.05e-05
    """
    decimals = len(repr(float(value)).partition(".")[2]) if "e" not in repr(float(value)) else 12
    return 0.505 * 10.0**-decimals


References = Mapping[str, Reference]


def flat(report: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a nested report with its path.

    >>> dict(flat({"fedgd": {"train": 1.5, "published": [2.0]}, "k": [3, 4]}))
    {'fedgd.train': 1.5, 'k.0': 3, 'k.1': 4}
    """
    if isinstance(report, Mapping):
        parts = [(key, value) for key, value in report.items() if key != "published"]
    elif isinstance(report, Sequence):
        parts = list(enumerate(report))
    else:
        if report is not None:
            yield name, report
        return
    for key, value in parts:
        yield from flat(value, f"{name}.{key}" if name else str(key))


def both(name: str, train: Reference, validation: Reference) -> dict[str, Reference]:
    """References of a training and a validation error."""
    return {f"{name}.train": train, f"{name}.validation": validation}


def rows(name: str, printed: Sequence[float], checked: Sequence[float] | None = None) -> dict[str, Reference]:
    """References of a list."""
    found = printed if checked is None else checked
    return {f"{name}.{i}": Reference(*pair) for i, pair in enumerate(zip(printed, found, strict=True))}
