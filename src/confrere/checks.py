"""Checks at the door: what a user gives is refused with a message that names it and says what is wanted."""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np


class WrongField(ValueError):
    """What is wrong with one field of a study, which is named as study.toml names it: ("study", "grid", "lr")."""

    def __init__(self, field: Sequence[str], said: str):
        super().__init__(said)
        self.field = tuple(field)


def concrete(value: Any) -> float | None:
    """A single number as a float; None for what is traced or an array of several, as in a grid."""
    if isinstance(value, jax.core.Tracer) or np.ndim(value) > 0:
        return None
    return float(value)


def those_given(**values: Any) -> dict[str, Any]:
    """What is not None: of arguments that may be left out, those to look at.

    >>> those_given(batch=10, steps=None)
    {'batch': 10}
    """
    return {name: value for name, value in values.items() if value is not None}


def check_numbers(least: float = 0.0, **given: Any) -> None:
    """Refuse what is no finite number, or one below `least`; traced values and arrays of a grid pass."""
    for name, value in given.items():
        try:
            if isinstance(value, str | bytes | bool):
                raise TypeError
            number = concrete(value)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number, not {value!r}") from None
        if number is not None and not (math.isfinite(number) and number >= least):
            limit = "" if least == -math.inf else f", {least:g} or more"
            raise ValueError(f"{name} must be a finite number{limit}, not {value!r}")


def check_single_numbers(least: float = 0.0, **given: Any) -> None:
    """The same where there is no grid: arrays are refused too."""
    for name, value in given.items():
        if np.iterable(value) and not isinstance(value, str | bytes):
            raise ValueError(f"{name} must be one number, not {value!r}")
    check_numbers(least, **given)


def check_above_zero(**given: Any) -> None:
    """Refuse what is no single finite number above zero."""
    check_single_numbers(**given)
    for name, value in given.items():
        if value == 0:
            raise ValueError(f"{name} must be above 0, not {value!r}")


def check_share(**given: Any) -> None:
    """Refuse what is no number between 0 and 1; traced values and arrays of a grid pass."""
    check_numbers(**given)
    for name, value in given.items():
        number = concrete(value)
        if number is not None and number > 1:
            raise ValueError(f"{name} must be a share between 0 and 1, not {value!r}")


def check_counts(least: int = 1, **counts: Any) -> None:
    """Refuse what is no whole number of `least` or more."""
    for name, value in counts.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not (whole and int(value) >= least):
            limit = "above 0" if least == 1 else f"of {least} or more"
            raise ValueError(f"{name} must be a whole number {limit}, not {value!r}")


def check_switches(**given: Any) -> None:
    """Refuse what is neither on nor off."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, not {value!r}")


def check_word(name: str, given: Any, known: Sequence[str]) -> None:
    """Refuse a word that means nothing here."""
    if given not in known:
        *first, last = map(repr, known)
        raise ValueError(f"{name} must be {', '.join(first)} or {last}, not {given!r}")


def check_functions(**given: Any) -> None:
    """Refuse what cannot be called."""
    for name, value in given.items():
        if not callable(value):
            raise TypeError(f"{name} must be a function, not {value!r}")


def check_network(network: Any) -> None:
    """Refuse what is no network; told by what it can do, since this part of the library does not know it."""
    if not hasattr(network, "adjacency") or not hasattr(network, "n"):
        raise TypeError(f"network must be a confrere.networks.Network, not {type(network).__name__}")


def real_array(name: str, given: Any, axes: str | None = None, finite: bool = True) -> np.ndarray:
    """What a user gives as an array of real numbers, in double precision.

    `axes`, such as "[m, d]", says how many there must be; None: any. `finite=False`: what is not finite passes.

    >>> real_array("X", [[1, 2], [3, 4]], "[m, d]").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    try:
        found = np.asarray(given)
        if given is None or found.dtype.kind in "USMmc":
            raise TypeError
        found = found.astype(float, copy=False)
    except (TypeError, ValueError):
        single = given is None or isinstance(given, str)
        said = f"not {given!r}" if single else "in rows of the same length, none of them text, complex or missing"
        raise ValueError(f"{name} must be real numbers, {said}") from None
    if axes is not None and found.ndim != axes.count(",") + 1:
        raise ValueError(f"{name} must be {axes}, not of shape {found.shape}")
    if finite and not np.isfinite(found).all():
        raise ValueError(f"{name} has a value that is not finite: give finite numbers only")
    return found
