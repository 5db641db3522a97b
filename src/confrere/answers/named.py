"""An algorithm that the user asks for: its open numbers tuned on the user's rows, then run on all of them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from confrere import algorithms
from confrere.data.silos import Silos
from confrere.history import History, row_for
from confrere.recipe import Recipe

NAMED: tuple[str, ...] = tuple(algorithms.__all__)


def asked_for(algorithm: Any) -> Recipe | Callable[..., Recipe]:
    """The recipe, or the function that makes it, from what the user gave."""
    if isinstance(algorithm, str):
        if algorithm not in NAMED:
            raise ValueError(f"there is no algorithm {algorithm!r}; choose auto or one of {', '.join(NAMED)}")
        return getattr(algorithms, algorithm)
    if not isinstance(algorithm, Recipe) and not callable(algorithm):
        raise TypeError(f"algorithm must be a name such as 'auto' or e.g. confrere.fedavg, not {algorithm!r}")
    return algorithm


def listened_to(history: History, silos: Silos, user: int) -> dict[str, float]:
    """Every silo's share of the weight, averaged over the rounds; the user alone where nothing is weighed."""
    shares = history.shares
    if shares is None or not len(shares):
        return {name: float(i == user) for i, name in enumerate(silos.names)}
    mean = row_for(shares, user, history.per_silo).mean(axis=0)
    total = mean.sum()
    mean = mean / total if total > 0 else np.eye(len(silos))[user]
    return dict(zip(silos.names, map(float, mean), strict=True))


def kept_weight(history: History, silos: Silos, user: int) -> dict[str, float]:
    """How much of its first weight each other silo kept, averaged over the rounds, at most 1."""
    raw = history.weights
    if raw is None or not len(raw):
        return {}
    row = row_for(raw, user, history.per_silo)
    own = np.maximum(row[:, user : user + 1], 1e-12)
    kept = np.minimum(row / own, 1).mean(axis=0)
    return {name: float(kept[i]) for i, name in enumerate(silos.names) if i != user}


def numbers_in_words(numbers: Mapping[str, float]) -> str:
    """lr 0.3, p_d 0.01."""
    return ", ".join(f"{name} {float(value):g}" for name, value in numbers.items())
