"""A prior on silos: what a user believes of each before training; every recipe accepts one.

Weights are multiplied by it, and a silo with prior 0 takes no part: it neither sends nor receives, as if it were absent
in every round. A prior is a selection, or numbers by the names of silos (1 for whoever is not named), or one number per
silo. A recipe keeps it as it is given; the host, who knows the silos, turns it into an array.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from confrere.data.silo import place_of


@runtime_checkable
class Judgement(Protocol):
    """What a `confrere.selection.Selection` offers."""

    names: tuple[str, ...]
    user: int

    def prior_for(self, names: Sequence[str]) -> np.ndarray:
        """The prior in the order of these names."""
        ...


Prior = Any  # a Judgement, a mapping from names to numbers, or one number per silo


def resolved(prior: Prior, names: Sequence[str], user: int | None) -> np.ndarray:
    """A prior as one number per silo [n], or an error that names the silo.

    >>> resolved({"south": 0}, ["north", "south"], 0).tolist()
    [1.0, 0.0]
    """
    found = as_numbers(prior, names, user)
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if len(wrong):
        raise ValueError(
            f"prior: silo {names[wrong[0]]!r} has {found[wrong[0]]}: it must be a finite number, 0 or more"
        )
    if user is not None and found[user] == 0:
        raise ValueError(f"prior: silo {names[user]!r} is the user, for whom the model is made: it cannot be left out")
    if not found.any():
        raise ValueError("prior: nobody is left to take part")
    return found


def as_numbers(prior: Prior, names: Sequence[str], user: int | None) -> np.ndarray:
    """A prior as an array, not yet checked."""
    if isinstance(prior, Judgement):
        whose = prior.names[prior.user]
        if user is not None and names[user] != whose:
            raise ValueError(
                f"the selection was made for {whose!r}, but the model is for {names[user]!r}: select again"
            )
        return np.asarray(prior.prior_for(names), float)
    if isinstance(prior, Mapping):
        found = np.ones(len(names))
        for name, value in prior.items():
            found[place_of(names, name)] = value
        return found
    found = np.asarray(prior, float)
    if found.shape != (len(names),):
        raise ValueError(f"prior must be one number for each of {len(names)} silos, but its shape is {found.shape}")
    return found
