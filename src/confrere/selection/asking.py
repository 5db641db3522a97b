"""What methods of selection share: the user and the model, whom to ask, and who cannot be heard."""

from collections.abc import Sequence
from typing import Any, Literal

import jax
import numpy as np

from confrere.answers.personalise import fitting_model
from confrere.checks import check_counts, check_word
from confrere.data.silos import Silos
from confrere.models import Model, logistic
from confrere.plural import plural
from confrere.simulation.inputs import check_types

Others = Literal["all", "train"]
NO_ANSWER = "it did not answer: training can start without it"
NOT_FINITE = "what it sent is no finite number: it is left out"
LEAST = 5  # training rows of the smallest silo that is asked, as said of anything else that leaves a silo


def start_with(silos: Silos, user: int | str, model: Model | None, others: Others) -> tuple[Silos, int, Model]:
    """The silos as the user may use them, its place and the model: by default the one for the labels, begun at zero."""
    check_word("others", others, ("all", "train"))
    chosen = fitting_model(silos) if model is None else model
    if model is None and chosen.name == "logistic":
        chosen = logistic("zero")
    check_types(chosen, silos)
    place = silos.index(user)
    rows = silos.sizes("train")[place]
    if rows < 2:
        raise ValueError(
            f"the user, silo {silos.names[place]!r}, has {plural(rows, 'training row')}: too few to judge by"
        )
    if len(silos) < 2:
        raise ValueError(f"silo {silos.names[place]!r} is alone: there is nobody to choose from")
    return silos.for_user(place, others), place, chosen


def too_few(rows: int, least: int, who: str = "it") -> str:
    """Why a silo of so few rows takes no part.

    >>> too_few(2, 5)
    'it has 2 training rows, fewer than the minimum of 5'
    """
    return f"{who} has {plural(rows, 'training row')}, fewer than the minimum of {least}"


def asked(silos: Silos, user: int, silent: Sequence[str], least: int = 1) -> tuple[list[str], dict[str, str]]:
    """Who is asked and may answer, and why the others are not heard: they are silent, or have fewer rows than `least`.

    The user asks, and is held to no minimum here.
    """
    check_counts(min_count=least)
    if isinstance(silent, str):
        raise TypeError(f"silent must be a list of names, as in [{silent!r}]")
    quiet = {silos.names[silos.index(name)]: NO_ANSWER for name in silent}
    if silos.names[user] in quiet:
        raise ValueError(f"silo {silos.names[user]!r} is the user, and cannot be silent")
    few = {n: too_few(rows, least) for n, rows in zip(silos.names, silos.sizes("train"), strict=True) if rows < least}
    without = {n: why for n, why in {**quiet, **few}.items() if n != silos.names[user]}
    return [n for i, n in enumerate(silos.names) if i != user and n not in without], without


def finite_tree(tree: Any) -> bool:
    """Whether all numbers of a message are finite."""
    return all(bool(np.isfinite(a).all()) for a in jax.tree.leaves(tree))
