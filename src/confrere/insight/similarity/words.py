"""Who is like whom, in words, as tables and as plain values."""

import io
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from confrere.insight.similarity.combining import COMBINED
from confrere.insight.similarity.measured import Measured
from confrere.insight.similarity.similarity import numbers
from confrere.plural import plural
from confrere.selection.selection import finite
from confrere.selection.words import signed, size_of

if TYPE_CHECKING:
    from confrere.insight.similarity.similarity import Similarity

WIDTH = 110


class Likeness(NamedTuple):
    """One other silo as a user sees it."""

    silo: str
    distance: float  # in the combined view
    low: float
    high: float
    differs: tuple[str, ...]  # the measures by which the two differ by more than chance explains
    words: tuple[str, ...]  # the verdict first, then one sentence for each measure, then what it rests on


def likenesses(found: "Similarity", user: int) -> tuple[Likeness, ...]:
    """The other silos from most to least alike; those of which nothing is known last."""
    some = any(m.dissimilarity is not None for m in found.measures.values())
    view = found.combined if some else next(iter(found.measures.values()))
    others = [j for j in range(len(found.names)) if j != user]
    order = sorted(others, key=lambda j: (math.isnan(view.matrix[user, j]), view.matrix[user, j], found.names[j]))
    return tuple(likeness(found, view, user, j, rank) for rank, j in enumerate(order))


def likeness(found: "Similarity", view: Measured, user: int, other: int, rank: int) -> Likeness:
    """What is known of two silos."""
    apart = tuple(name for name, m in found.measures.items() if beyond_chance(m, user, other))
    value, low, high = (float(a[user, other]) for a in (view.matrix, view.low, view.high))
    if math.isnan(value):
        why = [found.without[found.names[i]] for i in (other, user) if found.names[i] in found.without]
        return Likeness(
            found.names[other], value, low, high, (), (f"Nothing is known: {(why or ['no measure is defined'])[0]}.",)
        )
    said = [verdict(found, apart, rank), *(sentence(found, m, user, other) for m in found.measures.values())]
    rest = f"It rests on {plural(found.rows[user], 'row')} here and {plural(found.rows[other], 'row')} there."
    return Likeness(found.names[other], value, low, high, apart, (*(s for s in said if s), rest))


def beyond_chance(m: Measured, i: int, j: int) -> bool:
    """Whether two silos differ by more than chance explains."""
    return m.dissimilarity is not None and bool(m.dissimilarity[i, j] > m.chance[i, j])


def verdict(found: "Similarity", apart: tuple[str, ...], rank: int) -> str:
    """The first sentence: how alike, and in which senses not."""
    some = [name for name, m in found.measures.items() if m.dissimilarity is not None]
    place = {0: "Most alike"}.get(rank, f"Number {rank + 1} in likeness")
    if not some:
        return f"{place} cannot be said: {', '.join(found.measures)} does not measure likeness."
    if not found.resamples:
        return f"{place}; without resamples nothing is said of chance."
    if not apart:
        return f"{place}: by none of {plural(len(some), 'measure')} is the difference more than chance explains."
    listed = ", ".join(apart)
    if len(apart) == len(some):
        return f"{place}, but different by more than chance explains in every sense ({listed})."
    alike = ", ".join(name for name in some if name not in apart)
    return f"{place}: different by more than chance explains in {listed}; not in {alike}."


def sentence(found: "Similarity", m: Measured, i: int, j: int) -> str:
    """What one measure says of two silos."""
    there = m.matrix[i, j]
    if math.isnan(there):
        return f"{m.title}: not known."
    back = "" if m.symmetric else f"; the other way {estimate(m, j, i)}"
    most = ""
    if m.features is not None and m.features[i, j] >= 0 and there > 0:
        most = f", most in {found.feature_names[m.features[i, j]]}"
    luck = f" (chance explains up to {m.chance[i, j]:.3f})" if m.symmetric and np.isfinite(m.chance[i, j]) else ""
    return f"{m.title}: {estimate(m, i, j)}{luck}{most}{back}; {m.unit}."


def estimate(m: Measured, i: int, j: int) -> str:
    """A value and its interval."""
    write = signed if not m.symmetric else lambda v: f"{v:.3f}"
    low, high = float(m.low[i, j]), float(m.high[i, j])
    reach = f" ({write(low)} to {write(high)})" if math.isfinite(low) and math.isfinite(high) else " (no interval)"
    return "not known" if math.isnan(m.matrix[i, j]) else write(float(m.matrix[i, j])) + reach


