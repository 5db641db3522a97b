"""Question 7 on the page: the user's row of every matrix, the map, the matrix of all pairs, and what crossed."""

import math
from collections.abc import Mapping, Sequence

from confrere.report import html
from confrere.report.contents import Estimate, Other, Resemblance, Sense, Similar
from confrere.report.figures import LABEL
from confrere.report.html import escape
from confrere.report.metrics import number, signed
from confrere.report.svg import CHARACTER, WIDTH, circle, figure, letters, line, mark, text, told_apart

MOST_OTHERS = 12  # in a table and on a map
SIDE, EDGE = 250.0, 26.0


def likeness(found: Resemblance | None, similar: Similar | None, name: str) -> str:
    """Question 7."""
    if similar is None:
        return ""
    if found is None or not similar.others:
        return html.listed(similar.words)
    shown = [other for other in similar.others[:MOST_OTHERS] if not math.isnan(other.distance.value)]
    left_out = len([o for o in similar.others if not math.isnan(o.distance.value)]) - len(shown)
    more = html.paragraphs([f"The {len(shown)} most alike are shown; {left_out} more are in the matrix of all pairs."],
                           "small") if left_out > 0 else ""  # fmt: skip
    picture = map_of(found, name, [o.name for o in shown]) if shown else ""
    return (
        html.listed(similar.words) + (sense_table(name, shown) if shown else "") + more + html.plots(picture)
        + html.folded("All pairs of silos", pair_table(found, name))
        + html.folded("What crossed the border for this comparison", sent_table(found, name))
    )  # fmt: skip


def shaded(words: str, shade: int, differs: bool) -> str:
    """A cell (its words HTML) that is the darker, the farther apart two silos are; a sign says it, too."""
    said = f'<strong>{words}</strong> <span role="img" aria-label="differs">≠</span>'
    return f'<span class="heat h{shade}">{said if differs else words}</span>'


def in_brackets(value: Estimate, digits: int = 2, sign: bool = False) -> str:
    """A value with its interval.

    >>> in_brackets(Estimate(0.5, 0.25, 0.75)), in_brackets(Estimate(float("nan")))
    ('0.50 (0.25 to 0.75)', 'not known')
    """
    if math.isnan(value.value):
        return "not known"
    show = signed if sign else number
    if value.low is None or value.high is None:
        return show(value.value, digits)
    return f"{show(value.value, digits)} ({show(value.low, digits)} to {show(value.high, digits)})"


def sense_cell(sense: Sense) -> str:
    """One sense in which a silo is like the user; both ways where they differ."""
    sign = sense.back is not None
    words = escape(in_brackets(sense.value, digits=3 if sign else 2, sign=sign))
    if sense.back is not None:
        words += f"<br>back: {escape(in_brackets(sense.back, digits=3, sign=True))}"
    return shaded(words, sense.shade, sense.differs)


def sense_table(name: str, others: Sequence[Other]) -> str:
    """Rows are senses, columns the other silos, the most alike first."""
    rows = [
        [f"{escape(sense.title)}<br><span class=\"small\">{escape(sense.unit)}</span>",
         *(sense_cell(other.senses[k]) for other in others)]
        for k, sense in enumerate(others[0].senses)
    ]  # fmt: skip
    all_of_it = [shaded(in_brackets(o.distance), 0, differs=False) for o in others]
    rows.append(['All together<br><span class="small">times what chance explains</span>', *all_of_it])
    caption = f"In what sense the others are like {name}, the most alike on the left"
    reading = (
        "With 95 % intervals. The darker a cell, the more times what chance explains two silos are apart; ≠ marks a "
        "difference that chance does not explain. “back” is the same question asked the other way round. Who would be "
        "missed says nothing of who is alike: it is positive if the other's rows make the user's predictions better."
    )
    return html.table(caption, ["", *(o.name for o in others)], rows, raw=True) + html.paragraphs([reading], "small")


def pair_table(found: Resemblance, name: str) -> str:
    """The matrix of all pairs, all measures as one."""
    rows = []
    for i, silo in enumerate(found.names):
        cells = [
            '<span class="own">itself</span>' if i == j else
            shaded(in_brackets(value), 0, found.differs[i][j]) for j, value in enumerate(found.matrix[i])
        ]  # fmt: skip
        rows.append([escape(silo), *cells])
    return html.table(f"All pairs of silos, all measures as one ({name})", ["", *found.names], rows, raw=True)


def sent_table(found: Resemblance, name: str) -> str:
    """What crossed the border for every measure."""
    caption = f"What left all silos together for this comparison, and what they received ({name})"
    rule = (
        f"Of what fewer than {found.min_group} rows of a silo have, nothing was told. How much something varies was "
        f"found inside each silo, by {found.resamples} draws of its rows with replacement."
    )
    return html.table(caption, ["", "what", "sent", "received"], found.sent, reasons=True) + html.paragraphs(
        [rule], "small"
    )


