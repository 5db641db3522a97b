"""The figures of the report: what is drawn, from the contents; words below each say what there is to see."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from confrere.answers.answer import RELEVANT
from confrere.report.contents import Curve, Effect, Estimate, Group
from confrere.report.metrics import algorithm_title, number
from confrere.report.svg import (
    CHARACTER,
    WIDTH,
    circle,
    figure,
    legend,
    line,
    mark,
    path,
    rect,
    room_for,
    shortened,
    text,
    ticks,
    told_apart,
)

SERIES = ("one", "two", "three", "four", "five", "six")  # colours of the style sheet
LABEL = 19  # letters of a label at most
ROW, BETWEEN = 17, 9
RIGHT = 14  # room at the right edge
STYLES = {"auto": 0, "evidence": 0, "ridge_local": 1, "fedavg": 2}


class Scale(NamedTuple):
    """From values to places on the page."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)


class Row(NamedTuple):
    """A row of a figure: its label, and for some series a value."""

    label: str
    values: Mapping[str, Estimate]


def style_of(name: str, place: int) -> tuple[int, str]:
    """Shape and colour of an algorithm, the same in all figures."""
    k = STYLES.get(name, 3 + place % 3)
    return k, SERIES[k]


def span(values: Sequence[float], around: Sequence[float] = ()) -> tuple[float, float]:
    """Ends of an axis that shows all values with a little room."""
    known = [v for v in (*values, *around) if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(known), max(known)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return low - room, high + room


def ends(values: Sequence[Estimate]) -> list[float]:
    """All numbers of some estimates."""
    return [v for e in values for v in e if v is not None]


def digits_of(at: Sequence[float]) -> int:
    """How many decimals tell neighbouring ticks apart.

    >>> digits_of([0.0, 0.05, 0.1]), digits_of([0, 20, 40])
    (2, 0)
    """
    return min(4, max(0, 0, *(-math.floor(math.log10(abs(b - a)) + 1e-9) for a, b in pairwise(at))))


def axis(
    scale: Scale, top: float, bottom: float, factor: float, unit: str, at: Sequence[float] | None = None
) -> list[str]:
    """Grid lines, numbers and the unit of a horizontal axis."""
    at = apart(scale, factor) if at is None else at
    parts = [line(scale(v / factor), top, scale(v / factor), bottom, "grid") for v in at]
    parts += [text(scale(v / factor), bottom + 14, number(v, digits_of(at)), "middle", "tick") for v in at]
    return [*parts, text((scale.start + scale.end) / 2, bottom + 30, unit, "middle", "unit")]


def apart(scale: Scale, factor: float) -> list[float]:
    """As many ticks as fit beside one another."""
    for most in (6, 5, 4, 3):
        at = ticks(scale.low * factor, scale.high * factor, most)
        widest = max((len(number(v, digits_of(at))) for v in at), default=0)
        if len(at) < 2 or abs(scale(at[1] / factor) - scale(at[0] / factor)) > CHARACTER * widest:
            return at
    return ticks(scale.low * factor, scale.high * factor, 2)


def intervals(
    title: str, rows: Sequence[Row], series: Mapping[str, tuple[str, int, str]], words: str, unit: str,
    factor: float = 1.0, reference: float | None = 0.0,
) -> str:  # fmt: skip
    """Values with their intervals, row by row; `series` gives title, shape and colour of each."""
    left = room_for((r.label for r in rows), LABEL)
    every = [e for r in rows for e in r.values.values()]
    low, high = span(ends(every), () if reference is None else (reference,))
    scale = Scale(low, high, left, WIDTH - RIGHT)
    several = any(len(r.values) > 1 for r in rows)
    parts, top = legend(list(series.values()), 14) if several else ([], 4.0)
    height = sum(ROW * max(1, len(r.values)) + BETWEEN for r in rows)
    bottom = top + height
    parts += axis(scale, top, bottom, factor, unit)
    if reference is not None:
        parts.append(line(scale(reference), top, scale(reference), bottom, "zero"))
    y = top
    labels = told_apart([row.label for row in rows], LABEL)
    for row, label in zip(rows, labels, strict=True):
        middle = y + (BETWEEN + ROW * max(1, len(row.values))) / 2
        parts.append(text(left - 8, middle + 4, label, "end"))
        for k, (name, value) in enumerate(row.values.items()):
            parts += whisker(scale, value, y + BETWEEN / 2 + ROW * (k + 0.5), *series[name][1:])
        y += ROW * max(1, len(row.values)) + BETWEEN
    return figure(title, parts, bottom + 38, words)


def whisker(scale: Scale, value: Estimate, y: float, shape: int, style: str) -> list[str]:
    """A mark with its interval."""
    parts: list[str] = []
    if value.low is not None and value.high is not None:
        a, b = scale(value.low), scale(value.high)
        parts = [line(a, y, b, y, f"whisker {style}")]
        parts += [line(x, y - 3.5, x, y + 3.5, f"whisker {style}") for x in (a, b)]
    return [*parts, mark(scale(value.value), y, shape, style)] if math.isfinite(value.value) else parts


def shares(user: str, values: Mapping[str, float], prior: float, relevance: Mapping[str, float], words: str) -> str:
    """A bar per silo: its share of the information behind the model."""
    rows = [*values.items(), *([("assumed beforehand", prior)] if prior >= 0.0005 else [])]
    left = room_for((name for name, _ in rows), LABEL)
    scale = Scale(0.0, max(0.1, *(v for _, v in rows)) * 1.02, left, WIDTH - 52)
    bottom = 6 + 24 * len(rows)
    parts = axis(scale, 6, bottom, 100, "share of the information, %")
    labels = told_apart([name for name, _ in rows], LABEL)
    for k, (name, value) in enumerate(rows):
        y = 6 + 24 * k
        style = "two" if name == user else "none" if name not in values else "one"
        flagged = relevance.get(name, 1.0) < RELEVANT
        parts += [
            text(left - 8, y + 16, labels[k], "end", "own" if name == user else ""),
            rect(left, y + 5, scale(value) - left, 14, f"bar {style}{' flagged' if flagged else ''}"),
            text(scale(value) + 5, y + 16, f"{number(100 * value, 1)} %"),
        ]
    return figure(f"Whose data {user}'s model listened to", parts, bottom + 38, words)


def similarity_map(user: str, relevance: Mapping[str, float], heard: Mapping[str, float], words: str) -> str:
    """The user in the middle, the others around it: the nearer, the more relevant; the larger, the more heard."""
    size, inner, outer = 300.0, 52.0, 112.0
    middle, half = WIDTH / 2, size / 2
    limit = inner + (1 - RELEVANT) * (outer - inner)
    parts = [circle(middle, half, r, "ring") for r in (inner, outer)]
    parts += [circle(middle, half, limit, "ring limit"), mark(middle, half, 1, "two")]
    labels = told_apart(list(relevance), LABEL - 5)
    for k, (name, value) in enumerate(relevance.items()):
        angle = 2 * math.pi * k / len(relevance) - math.pi / 2
        reach, radius = inner + (1 - value) * (outer - inner), 4 + 14 * math.sqrt(max(heard.get(name, 0.0), 0.0))
        x, y = middle + reach * math.cos(angle), half + reach * math.sin(angle)
        parts.append(circle(x, y, radius, f"dot one{' flagged' if value < RELEVANT else ''}"))
        beside = y - radius - 5 if y < half else y + radius + 13
        parts.append(text(x, beside, labels[k], "middle"))
    parts += [
        text(middle, size + 12, f"square: {shortened(user, 2 * LABEL)}", "middle", "unit"),
        text(middle, size + 28, f"relevance: inner ring 1, dashed {RELEVANT}, outer ring 0", "middle", "unit"),
    ]
    return figure(f"The silos as {user}'s rows see them", parts, size + 34, words)


def weights_over_rounds(user: str, rounds: Mapping[str, Sequence[float]], words: str) -> str:
    """The weight of every silo round by round, and the sum of the others'."""
    others = {name: values for name, values in rounds.items() if name != user}
    total = [sum(column) for column in zip(*others.values(), strict=True)]
    lines = {**others, "all others together": total} if len(others) > 1 else others
    series = [(name, k % 4, SERIES[k % len(SERIES)]) for k, name in enumerate(lines)]
    return curves(f"Weights that {user}'s model gave", lines, series, words, "weight", first=1)


def curves(
    title: str, lines: Mapping[str, Sequence[float | None]], series: Sequence[tuple[str, int, str]], words: str,
    unit: str, first: int = 0,
) -> str:  # fmt: skip
    """Lines over rounds; a line with a single known value is drawn level and dashed."""
    parts, top = legend(list(series), 14)
    top += 14
    known = [v for values in lines.values() for v in values if v is not None]
    low, high = span(known)
    bottom, left = top + 170, 46.0
    up = Scale(low, high, bottom, top)
    last = max(first + len(values) - 1 for values in lines.values())
    across = Scale(first, max(last, first + 1), left, WIDTH - RIGHT)
    parts += axis(across, top, bottom, 1, "round", rounds_between(across, last))
    at = ticks(low, high)
    for v in at:
        shown = number(v, digits_of(at))
        parts += [line(left, up(v), WIDTH - RIGHT, up(v), "grid"), text(left - 6, up(v) + 4, shown, "end", "tick")]
    parts.append(text(6, top - 6, unit, "start", "unit"))
    for (_, shape, style), values in zip(series, lines.values(), strict=True):
        points = [(first + k, v) for k, v in enumerate(values) if v is not None]
        if len(points) == 1 or len(values) <= 2:
            level = points[-1][1]
            parts.append(line(left, up(level), WIDTH - RIGHT, up(level), f"curve level {style}"))
        else:
            parts.append(path([(across(x), up(v)) for x, v in points], f"curve {style}"))
        parts.append(mark(across(last if len(values) <= 2 else points[-1][0]), up(points[-1][1]), shape, style))
    return figure(title, parts, bottom + 38, words)


def rounds_between(scale: Scale, last: int) -> list[float]:
    """Ticks at rounds that there were: whole numbers, up to the last.

    >>> rounds_between(Scale(0, 1, 0, 100), 1), rounds_between(Scale(1, 2, 0, 100), 1)
    ([0.0, 1.0], [1.0])
    """
    return [at for at in apart(scale, 1) if at == int(at) and at <= last]


def convergence(user: str, some: Sequence[Curve], metric: str, words: str) -> str:
    """The curves of a study for one user."""
    seen = [c for c in some if any(v is not None for v in c.values)]
    series = [(algorithm_title(c.algorithm), *style_of(c.algorithm, k)) for k, c in enumerate(seen)]
    lines = {f"{k}": list(c.values) if multi(c) else [last(c)] for k, c in enumerate(seen)}
    return curves(f"{metric} by round, {user}", lines, series, words, metric)


def multi(curve: Curve) -> bool:
    """Whether a curve has more than its end, beyond one round."""
    return sum(v is not None for v in curve.values) > 2


def last(curve: Curve) -> float | None:
    """The end of a curve."""
    return next(v for v in reversed(curve.values) if v is not None)


def effects(title: str, some: Sequence[Effect], unit: str, words: str) -> str:
    """What each feature does, together and alone."""
    rows = [
        Row(e.name, {"together": Estimate(e.together)} | ({} if e.alone is None else {"alone": Estimate(e.alone)}))
        for e in some
    ]
    left = room_for((r.label for r in rows), LABEL)
    low, high = span(ends([v for r in rows for v in r.values.values()]), (0.0,))
    scale = Scale(low, high, left, WIDTH - RIGHT)
    entries = [("together", 0, "one")] + ([("alone", 1, "two")] if any(e.alone is not None for e in some) else [])
    parts, top = legend(entries, 14)
    bottom = top + 22 * len(rows)
    parts += [*axis(scale, top, bottom, 1, unit), line(scale(0), top, scale(0), bottom, "zero")]
    labels = told_apart([e.name for e in some], LABEL)
    for k, e in enumerate(some):
        y = top + 22 * (k + 0.5)
        parts.append(text(left - 8, y + 4, labels[k], "end"))
        if e.alone is not None:
            parts += [line(scale(e.alone), y, scale(e.together), y, "joint"), mark(scale(e.alone), y, 1, "two")]
        parts.append(mark(scale(e.together), y, 0, "one"))
    return figure(title, parts, bottom + 38, words)


def reliability(title: str, bins: Sequence[Group], shown: str, words: str, classes: bool) -> str:
    """What was predicted against what was observed, with intervals; on the diagonal they agree."""
    values = [v for b in bins for v in (b.predicted, *ends([b.observed]))]
    low, high = (0.0, 1.0) if classes else span(values)
    factor, unit = (100, "%") if classes else (1, "in its own units")
    at = ticks(low * factor, high * factor)
    left = max(52.0, 30 + 6.5 * max(len(f"{v:g}") for v in at))  # beside the numbers there is room for the unit
    top, side = 8.0, min(270.0, WIDTH - RIGHT - left)
    across, up = Scale(low, high, left, left + side), Scale(low, high, top + side, top)
    parts = axis(across, top, top + side, factor, f"predicted for {shown}, {unit}")
    for v in at:
        y = up(v / factor)
        parts += [line(left, y, left + side, y, "grid"), text(left - 6, y + 4, f"{v:g}", "end", "tick")]
    turned = top + side / 2
    parts.append(
        f'<g transform="rotate(-90 14 {turned:.0f})">{text(14, turned, f"observed, {unit}", "middle", "unit")}</g>'
    )
    parts.append(line(across(low), up(low), across(high), up(high), "diagonal"))
    for b in bins:
        x = across(b.predicted)
        if b.observed.low is not None and b.observed.high is not None:
            parts.append(line(x, up(b.observed.low), x, up(b.observed.high), "whisker one"))
            parts += [line(x - 3.5, up(v), x + 3.5, up(v), "whisker one") for v in (b.observed.low, b.observed.high)]
        parts.append(mark(x, up(b.observed.value), 0, "one"))
    return figure(title, parts, top + side + 38, words)
