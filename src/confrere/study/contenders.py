"""Contenders: the algorithms of a study, each with the candidates for its open numbers."""

import contextlib
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from confrere.algorithms import ridge_local
from confrere.checks import WrongField
from confrere.data.intake.options import did_you_mean
from confrere.models import Model
from confrere.recipe import Bound, Recipe

LEARNING_RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # what is tried for a required `lr` that the grid does not name
FILLED_IN = ("user", "rounds")  # arguments of a recipe that a study knows
NO_NUMBER = ("prior",)  # arguments that no grid can give
Given = Recipe | Callable[..., Recipe]
Grid = Mapping[str, Any]


class Contender(NamedTuple):
    """An algorithm, what is static about it, and its candidates: one dict of numbers each, all with the same names."""

    name: str
    make: Bound
    static: Mapping[str, Any]
    candidates: tuple[dict[str, float], ...]
    personal: bool  # whether it is told who the user is
    rounds: int
    settled: bool = False  # whether the algorithm itself says how many rounds are enough


def contenders(
    algorithms: Iterable[Given] | Mapping[str, Given], grid: Grid, rounds: Mapping[str, int], default_rounds: int
) -> list[Contender]:
    """The algorithms under their names, with their candidates; what cannot be right is refused."""
    named = with_names(algorithms)
    check_grid(grid, named)
    found = []
    for name, given in named.items():
        with told_by_field(grid, name):
            found.append(contender(name, given, grid_of(grid, name, given), rounds, default_rounds))
    return found


@contextlib.contextmanager
def told_by_field(grid: Grid, name: str) -> Iterator[None]:
    """Say of a value that an algorithm refuses in which field of the grid it is."""
    try:
        yield
    except WrongField:
        raise
    except ValueError as problem:
        fields = [key for key in {**grid, **grid.get(name, {})} if re.search(rf"\b{re.escape(key)}\b", str(problem))]
        if not fields:
            raise
        raise WrongField(field_of(grid, name, fields[0]), f"the grid of {name}: {problem}") from problem


def with_baselines(
    algorithms: Sequence[Given] | Mapping[str, Given], model: Model
) -> Sequence[Given] | Mapping[str, Given]:
    """The algorithms, and the baseline that belongs to every comparison: `ridge_local`, the optimum that a silo reaches
    alone, for models for which there is one."""
    named = with_names(algorithms)
    if "ridge_local" in named or model.name not in ("linear", "logistic"):
        return algorithms
    return {**named, "ridge_local": ridge_local}


def with_names(algorithms: Iterable[Given] | Mapping[str, Given]) -> dict[str, Given]:
    """Algorithms by name; two of the same name are refused."""
    if isinstance(algorithms, Recipe) or not isinstance(algorithms, Iterable):
        raise TypeError(f"algorithms must be a list such as [confrere.local, confrere.fedavg], not {algorithms!r}")
    if isinstance(algorithms, Mapping):
        return {str(name): checked(given) for name, given in algorithms.items()}
    named: dict[str, Given] = {}
    for given in algorithms:
        name = own_name(checked(given))
        if name in named:
            raise ValueError(f"two algorithms are called {name!r}: name them, as in {{'{name}': ..., '{name} 2': ...}}")
        named[name] = given
    if not named:
        raise ValueError("no algorithm given: pass a list such as [confrere.local, confrere.fedavg]")
    return named


def checked(given: Any) -> Given:
    """A recipe, or a function that makes one."""
    if not isinstance(given, Recipe) and not callable(given):
        raise TypeError(f"an algorithm is e.g. confrere.fedavg or confrere.fedavg(lr=0.1), not {given!r}")
    return given


def own_name(given: Given) -> str:
    """The name of a recipe, or of the function that makes it."""
    if isinstance(given, Recipe):
        return given.name
    function = given.func if isinstance(given, functools.partial) else given
    return str(getattr(function, "__name__", type(function).__name__))


def check_grid(grid: Grid, named: Mapping[str, Given]) -> None:
    """Refuse names in the grid that no algorithm has."""
    every = list(dict.fromkeys(number for given in named.values() for number in open_numbers(given)))
    for key, values in grid.items():
        if not isinstance(values, Mapping):
            if key not in every:
                said = f"{key!r}, which is a number of none of the algorithms ({', '.join(named)})"
                raise WrongField(("study", "grid", key), f"the grid names {said}{did_you_mean(key, every)}")
            continue
        if key not in named:
            said = f"the grid names {key!r}, which is none of the algorithms{did_you_mean(key, named)}"
            raise WrongField(("study", "grid", key), said)
        numbers = open_numbers(named[key])
        for name in values:
            if name not in numbers:
                said = f"the grid of {key!r} names {name!r}, which is none of its numbers{did_you_mean(name, numbers)}"
                raise WrongField(("study", "grid", key, name), said)