def map_of(found: Resemblance, name: str, shown: Sequence[str]) -> str:
    """The map, the user in the colour of its own and the others around it."""
    on = [n for n in found.places if n == name or n in shown]
    if len(on) < 2:
        return ""
    parts, height = map_parts(found, on, name)
    far = [f"{n} {number(value.value, 2)}" for n, value in zip(found.names, found.matrix[found.names.index(name)],
                                                             strict=True) if n != name and n in on]  # fmt: skip
    clouds = " An ellipse holds 95 % of the places that draws of the rows give." if found.ellipses else ""
    words = (
        f"The nearer two silos, the more alike, all measures as one; directions mean nothing. It is {found.trust}."
        f"{clouds} Distances from {name}, in units of what chance explains: {', '.join(far)}."
    )
    return figure(f"Map of the silos, {name} as a square", parts, height, words)


def map_parts(found: Resemblance, on: Sequence[str], name: str) -> tuple[list[str], float]:
    """The shapes of the map, and its height."""
    reach = [(x, y) for n in on for x, y in around(found, n)]
    low = [min(p[k] for p in reach) for k in (0, 1)]
    high = [max(p[k] for p in reach) for k in (0, 1)]
    unit = min((WIDTH - 2 * EDGE - 20) / max(high[0] - low[0], 1e-9), SIDE / max(high[1] - low[1], 1e-9), 120.0)
    left, top = (WIDTH - unit * (high[0] - low[0])) / 2, EDGE
    bottom = top + unit * (high[1] - low[1])
    put = lambda x, y: (left + unit * (x - low[0]), bottom - unit * (y - low[1]))  # noqa: E731
    parts: list[str] = []
    for n in on:
        if n in found.ellipses:
            x, y, long, short, angle = found.ellipses[n]
            parts.append(cloud(*put(x, y), unit * long, unit * short, -angle, "two" if n == name else "one"))
    dots = {n: put(*found.places[n]) for n in on}
    parts += [mark(*dots[n], 1, "two") if n == name else mark(*dots[n], 0, "one") for n in on]
    parts += labels(dots, name, bottom + EDGE - 6)
    end = bottom + EDGE + 14
    parts += [
        line(EDGE, end, EDGE + unit, end, "zero"),
        *(line(x, end - 4, x, end + 4, "zero") for x in (EDGE, EDGE + unit)),
    ]
    parts.append(text(EDGE, end + 18, "this far apart, chance may put silos that are alike", "start", "unit"))
    return parts, end + 26


def around(found: Resemblance, name: str) -> list[tuple[float, float]]:
    """The place of a silo and the corners of the box around its ellipse."""
    place = found.places[name]
    if name not in found.ellipses:
        return [place]
    x, y, long, short, angle = found.ellipses[name]
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    wide, tall = math.hypot(long * c, short * s), math.hypot(long * s, short * c)
    return [place, (x - wide, y - tall), (x + wide, y + tall)]


def cloud(x: float, y: float, long: float, short: float, angle: float, style: str) -> str:
    """An ellipse, turned; one without a width is a dot."""
    if long < 1:
        return circle(x, y, 1, f"cloud {style}")
    return (
        f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{long:.1f}" ry="{max(short, 1):.1f}" '
        f'transform="rotate({angle:.1f} {x:.1f} {y:.1f})" class="cloud {style}"/>'
    )


def labels(dots: Mapping[str, tuple[float, float]], name: str, bottom: float) -> list[str]:
    """A name beside every mark, where it covers no other, if there is such a place."""
    taken: list[tuple[float, float, float, float]] = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots.values()]
    parts = []
    for n, shown in zip(dots, told_apart(list(dots), LABEL), strict=True):
        x, y = dots[n]
        half = CHARACTER * letters(shown) / 2
        ways = [(0.0, -10.0), (0.0, 19.0), (half + 10, 4.0), (-half - 10, 4.0), (0.0, -24.0), (0.0, 33.0)]
        boxes = []
        for dx, dy in ways:
            middle = min(max(x + dx, half + 3), WIDTH - half - 3)
            base = min(max(y + dy, 12.0), bottom)
            boxes.append((middle - half, base - 11, middle + half, base + 3))
        free = [box for box in boxes if not any(overlap(box, other) for other in taken)]
        box = (free or boxes)[0]
        taken.append(box)
        parts.append(text((box[0] + box[2]) / 2, box[3] - 3, shown, "middle", "own" if n == name else ""))
    return parts


def overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    """Whether two boxes (left, top, right, bottom) cover each other."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
