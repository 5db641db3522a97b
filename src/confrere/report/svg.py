"""Drawing: the few SVG shapes that the figures need. Colours come from the page's style sheet, by class.

Figures are 360 units wide, the width of a phone, so that text is never shrunk; wide screens put them side by side.
"""

import math
import unicodedata
import zlib
from collections.abc import Iterable, Sequence

from confrere.report.html import escape

WIDTH = 360
CHARACTER = 7.4  # the width of a letter of a label, about


def text(x: float, y: float, words: str, anchor: str = "start", style: str = "") -> str:
    """Words at a place."""
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def rect(x: float, y: float, width: float, height: float, style: str) -> str:
    """A rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" class="{style}"/>'


def circle(x: float, y: float, radius: float, style: str) -> str:
    """A circle."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="{style}"/>'


def path(points: Sequence[tuple[float, float]], style: str) -> str:
    """A line through points."""
    return f'<path d="M{" L".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{style}"/>'


def mark(x: float, y: float, shape: int, style: str) -> str:
    """A mark: circle, square, triangle or diamond, so that colour is never all there is to tell them apart."""
    if shape % 4 == 0:
        return circle(x, y, 4.5, f"mark {style}")
    corners = {
        1: [(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2: [(0, -5.5), (5.2, 4), (-5.2, 4)],
        3: [(0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)],
    }[shape % 4]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" class="mark {style}"/>'


def letters(words: str) -> int:
    """How wide words are, in letters: Chinese and the like take two.

    >>> letters("Basel"), letters("病院")
    (5, 4)
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words)


def shortened(words: str, most: int) -> str:
    """Words that fit, with dots where they were cut.

    >>> shortened("a long name of a feature", 10)
    'a long na…'
    """
    if letters(words) <= most:
        return words
    kept = words
    while letters(kept) > most - 1:
        kept = kept[:-1]
    return f"{kept}…"


def told_apart(labels: Sequence[str], most: int) -> list[str]:
    """Labels that fit and differ: those that would look alike keep their ends, too, or get a number.

    >>> told_apart(["blood pressure, morning", "blood pressure, evening", "age"], 16)
    ['blood p… morning', 'blood p… evening', 'age']
    """
    cut = [shortened(label, most) for label in labels]
    for k in alike_among(cut, labels):
        start, end = shortened(labels[k], most // 2), labels[k]
        while letters(start) + letters(end) > most:
            end = end[1:]
        cut[k] = start + end
    for number, k in enumerate(alike_among(cut, labels), 1):
        cut[k] = f"{shortened(labels[k], most - 4)} {number}"
    return cut


def alike_among(cut: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Which labels were cut so that they look like others."""
    return [k for k, words in enumerate(cut) if cut.count(words) > 1 and words != labels[k]]


def room_for(labels: Iterable[str], most: int) -> float:
    """The width of a column of labels, each cut to so many letters."""
    return CHARACTER * min(most, max(map(letters, labels), default=1)) + 22  # a word of wide letters has room, too


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between two ends, so many steps at most.

    >>> ticks(-0.9, 2.3)
    [0.0, 1.0, 2.0]
    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    rough = (high - low) / most
    if not rough > 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def figure(title: str, parts: Sequence[str], height: float, words: str, width: float = WIDTH) -> str:
    """A figure with its title above and, in words, what it shows below, which is its alternative text, too.

    Titles must differ on a page.
    """
    said = f"figure-{zlib.crc32(title.encode()):08x}"
    return (
        f'<figure class="plot"><p class="figure-title">{escape(title)}</p>'
        f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(title)}" aria-describedby="{said}">'
        f'{"".join(parts)}</svg><figcaption id="{said}">{escape(words)}</figcaption></figure>'
    )  # fmt: skip


def legend(entries: Sequence[tuple[str, int, str]], y: float, width: float = WIDTH) -> tuple[list[str], float]:
    """Marks and what they stand for, in as many lines as they need; and where the next line would be."""
    parts: list[str] = []
    x = 8.0
    for words, shape, style in entries:
        length = 14 + CHARACTER * letters(words)
        if x > 8 and x + length > width:
            x, y = 8.0, y + 17
        parts += [mark(x, y - 4, shape, style), text(x + 9, y, words)]
        x += length + 12
    return parts, y + 10
