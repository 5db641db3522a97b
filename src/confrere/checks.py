"""Checks at the door: what a user gives is refused with a message that names it and says what is wanted."""

from typing import Any

import numpy as np


def check_numbers(**numbers: Any) -> None:
    """Refuse a negative or non-finite number; traced values and arrays of a grid pass."""
    for name, value in numbers.items():
        if isinstance(value, str | bytes):
            raise ValueError(f"{name} must be a number, not {value!r}")
        if isinstance(value, int | float | np.number) and not 0 <= float(value) < float("inf"):
            raise ValueError(f"{name} must be a finite number, 0 or more, not {value!r}")


def check_counts(**counts: Any) -> None:
    """Refuse what is no whole number above zero; None passes."""
    for name, value in counts.items():
        if value is not None and (isinstance(value, str | bytes) or int(value) != value or value < 1):
            raise ValueError(f"{name} must be a whole number above 0, not {value!r}")
