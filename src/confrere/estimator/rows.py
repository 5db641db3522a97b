"""From what people give an estimator (an array or a table, labels, whose rows they are) to silos, by the intake.

An array is a table with the columns x0, x1, ...; so arrays and tables are treated alike: numbers are standardised with
statistics that silos share, a missing value (NaN) becomes the mean and is indicated, and a column of text or of a
category type becomes zeros and ones. What a column holds is decided on all rows, not silo by silo.
"""

from collections.abc import Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from confrere.data.intake.options import make_options
from confrere.data.intake.read import read
from confrere.data.intake.survey import agree, survey
from confrere.data.intake.tables import Tables
from confrere.data.intake.tidy import Table, Tidied, Where, level_name, text_levels, tidy_columns
from confrere.data.notes import tell
from confrere.data.silos import Silos
from confrere.data.source import Hand

Task = Literal["classification", "regression"]
ALONE = "all"  # what the only silo is called where nobody says whose rows they are
UNKNOWN = ("", "none", "nan", "nat", "<na>")


def is_table(X: Any) -> bool:
    """Whether X is a pandas, polars or pyarrow table."""
    return bool(nw.dependencies.is_into_dataframe(X))


def frame_of(X: Any, names: Sequence[str] | None = None) -> pl.DataFrame:
    """X as a polars table, its columns called by `names` if given: columns are known by their places."""
    if is_table(X):
        frame = read(X)
    else:
        frame = pl.DataFrame({f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(np.asarray(X).T)})
    return frame if names is None else frame.rename(dict(zip(frame.columns, names, strict=True)))


def categories_of(X: Any) -> tuple[str, ...]:
    """The columns whose type says that they are categories, codes or not."""
    if not is_table(X):
        return ()
    schema = nw.from_native(X, eager_only=True).schema
    return tuple(str(name).strip() for name, dtype in schema.items() if dtype in (nw.Categorical, nw.Enum))


def tables_of(
    frame: pl.DataFrame, categories: Sequence[str], y: np.ndarray, classes: Sequence[str] | None, depth: int = 2
) -> Tables:
    """All rows as one silo's table; columns that are left out are warned about, `depth` calls up."""
    task: Task = "regression" if classes is None else "classification"
    options = make_options(free_name(frame.columns), categorical=categories, task=task)
    columns, kinds = tidy_columns(frame, options, Where(None, np.arange(frame.height)))
    plan = agree([survey(Tidied(ALONE, columns, kinds, pl.Series(y)), options)], options)
    tell(plan.left_out.values(), depth + 1)
    table = Table(ALONE, columns, kinds, y)
    names = None if classes is None else tuple(classes)
    return Tables.open((table,), options, plan, names, "rows given to an estimator", "real", ())


def free_name(columns: Sequence[str]) -> str:
    """A name for the label that no column has."""
    name = "y"
    while name in columns:
        name += "_"
    return name


def silos_of(tables: Tables, names: np.ndarray | None) -> Silos:
    """The rows dealt out to the silos that `names` names row by row; None: one silo has them all."""
    if names is None:
        return tables.all_for_training()
    return tables.deal([Hand(str(name), np.flatnonzero(names == name)) for name in np.unique(names)]).all_for_training()


def silo_names(silo: Any, count: int) -> np.ndarray | None:
    """Whose rows they are, as text, row by row; a single name stands for all rows.

    >>> silo_names([1.0, 2, "north "], 3).tolist()
    ['1', '2', 'north']
    """
    if silo is None:
        return None
    if np.ndim(silo) == 0:
        silo = [silo] * count
    given = list(silo)
    if len(given) != count or np.ndim(given[0]) != 0:
        raise ValueError(f"silo must be one name for each of the {count} rows, or one for all; there are {len(given)}")
    text = [None if str(value).strip().lower() in UNKNOWN else str(value) for value in given]
    if None in text:
        raise ValueError(f"row {text.index(None)} (counted from 0) has no silo: whose is it?")
    return text_levels(pl.Series(text, dtype=pl.String)).to_numpy()


def silo_name(user: Any) -> str:
    """One silo's name as `silo_names` writes it."""
    return level_name(user)
