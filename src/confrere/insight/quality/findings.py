"""All findings about one silo's records: each column first by itself, then against what the others told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from confrere.checks import check_counts, check_numbers, check_share, check_word
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.insight.quality.codes import hidden_codes, limits, recorded_codes
from confrere.insight.quality.deviations import location, missingness, share_difference, spread
from confrere.insight.quality.digits import digit_preference
from confrere.insight.quality.finding import Finding, discoveries, in_order
from confrere.insight.quality.ranges import Ranges, check_columns, impossible, limits_of, own_ranges
from confrere.insight.quality.recorded import Recorded, recorded
from confrere.insight.quality.telling import Noise, NoiseKind, Numbers, Told, tell
from confrere.insight.quality.units import part_slip, whole_slip

LEAST, ALPHA = 5, 0.05
LEAST_TESTED = 10  # known values below which no test of a silo's own column is made


@dataclass(frozen=True)
class Findings:
    """What was found, what was looked at, and what left the other silos for it."""

    found: tuple[Finding, ...]
    columns: int
    tests: int
    shared: tuple[Shared, ...]


def findings(
    silos: Silos,
    user: int | str,
    *,
    ranges: Mapping[str, Any] | str | Path | None = None,
    min_count: int = LEAST,
    noise: float = 0.0,
    noise_kind: NoiseKind = "laplace",
    alpha: float = ALPHA,
    seed: int = 0,
) -> Findings:
    """What in the user's records looks wrong, or otherwise than elsewhere.

    Args:
        ranges: possible values by column, `{"temp": [30, 45, "°C"]}`, or a TOML file with a table [ranges]; they come
            before the built-in ones, and False takes a column out.
        min_count: of fewer rows nothing is told by the other silos.
        noise: the scale of the noise in what they tell, in typical rows (see `telling`); 0: none.
        alpha: the rate of false discoveries among the findings of tests.

    >>> import confrere as cf
    >>> found = findings(cf.data.heart_disease(), "switzerland").found
    >>> found[0].kind, found[0].column, found[0].words
    ('code', 'chol', 'chol was 0 in 123 rows of 123, which means: not taken')
    """
    check_counts(min_count=min_count)
    check_numbers(noise=noise)
    check_share(alpha=alpha)
    check_word("noise_kind", noise_kind, ("laplace", "gaussian"))
    place, limits_given = silos.index(user), own_ranges(ranges)
    every = recorded(silos)
    check_columns(ranges, limits_given, every)
    rng = np.random.default_rng(seed)
    told = tuple(
        told_by(silo, limits_given, min_count, Noise(noise, noise_kind, rng))
        for i, silo in enumerate(every)
        if i != place
    )
    own = every[place]
    alone = recorded_codes(own)
    tests: list[Finding] = []
    for column in own.numbers:
        ruled, tested = about_numbers(own, column, told, limits_given, rng)
        alone += ruled
        tests += tested
    for column, values in own.levels.items():
        tests += about_levels(column, values, own.rows, told)
    kept = explained(discoveries([*alone, *tests], alpha))
    shared = tuple(entry for message in told for entry in message.shared())
    return Findings(in_order(kept), len(own.numbers) + len(own.levels), len(tests), shared)


def told_by(silo: Recorded, ranges: Ranges, least: int, noise: Noise) -> Told:
    """What another silo tells: of its gaps, codes included; and of its values, impossible ones left out."""
    known = without_codes(silo)
    return tell(known, without_impossible(known, ranges), least, noise)


def without_codes(silo: Recorded) -> Recorded:
    """Inside another silo: its numbers without its own codes for gaps."""

    def rest(column: str, values: np.ndarray) -> np.ndarray:
        return np.where(hidden_codes(column, values, [], silo.places)[1], np.nan, values)

    return replace(silo, numbers={name: rest(name, values) for name, values in silo.numbers.items()})


def without_impossible(silo: Recorded, ranges: Ranges) -> Recorded:
    """Inside another silo: its numbers without impossible values."""

    def rest(column: str, values: np.ndarray) -> np.ndarray:
        known = values[~np.isnan(values)]
        limit = limits_of(column, ranges, known, np.zeros(0)) if len(known) else None
        return values if limit is None else np.where(impossible(column, values, limit, silo.places)[1], np.nan, values)

    return replace(silo, numbers={name: rest(name, values) for name, values in silo.numbers.items()})


def about_numbers(
    own: Recorded, column: str, told: Sequence[Told], ranges: Ranges, rng: np.random.Generator
) -> tuple[list[Finding], list[Finding]]:
    """What rules, and what tests, say about a numeric column; what is there, but cannot be, is no gap."""
    values = own.numbers[column]
    others = [t.numbers[column] for t in told if column in t.numbers]
    ruled, gone = hidden_codes(column, values, [n.bands for n in others], own.places)
    rest = np.where(gone, np.nan, values)
    there = int((~np.isnan(rest)).sum())
    limit_found, at_limit = limits(column, rest, own.places)
    ruled += [limit_found] if limit_found else []
    if others:
        slip, slipped = part_slip(column, rest, others, own.places)
        ruled += [slip] if slip else []
        rest = np.where(slipped, np.nan, rest)
    known = rest[~np.isnan(rest)]
    bands = np.concatenate([n.bands for n in others]) if others else np.zeros(0)
    limit = limits_of(column, ranges, known, bands) if len(known) else None
    if limit is not None:
        wrong, beyond = impossible(column, rest, limit, own.places)
        ruled += [wrong] if wrong else []
        rest = np.where(beyond, np.nan, rest)
    gaps = about_gaps(column, there, own.rows - there, told)
    return ruled, [*gaps, *tests_of(column, rest, others, told, rng), *digits_in(column, rest[~at_limit], others)]


def tests_of(
    column: str, values: np.ndarray, others: Sequence[Numbers], told: Sequence[Told], rng: np.random.Generator
) -> list[Finding]:
    """All tests of the values of a numeric column, without its codes, other units and impossible values."""
    known = values[~np.isnan(values)]
    counts = [t.counts[column] for t in told if column in t.counts]
    if len(known) < LEAST_TESTED:
        return []
    if counts and len(counts) >= len(others) and len(np.unique(known)) <= 2:
        level = share_difference(column, [f"{value:g}" for value in known], counts)
        return [level] if level else []
    if not others:
        return []
    if known.min() == known.max():
        return [constant(column, known, others)]
    where = location(column, known, others)
    slip = whole_slip(column, known, others, where.chance or 0.0, rng)
    wide = spread(column, known, others)
    return [*([slip] if slip else []), where, *([wide] if wide else [])]


def digits_in(column: str, values: np.ndarray, others: Sequence[Numbers]) -> list[Finding]:
    """The test of final digits, if it can be made."""
    told = [n.round_digits for n in others if n.round_digits is not None]
    found = digit_preference(column, values[~np.isnan(values)], told)
    return [found] if found else []


def constant(column: str, known: np.ndarray, others: Sequence[Numbers]) -> Finding:
    """A column that varies elsewhere, but not here.

    A value that a share s of the others' rows has makes about s of their bands equal. So no value can have more than
    s = (longest run of equal bands + 1) / bands, and the chance that all rows have the same is at most s^(rows - 1).
    """
    where = location(column, known, others)
    heaviest = max((longest_run(n.bands) + 1) / len(n.bands) for n in others)
    return replace(
        where, kind="constant", chance=float(min(1.0, heaviest) ** (len(known) - 1)),
        words=f"{column} is {known[0]:g} in all {len(known)} rows that know it; elsewhere it varies",
        evidence=f"{where.evidence}, and no single value has more than {min(1.0, heaviest):.0%} of the rows elsewhere",
        advice="a value that is filled in by default? Leave it blank where it was not taken", notable=True,
    )  # fmt: skip


def longest_run(bands: Sequence[float]) -> int:
    """How many neighbours are equal, at most.

    >>> longest_run((0.0, 0.0, 0.0, 1.5, 2.0))
    3
    """
    runs, run = [1], 1
    for one, two in pairwise(bands):
        run = run + 1 if one == two else 1
        runs.append(run)
    return max(runs)


def about_levels(column: str, values: np.ndarray, rows: int, told: Sequence[Told]) -> list[Finding]:
    """What tests say about a column of levels."""
    known = [value for value in values.tolist() if value is not None]
    found = about_gaps(column, len(known), rows - len(known), told)
    counts = [t.counts[column] for t in told if column in t.counts]
    level = share_difference(column, known, counts) if counts and len(known) >= LEAST_TESTED else None
    return found + ([level] if level else [])


def about_gaps(column: str, known: int, missing: int, told: Sequence[Told]) -> list[Finding]:
    """Whether values are missing more often than elsewhere, if anything is missing anywhere."""
    gaps = [t.gaps[column] for t in told if column in t.gaps]
    return [missingness(column, known, missing, gaps)] if gaps and (missing or any(g for _, g in gaps)) else []


def explained(found: Sequence[Finding]) -> list[Finding]:
    """Findings without those that another one explains: where a unit has slipped, so have location and spread."""
    slipped = {f.column for f in found if f.kind == "unit" and f.chance is not None}
    return [f for f in found if f.column not in slipped or f.kind not in ("location", "spread", "impossible")]
