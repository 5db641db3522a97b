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


def check_numbers(least: float = 0.0, **given: Any) -> None:
    """Refuse what is no finite number, or one below `least`; traced values and arrays of a grid pass."""
    for name, value in given.items():
        if value is None or isinstance(value, str | bytes | bool):
            raise ValueError(f"{name} must be a number, not {value!r}")
        number = concrete(value)
        if number is not None and not (math.isfinite(number) and number >= least):
            limit = "" if least == -math.inf else f", {least:g} or more"
            raise ValueError(f"{name} must be a finite number{limit}, not {value!r}")


def check_share(**given: Any) -> None:
    """Refuse what is no number between 0 and 1; traced values and arrays of a grid pass."""
    check_numbers(**given)
    for name, value in given.items():
        number = concrete(value)
        if number is not None and number > 1:
            raise ValueError(f"{name} must be a share between 0 and 1, not {value!r}")


def check_counts(**counts: Any) -> None:
    """Refuse what is no whole number above zero; None passes."""
    for name, value in counts.items():
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if value is not None and not (whole and int(value) >= 1):
            raise ValueError(f"{name} must be a whole number above 0, not {value!r}")


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


def check_network(network: Any) -> None:
    """Refuse what is no network; told by what it can do, since this part of the library does not know it."""
    if not hasattr(network, "adjacency") or not hasattr(network, "n"):
        raise TypeError(f"network must be a confrere.networks.Network, not {type(network).__name__}")
