"""By how much a feature rises for one coefficient, in words: a standard deviation in the column's own unit, yes against
no, or a unit of the feature as it was given."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from confrere.data.intake.encoding import Category, Line, Number
from confrere.data.silos import Silos

AS_GIVEN = "per unit of the feature as given"
YES = "yes against no"
SAME = 1e-4  # features are kept in single precision


class Step(NamedTuple):
    """What one coefficient is about, and by how much the model's own is multiplied for it."""

    words: str
    factor: float = 1.0


Meanings = Mapping[str, Mapping[Any, str]]  # column -> code -> what it means


def steps_of(silos: Silos, user: int, meanings: Meanings | None = None) -> dict[str, Step]:
    """The step of every feature.

    >>> import polars as pl
    >>> columns = {"age": [40, 60, 50, 70], "smokes": [0, 1, 1, 0], "sex": ["f", "m", "m", "m"], "ill": [0, 1, 0, 1]}
    >>> table = pl.DataFrame({**columns, "clinic": ["a", "a", "b", "b"]})
    >>> silos = Silos.from_table(table, label="ill", silo="clinic")
    >>> {name: step.words for name, step in steps_of(silos, 0).items()}
    {'age': 'per standard deviation (11.2)', 'smokes': 'yes against no', 'sex=m': 'm against f'}
    >>> steps_of(silos, 0, {"smokes": {0: "others", 1: "smokers"}})["smokes"].words
    'smokers against others'
    >>> steps_of(Silos.from_arrays([([[0.0], [1.0]], [0, 1])]), 0)
    {'x0': Step(words='per unit of the feature as given', factor=1.0)}
    """
    names = silos.feature_names
    if silos.encoding is None:
        return {name: Step(AS_GIVEN) for name in names}
    found: dict[str, Step] = {}
    for column in silos.encoding.columns:
        codes = (meanings or {}).get(column.name, {})
        found |= of_number(silos, user, column, codes) if isinstance(column, Number) else of_category(column)
    return {name: found.get(name, Step(AS_GIVEN)) for name in names}


def of_number(silos: Silos, user: int, column: Number, codes: Mapping[Any, str]) -> dict[str, Step]:
    """A number's step is its standard deviation, unless it is 0 or 1 wherever it is known."""
    line = column.line or column.own.get(silos.names[user])
    found = {f"{column.name}=missing": Step("missing against known")} if column.missing else {}
    if column.constant or line is None or column.name not in silos.feature_names:
        return found
    values = silos[user].X[:, silos.feature_names.index(column.name)].astype(float)
    if zero_or_one(values, line):
        words = f"{codes[1]} against {codes[0]}" if {0, 1} <= set(codes) else YES
        return found | {column.name: Step(words, 1 / line.scale)}
    return found | {column.name: Step(f"per standard deviation ({line.scale:.3g})")}


def zero_or_one(values: np.ndarray, line: Line) -> bool:
    """Whether a feature is 0 or 1 in the column's own unit, rows apart in which it was filled in."""
    own = values * line.scale + line.shift
    known = own[np.abs(own - line.fill) > SAME]
    return len(known) > 0 and bool((np.minimum(np.abs(known), np.abs(known - 1)) < SAME).all())


def of_category(column: Category) -> dict[str, Step]:
    """Of two levels one against the other; of more, each against the rest."""
    levels = [*column.levels, *(["other"] if column.other else [])]
    found = {name: Step(YES) for name in column.features}
    if len(levels) == 2 and not column.constant:
        found[column.features[0]] = Step(f"{levels[1]} against {levels[0]}")
    if column.missing:
        found[column.features[-1]] = Step("missing against known")
    return found