def open_numbers(given: Given) -> tuple[str, ...]:
    """The names that a grid may give for an algorithm."""
    names = given.hyper if isinstance(given, Recipe) else inspect.signature(given).parameters
    return tuple(name for name in names if name not in (*FILLED_IN, *NO_NUMBER))


def grid_of(grid: Grid, name: str, given: Given) -> dict[str, list[float]]:
    """The values to try for every number of one algorithm; what is said for it alone comes first."""
    known = open_numbers(given)
    general = {key: values for key, values in grid.items() if not isinstance(values, Mapping) and key in known}
    values = {**general, **grid.get(name, {})}
    if not isinstance(given, Recipe):
        for missing in required(given) - set(values):
            if missing != "lr":
                raise ValueError(f"{name} needs a value for {missing!r}: say grid={{{name!r}: {{{missing!r}: [...]}}}}")
            values["lr"] = LEARNING_RATES
    return {key: as_numbers(name, key, value, field_of(grid, name, key)) for key, value in values.items()}


def field_of(grid: Grid, name: str, key: str) -> tuple[str, ...]:
    """Where in study.toml a number of an algorithm is given."""
    return ("study", "grid", *([name] if key in grid.get(name, {}) else []), key)


def required(factory: Callable[..., Recipe]) -> set[str]:
    """The arguments without which a recipe cannot be made, but for those that the study fills in."""
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    arguments = inspect.signature(factory).parameters.values()
    return {a.name for a in arguments if a.default is a.empty and a.kind in plain and a.name not in FILLED_IN}


def as_numbers(name: str, key: str, values: Any, field: Sequence[str]) -> list[float]:
    """The values of one number: one or several, finite, each once."""
    try:
        numbers = np.atleast_1d(values).tolist()
        finite = bool(np.isfinite(numbers).all())
    except (TypeError, ValueError):
        said = f"the grid of {name}: {key} must be a number or a list of numbers, not {values!r}"
        raise WrongField(field, said) from None
    if not numbers or not finite:
        raise WrongField(field, f"the grid of {name}: {key} must be one finite number or more, not {values!r}")
    return list(dict.fromkeys(numbers))


def contender(
    name: str, given: Given, values: Mapping[str, list[float]], rounds: Mapping[str, int], default: int
) -> Contender:
    """One algorithm with every combination of the values."""
    points = [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
    planned = rounds_of(rounds, name, default)
    recipes = [recipe_at(given, point, planned) for point in points]
    first = recipes[0]
    if "prior" in first.hyper:
        raise ValueError(
            f"{name} has a prior, which is one user's: a study is for many. Leave silos out of all its runs "
            "(silos.only), or run the recipe by itself (simulate)"
        )
    for key in values:
        if key not in first.hyper:
            raise ValueError(
                f"{key!r} of {name} is no number that can be tuned, it shapes the program: "
                f"compare ready recipes under names of their own instead"
            )
    if any(r.bound != first.bound for r in recipes):
        raise ValueError(f"the candidates of {name} differ in more than numbers")
    candidates = tuple({k: float(v) for k, v in r.hyper.items() if k != "user"} for r in recipes)
    settled = first.rounds is not None and name not in rounds
    wanted = rounds_of(rounds, name, first.rounds if first.rounds is not None else default)
    return Contender(name, first.bound, dict(first.static), candidates, "user" in first.hyper, wanted, settled)


def recipe_at(given: Given, point: Mapping[str, float], rounds: int) -> Recipe:
    """The recipe with the numbers of one candidate, told how long the run is if it asks for that.

    The user is a number still to be filled in.
    """
    if isinstance(given, Recipe):
        return given.replace(**point)
    asked = inspect.signature(given).parameters
    filled_in = {name: value for name, value in (("user", 0), ("rounds", rounds)) if name in asked}
    recipe = given(**filled_in, **point)
    if not isinstance(recipe, Recipe):
        raise TypeError(f"{own_name(given)} must return a Recipe, not {type(recipe).__name__}")
    return recipe


def rounds_of(rounds: Mapping[str, int], name: str, default: int) -> int:
    """How many rounds an algorithm runs."""
    chosen = rounds.get(name, default)
    if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer) or chosen < 1:
        raise ValueError(f"rounds must be a whole number above 0, not {chosen!r}")
    return int(chosen)