def cell(m: Measured, i: int, j: int) -> str:
    """A cell of a matrix: the value with its interval, and a mark where chance does not explain it."""
    if i == j:
        return "·"
    value = float(m.matrix[i, j])
    if math.isnan(value):
        return "not known"
    write = signed if not m.symmetric else lambda v: f"{v:.2f}"
    reach = f"\n{write(float(m.low[i, j]))} to {write(float(m.high[i, j]))}" if math.isfinite(m.low[i, j]) else ""
    return f"{write(value)}{' *' if beyond_chance(m, i, j) else ''}{reach}"


def table_of(found: "Similarity", measure: str = COMBINED) -> Table:
    """The matrix of one measure; names are shown as they are, brackets too."""
    m = found.of(measure)
    marked = " * more than chance explains." if m.dissimilarity is not None and found.resamples else ""
    ways = "" if m.symmetric else " Rows ask, columns are asked about."
    below = f"below: 95 % interval, {m.resampled}" if found.resamples else "no intervals, as nothing was resampled"
    sent = f" Sent {size_of(m.bytes_up)}, received {size_of(m.bytes_down)}." if m.crossings else ""
    table = Table(title=Text(f"{m.title} ({m.name})"), caption=Text(f"{m.unit}; {below}.{marked}{ways}{sent}"))
    table.add_column("")
    for name in found.names:
        table.add_column(Text(name), justify="right")
    for i, name in enumerate(found.names):
        table.add_row(Text(name), *(cell(m, i, j) for j in range(len(found.names))))
    return table


def plain_text(found: "Similarity") -> str:
    """The tables and the groups, as text."""
    page = io.StringIO()
    console = Console(file=page, width=WIDTH, markup=False, emoji=False, color_system=None)
    views = [COMBINED, *found.measures] if any(m.dissimilarity is not None for m in found.measures.values()) else [
        *found.measures
    ]  # fmt: skip
    for name in views:
        console.print(table_of(found, name))
    said = [found.groups().words, found.map().words] if COMBINED in views else []
    said += [f"{name}: {why}" for name, why in found.without.items()]
    return "\n".join([page.getvalue().rstrip(), *said])


def plain_values(found: "Similarity") -> dict[str, Any]:
    """All as plain values, for JSON."""
    told: dict[str, Any] = {
        "names": list(found.names), "rows": dict(zip(found.names, found.rows, strict=True)), "task": found.task,
        "resamples": found.resamples, "min_group": found.min_group, "without": dict(found.without),
        "measures": {name: measure_values(m) for name, m in found.measures.items()},
    }  # fmt: skip
    if any(m.dissimilarity is not None for m in found.measures.values()):
        plane, groups = found.map(), found.groups()
        told[COMBINED] = measure_values(found.combined)
        told["map"] = {
            "places": dict(zip(plane.names, plane.places.tolist(), strict=True)), "stress": plane.stress,
            "words": plane.words, "without": list(plane.without),
            "ellipses": dict(zip(plane.names, (e._asdict() for e in plane.ellipses), strict=False)),
        }  # fmt: skip
        told["groups"] = {
            "groups": [list(g) for g in groups.groups], "words": groups.words,
            "considered": [list(g) for g in groups.considered],
            "consensus": finite(groups.consensus), "chance": finite(groups.chance),
        }  # fmt: skip
    told["like"] = {name: [as_values(other) for other in found.like(name)] for name in found.names}
    return told


def as_values(other: Likeness) -> dict[str, Any]:
    """One other silo as plain values."""
    return {**other._asdict(), **{end: finite(getattr(other, end)) for end in ("distance", "low", "high")}}


def measure_values(m: Measured) -> dict[str, Any]:
    """One measure as plain values."""
    return {
        "title": m.title, "unit": m.unit, "matrix": numbers(m.matrix), "low": numbers(m.low), "high": numbers(m.high),
        "symmetric": m.symmetric, "chance": numbers(m.chance) if m.dissimilarity is not None else None,
        "reveals": m.reveals, "resampled": m.resampled, "crossings": [c._asdict() for c in m.crossings],
    }  # fmt: skip
