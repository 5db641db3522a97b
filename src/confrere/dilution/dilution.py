"""Dilution: how strongly what a silo gives is mixed with what others give, known before anything is trained.

    dilution_i = 1 - the largest share of weight that silo i can have in a model that another party receives

0: its contribution may be seen by itself; 0.9: at least nine tenths of any model come from others. A silo whose
dilution would be below its limit withdraws, and takes no part (prior 0). That makes the others' shares larger, so that
the question is asked again among those who stay, until nobody more leaves. Where a bound only grows as others leave (it
does for plain averages), whoever leaves could not stay in any smaller circle either: those who stay are the most that
can.

Grimberg, Hartley, Jaggi, Karimireddy: Weight Erosion (2020), section 3: "Each agent i can therefore verify before
participating, that the other agents contribute enough data to dilute the influence of S_i and protect agent i's IP."
Grimberg: semester project report (2020), sections 4.3 and 4.5. The papers define no number; this is ours. The user, for
whom the model is made, does not withdraw.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from confrere.checks import check_share
from confrere.data.silos import Silos
from confrere.dilution.bounds import WHY, Situation, bound_of
from confrere.prior import resolved
from confrere.recipe import Recipe

if TYPE_CHECKING:
    from rich.table import Table

Limit = float | Mapping[str, float] | None
ROUNDING = 1e-9
OPEN = 0.1  # in place of a number that a recipe wants, and that is still open


@dataclass(frozen=True, eq=False)
class Dilution:
    """Every silo's share of rows and bound on its share of weight [n], and who withdrew; NaN for who takes no part."""

    names: tuple[str, ...]
    user: int | None
    algorithm: str
    rows: np.ndarray
    samples: np.ndarray  # share of the rows of all who take part
    bound: np.ndarray  # on the share of weight, exact: no run exceeds it
    limit: np.ndarray  # the least dilution that each silo accepts; NaN: none
    prior: np.ndarray  # what training takes: 0 for who withdrew
    withdrawn: Mapping[str, str]  # silo -> why
    why: str  # what the bound rests on

    @property
    def values(self) -> np.ndarray:
        """The dilution of every silo [n]: 1 - bound."""
        return 1 - self.bound

    def of(self, silo: str) -> float:
        """The dilution of one silo."""
        return float(self.values[self.names.index(silo)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; they are exact, and have no intervals."""
        number = lambda v: float(v) if np.isfinite(v) else None  # noqa: E731
        columns = {"samples": self.samples, "bound": self.bound, "dilution": self.values, "limit": self.limit}
        return {
            "algorithm": self.algorithm, "user": None if self.user is None else self.names[self.user], "why": self.why,
            "silos": {
                name: {"rows": int(self.rows[i])} | {key: number(v[i]) for key, v in columns.items()}
                for i, name in enumerate(self.names)
            },
            "withdrawn": dict(self.withdrawn),
        }  # fmt: skip

    def to_json(self) -> str:
        """The dilution as a JSON object."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def table(self) -> "Table":
        """A table for a terminal."""
        from rich.table import Table
        from rich.text import Text

        caption = f"Known before training, and exact: no interval. Share of weight at most: {self.why}."
        table = Table(title=Text(f"How far silos are diluted by {self.algorithm}"), caption=Text(caption))
        table.add_column("Silo")
        for title in ("Rows", "Share of rows", "Share of weight at most", "Dilution at least"):
            table.add_column(title, justify="right")
        for i, name in enumerate(self.names):
            if not np.isfinite(self.bound[i]):
                table.add_row(Text(name), str(int(self.rows[i])), "takes no part", "", "")
                continue
            cells = (f"{v:.1%}" for v in (self.samples[i], self.bound[i], self.values[i]))
            table.add_row(Text(name), str(int(self.rows[i])), *cells)
        return table

    def __rich__(self) -> "Table":
        return self.table()


def dilution(
    silos: Silos,
    recipe: Recipe | Callable[..., Recipe] | str,
    *,
    user: int | str | None = None,
    min_dilution: Limit = None,
    active: Any = None,
) -> Dilution:
    """How strongly every silo's contribution is mixed with others', before training, and who withdraws.

    Args:
        recipe: by which they would train: a recipe, or an algorithm by name, whose open numbers are taken at worst.
        user: for whom the model is made, and who does not withdraw; by default the recipe's own.
        min_dilution: the least that silos accept, one number for all or by name (others accept anything).
        active: who takes part when [rounds, n], by default everybody always: absence makes shares larger.

    >>> import numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.zeros((n, 1)), np.arange(n) % 2) for n in (60, 30, 10)], names=list("abc"))
    >>> found = cf.insight.dilution(silos, cf.fedavg(lr=0.1), min_dilution=0.5)
    >>> found.withdrawn["a"]
    'its share of the weight could reach 60.0 %: a dilution of 0.400, below its limit of 0.500'
    >>> list(found.withdrawn), cf.insight.dilution(silos, cf.weight_erosion(user="a", lr=0.1)).of("c")
    (['a', 'b', 'c'], 0.5)
    """
    made = recipe_for(recipe, silos, user)
    place = made.hyper.get("user") if user is None else user
    place = None if place is None else silos.index(place)
    names, rows = silos.names, np.array(silos.sizes("train"), float)
    prior = resolved(made.hyper.get("prior", np.ones(len(names))), names, None).copy()
    limit = limits(min_dilution, names)
    trace = np.ones((1, len(names)), bool) if active is None else np.unique(np.asarray(active) > 0, axis=0)
    bound = bounds_of(made, rows, prior, trace, place)
    withdrawn: dict[str, str] = {}
    while True:
        low = (prior > 0) & (1 - bound < limit - ROUNDING) & (np.arange(len(names)) != place)
        if not low.any():
            break
        for i in np.flatnonzero(low):
            withdrawn[names[i]] = (
                f"its share of the weight could reach {bound[i]:.1%}".replace("%", " %")
                + f": a dilution of {1 - bound[i]:.3f}, below its limit of {limit[i]:.3f}"
            )
        prior[low] = 0
        bound = bounds_of(made, rows, prior, trace, place)
    here = (prior > 0) & (rows > 0)
    share = np.where(here, rows, 0) / max(rows[here].sum(), 1)
    known = lambda values: np.where(here, values, np.nan)  # noqa: E731
    why = WHY[bound_of(made.name)]
    return Dilution(names, place, made.name, rows, known(share), known(bound), limit, prior, withdrawn, why)


def bounds_of(recipe: Recipe, rows: np.ndarray, prior: np.ndarray, trace: np.ndarray, user: int | None) -> np.ndarray:
    """The largest bound over the rounds [n]."""
    bound = bound_of(recipe.name)
    there = (prior > 0) & (rows > 0)
    found = [bound(Situation(rows, prior, here & there, user, recipe.static, recipe.hyper)) for here in trace]
    return np.max(found, axis=0, initial=0.0)


def limits(given: Limit, names: tuple[str, ...]) -> np.ndarray:
    """Every silo's limit [n], NaN where it has none."""
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    found = np.full(len(names), np.nan)
    for name, value in by_name.items():
        if name not in names:
            raise KeyError(f"min_dilution: there is no silo {name!r}; the silos are {', '.join(names)}")
        if value is not None:
            check_share(min_dilution=value)
            found[names.index(name)] = value
    return found


def recipe_for(given: Any, silos: Silos, user: int | str | None) -> Recipe:
    """The recipe, with what is settled about it: of an algorithm by name, or of a function, the numbers are open."""
    if isinstance(given, Recipe):
        return given
    if isinstance(given, str):
        from confrere import algorithms

        if given not in algorithms.__all__:
            raise ValueError(f"there is no algorithm {given!r}; choose one of {', '.join(algorithms.__all__)}")
        given = getattr(algorithms, given)
    if not callable(given):
        raise TypeError(f"recipe must be e.g. confrere.fedavg(lr=0.1), or an algorithm by name, not {given!r}")
    wanted = inspect.signature(given).parameters.values()
    filled: dict[str, Any] = {p.name: OPEN for p in wanted if p.default is p.empty}
    place = 0 if user is None else silos.index(user)
    filled = {name: {"user": place, "rounds": 1}.get(name, value) for name, value in filled.items()}
    made = given(**filled)
    return made._replace(hyper={"user": place} if "user" in made.hyper else {})
