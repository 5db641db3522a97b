"""Misfits: cells of new rows that an encoding has no right place for, as training never saw their like.

Three kinds: a level that is none of those agreed on (unless rare levels have a column of their own, `name=other`), a
gap where no training row had one, and a number further from the mean than any that can be meant.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from confrere.data.intake.tidy import Where, nameless

Misfits = Literal["refuse", "warn", "allow"]
FAR = 1000  # standard deviations from the mean
SHOWN = 5  # so many known levels are named
SET_ASIDE = " (rows that were set aside for testing lack it: trained on all rows, with --test 0, the model can tell)"


class Misfit(NamedTuple):
    """The cells of one column that do not fit, for one reason."""

    column: str
    kind: Literal["unknown level", "missing", "far off"]
    rows: np.ndarray
    values: tuple[str, ...]  # what the cells hold, each once; () if nothing
    hint: str  # what is known instead

    def told(self, where: Where) -> str:
        """The first such cell in words."""
        cell = where._replace(name=self.column).cell(int(self.rows[0]))
        what = {
            "unknown level": f"{(self.values or ('',))[0]!r} is no level that the model knows",
            "missing": "the value is missing, but no training row lacked it, so that the model cannot tell what that "
            "means: fill it in, or leave the row out",
            "far off": f"{(self.values or ('',))[0]} is more than {FAR} standard deviations from the mean of training",
        }[self.kind]
        more = f"; {len(self.rows)} cells of this column are like that" if len(self.rows) > 1 else ""
        return f"{cell}: {what}{self.hint}{more}"


def misfit_levels(name: str, values: pl.Series, levels: Sequence[str], other: bool) -> list[Misfit]:
    """Levels that nobody named; none if such ones have a column of their own."""
    text = nameless(values)
    wrong = np.flatnonzero((text.is_not_null() & ~text.is_in(list(levels))).to_numpy())
    if other or not len(wrong):
        return []
    found = tuple(dict.fromkeys(str(text[int(row)]) for row in wrong))
    more = f" and {len(levels) - SHOWN} more" if len(levels) > SHOWN else ""
    return [Misfit(name, "unknown level", wrong, found, f" ({', '.join(map(repr, levels[:SHOWN]))}{more})")]


def misfit_gaps(name: str, unknown: np.ndarray, seen: bool, aside: bool) -> list[Misfit]:
    """Gaps, unless training had some; `aside`: rows that took no part in it had some."""
    hint = SET_ASIDE if aside else ""
    return [] if seen or not unknown.any() else [Misfit(name, "missing", np.flatnonzero(unknown), (), hint)]


def misfit_numbers(name: str, values: np.ndarray, mean: float, scale: float) -> list[Misfit]:
    """Numbers absurdly far from the training rows' mean.

    >>> import numpy as np
    >>> misfit_numbers("age", np.array([70.0, 1e30]), mean=60.0, scale=10.0)[0].values
    ('1e+30',)
    """
    far = np.flatnonzero(np.abs(np.nan_to_num(values, nan=mean) - mean) > FAR * scale)
    if not len(far):
        return []
    found = tuple(dict.fromkeys(f"{values[row]:g}" for row in far))
    return [Misfit(name, "far off", far, found, f" ({mean:.4g}, standard deviation {scale:.3g})")]


def refuse(misfits: Iterable[Misfit], where: Where) -> None:
    """Say of the first misfit in each column what is wrong with it."""
    said = [misfit.told(where) for misfit in misfits]
    if said:
        raise ValueError("\n".join(said))


def warnings_about(misfits: Iterable[Misfit]) -> list[str]:
    """In words, for those who go on: unknown levels and gaps, column by column."""
    return [f"column {misfit.column!r} {strange(misfit)}: its features are zero there" for misfit in misfits]


def strange(misfit: Misfit) -> str:
    """What is strange about a column."""
    if misfit.kind == "missing":
        return "lacks values, as no training row did"
    more = ", ..." if len(misfit.values) > SHOWN else ""
    return f"has level(s) that no training row had, {', '.join(map(repr, misfit.values[:SHOWN]))}{more}"
