"""Whom a study is about: users and seeds, as the caller gave them."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from confrere.data.silo import PartName
from confrere.data.silos import Silos

ALL = "all"  # in place of a user: all of them, or the mean over them


def chosen_users(given: str | Iterable[int | str], every: Sequence[Silos]) -> tuple[list[int], list[str]]:
    """The places of the users, and the names of those that "all" leaves out, having no rows to train or to test on."""
    names = every[0].names
    if ALL in names and len(names) > 1:
        raise ValueError(f"a silo is called {ALL!r}, which stands for the mean over users in a study: rename it")
    if isinstance(given, str):
        if given != ALL:
            raise ValueError(f"users must be 'all' or a list of silos, not {given!r}")
        return all_users(names, every)
    chosen = list(dict.fromkeys(every[0].index(user) for user in given))
    if not chosen:
        raise ValueError("no user given: say users='all' or name some silos")
    for user in chosen:
        if (what := lacking(user, every)) is not None:
            raise ValueError(f"silo {names[user]!r} has no {what} rows in some seed, so nothing honest can be reported")
    return chosen, []


def all_users(names: Sequence[str], every: Sequence[Silos]) -> tuple[list[int], list[str]]:
    """All silos that have rows to train and to test on in every seed, and the names of the others."""
    kept = [user for user in range(len(names)) if lacking(user, every) is None]
    left_out = [name for user, name in enumerate(names) if user not in kept]
    if not kept:
        raise ValueError("no silo has both training and test rows in every seed: nothing can be reported")
    if left_out:
        warnings.warn(f"not studied, for want of training or test rows: {', '.join(left_out)}", stacklevel=5)
    return kept, left_out


def lacking(user: int, every: Sequence[Silos]) -> str | None:
    """Which rows a user has none of in some seed."""
    parts: tuple[PartName, ...] = ("train", "test")
    return next((part for part in parts if any(silos.sizes(part)[user] == 0 for silos in every)), None)


def seed_numbers(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Seeds from a count or a list; each once."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        if seeds < 1:
            raise ValueError(f"there must be 1 seed or more, not {seeds}")
        return tuple(range(int(seeds)))
    if isinstance(seeds, str | bool) or not isinstance(seeds, Iterable):
        raise TypeError(f"seeds must be a count or a list of whole numbers, not {seeds!r}")
    chosen = tuple(seeds)
    if not chosen or any(not isinstance(s, int | np.integer) or isinstance(s, bool) or s < 0 for s in chosen):
        raise ValueError(f"seeds must be whole numbers, 0 or more, not {chosen!r}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"each seed may occur once, but some do more often: {chosen!r}")
    return tuple(int(s) for s in chosen)
