"""Values that stand for something else: codes for gaps, and the limit of an instrument.

The rules for codes are those of the intake (`data.intake.advice`). What the intake was told to take as missing is told
from its record. A limit is the lowest or the highest value, repeated, and written with more decimals than all others:
2000.01 among whole numbers is "above 2000".
"""

import numpy as np

from confrere.data.intake.advice import FAR, LEAST_ZEROS, MOST_VALUES, codes_in
from confrere.data.intake.tidy import on_command_line
from confrere.insight.quality.finding import Finding
from confrere.insight.quality.recorded import Recorded
from confrere.plural import plural
from confrere.report.intervals import share

PLACES = 4


def is_far_elsewhere(bands: list[tuple[float, ...]]) -> bool:
    """Whether another silo's values are many and far from 0, by what it told."""
    return any(len(b) > 2 and b[0] >= FAR * float(np.median(b)) for b in bands)


def hidden_codes(
    column: str, values: np.ndarray, bands: list[tuple[float, ...]], places: np.ndarray
) -> tuple[list[Finding], np.ndarray]:
    """Codes for gaps in a column, and which rows have one [rows]."""
    known = values[~np.isnan(values)]
    there = np.zeros(len(values), bool)
    found: list[Finding] = []
    for code, count, why in codes_in(known, is_far_elsewhere(bands)):
        rows = values == code
        there |= rows
        part = share(count, len(known))
        why = "the others' values are far from it" if count == len(known) and code == 0 else why
        found.append(Finding(
            "code", column,
            f"{column} is {code} in {plural(count, 'row')} of {len(known)}, which seems to mean: not taken",
            f"{code} is repeated, and {why} (a rule, not a test)",
            f"if so, say that it is missing: {on_command_line('missing', f'{column}={code}')}",
            part.value, part.low, part.high, "share of the known values", rows=tuple(places[rows].tolist()),
        ))  # fmt: skip
    return found, there


def recorded_codes(own: Recorded) -> list[Finding]:
    """Codes that were declared when the data were loaded, from the record of it."""
    found = []
    for column, (codes, count) in own.hidden.items():
        part = share(count, own.rows)
        found.append(Finding(
            "code", column, f"{column} was {codes} in {plural(count, 'row')} of {own.rows}, which means: not taken",
            "declared when the data were loaded, where such values were taken as missing (from the record, no test)",
            "nothing to mend here: leave such values blank in the table",
            part.value, part.low, part.high, "share of all rows",
        ))  # fmt: skip
    return found


def decimals(values: np.ndarray) -> np.ndarray:
    """With how many decimals each value is written, up to four.

    >>> decimals(np.array([2000.01, 17.0, 3.5])).tolist()
    [2, 0, 1]
    """
    found = np.full(len(values), PLACES)
    for places in range(PLACES - 1, -1, -1):
        scaled = values * 10**places
        found[np.isclose(scaled, np.round(scaled), rtol=0, atol=1e-6)] = places
    return found


def limits(column: str, values: np.ndarray, places: np.ndarray) -> tuple[Finding | None, np.ndarray]:
    """The limit of an instrument, and which rows have it [rows]."""
    known = values[~np.isnan(values)]
    for extreme in (known.max(initial=-np.inf), known.min(initial=np.inf)):
        there, rest = values == extreme, known[known != extreme]
        if there.sum() < LEAST_ZEROS or len(rest) <= MOST_VALUES:
            continue
        if decimals(np.array([extreme]))[0] <= decimals(rest).max():
            continue
        part = share(int(there.sum()), len(known))
        way = "above" if extreme > rest.max() else "below"
        return Finding(
            "limit", column, f"{column} is {extreme:g} in {plural(int(there.sum()), 'row')} of {len(known)}: the limit "
            f"of an instrument, it seems, so that the true value is {way} it",
            "the outermost value, repeated, and written with more decimals than all others (a rule, not a test)",
            "keep the value, and record that it is a limit in a column of its own",
            part.value, part.low, part.high, "share of the known values", rows=tuple(places[there].tolist()),
        ), there  # fmt: skip
    return None, np.zeros(len(values), bool)
