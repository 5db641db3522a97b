"""New rows for a model: cells that are no numbers, told with what can be done about them at prediction.

The intake refuses such cells too, but with the options that it takes when silos are made, which a prediction has not.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from confrere.data.intake.encoding import Encoding, Number
from confrere.data.intake.options import did_you_mean
from confrere.data.intake.tidy import MISSING_WORDS, Where, level_name, nameless, text_levels


def check_cells(frame: pl.DataFrame, encoding: Encoding, where: Where) -> None:
    """Refuse the first cell of new rows that holds a text or a date where the model takes a number.

    >>> import numpy as np, confrere as cf
    >>> table = pl.DataFrame({"age": [40, 60, 50], "ill": [0, 1, 0]})
    >>> encoding = cf.Silos.from_table(table, label="ill", silo=None).encoding
    >>> check_cells(pl.DataFrame({"age": ["30", "old"]}), encoding, Where(None, np.arange(2)))
    Traceback (most recent call last):
    ValueError: column 'age', row 1 (counted from 0): 'old' is no number: mend the cell, or leave the row out
    """
    for column in encoding.columns:
        if isinstance(column, Number) and column.name in frame.columns:
            text = texts_in(frame[column.name], [level_name(value) for value in encoding.gone.get(column.name, ())])
            bad = (text.is_not_null() & text.cast(pl.Float64, strict=False).is_null()).arg_true()
            if len(bad):
                seen = column.missing and column.features[-1] not in encoding.silent
                blank = ", leave it blank if the value is missing" if seen else ""
                raise ValueError(
                    f"{where._replace(name=column.name).cell(bad[0])}: {text[bad[0]]!r} is no number"
                    f"{like_that(text[bad[0]], len(bad))}: mend the cell{blank}, or leave the row out"
                )


def texts_in(column: pl.Series, gone: list[str]) -> pl.Series:
    """The texts and dates of a column as text, null where a value is missing; nothing of one that holds numbers."""
    dates = column.dtype.is_temporal() and column.dtype != pl.Duration
    if not dates and column.dtype != pl.String and not isinstance(column.dtype, pl.Categorical | pl.Enum):
        return pl.Series([], dtype=pl.String)
    text = text_levels(nameless(column).cast(pl.String))
    text = text.set(text.str.to_lowercase().is_in(MISSING_WORDS) | text.is_in(gone), None)
    return text.replace({"false": "0", "true": "1"})


def like_that(cell: str, count: int) -> str:
    """A word on decimal commas, and how many cells there are."""
    comma = " (numbers are written with a point, not a comma)" if "," in cell else ""
    return comma + (f"; {count} cells of this column are like that" if count > 1 else "")


def by_name(frame: pl.DataFrame, names: Sequence[str], rows: str) -> np.ndarray:
    """Columns of numbers by their names [rows, columns], for a model that was trained on plain numbers; `rows` is what
    the table is called.

    >>> by_name(pl.DataFrame({"b": [1, 2], "a": [3, 4]}), ["a", "b"], "new.csv").tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    for name in names:
        if name not in frame.columns:
            raise ValueError(f"{rows} lacks the column {name!r}{did_you_mean(name, frame.columns)}")
    return np.column_stack([numbers_in(frame, name, rows) for name in names])


def numbers_in(frame: pl.DataFrame, name: str, rows: str) -> np.ndarray:
    """A column of a file as numbers; a cell that is none is named."""
    numbers = frame[name].cast(float, strict=False).alias("")  # names that look like patterns are names
    if numbers.null_count():
        row = int(numbers.is_null().arg_true()[0])
        cell = frame[name][row]
        what = "is empty" if cell is None else f"is no number: {cell!r}"
        raise ValueError(
            f"{rows}: column {name!r}, row {row} (counted from 0) {what}; mend the cell, or leave the row out"
        )
    return numbers.to_numpy()
