"""The few pieces of HTML that the sections are made of; everything that is not ours is escaped."""

import html
import re
import zlib
from collections.abc import Iterable, Sequence

SHORT, LONG = 12, 32  # letters above which headings, and cells, are broken into lines
PERCENT = re.compile(r"(?<=\d) (?=%)")


def escape(words: str) -> str:
    """Words as HTML; a number is not parted from its per cent sign.

    >>> escape("5 % < 6 %").replace("\N{NO-BREAK SPACE}", "_")
    '5_% &lt; 6_%'
    """
    return PERCENT.sub("\N{NO-BREAK SPACE}", html.escape(words))


def paragraphs(words: Iterable[str], style: str = "") -> str:
    """A paragraph each; nothing for no words."""
    kind = f' class="{style}"' if style else ""
    return "".join(f"<p{kind}>{escape(said)}</p>" for said in words)


def listed(words: Sequence[str]) -> str:
    """A list of sentences; the first stands out."""
    if not words:
        return ""
    rest = "".join(f"<li>{escape(said)}</li>" for said in words[1:])
    return f'<p class="answer">{escape(words[0])}</p>' + (f"<ul>{rest}</ul>" if rest else "")


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], raw: bool = False, reasons: bool = False
) -> str:
    """A table with a caption; the first cell of a row names it. On a narrow screen it scrolls by itself.

    Captions must differ on a page. `raw`: cells are HTML already. `reasons`: the second column
    holds words, not numbers.
    """

    rows = [list(row) for row in rows]
    wordy = (
        set() if raw else {k for row in rows for k, one in enumerate(row) if len(one) > LONG}
    )  # columns of sentences

    def cell(kind: str, words: str, look: str, plain: bool = not raw) -> str:
        return f"<{kind}{look}>{escape(words) if plain else words}</{kind.split()[0]}>"

    def head_look(k: int, name: str) -> str:
        looks = [look for look, has in (("words", len(name) > SHORT), ("left", k in wordy)) if has]
        return f' class="{" ".join(looks)}"' if looks else ""

    def line(row: Sequence[str]) -> str:
        kinds = ['th scope="row"', *["td"] * (len(row) - 1)]
        cells = zip(kinds, row, strict=True)
        return "".join(cell(kind, one, ' class="words"' if k in wordy else "") for k, (kind, one) in enumerate(cells))

    head = "".join(cell('th scope="col"', name, head_look(k, name), plain=True) for k, name in enumerate(header))
    body = "".join(f"<tr>{line(row)}</tr>" for row in rows)
    kind = ' class="reasons"' if reasons else ""
    named = f"table-{zlib.crc32(caption.encode()):08x}"
    return (
        f'<div class="table"><p class="figure-title" id="{named}">{escape(caption)}</p>'
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{named}">'
        f'<table{kind} aria-labelledby="{named}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def folded(summary: str, inside: str) -> str:
    """Something that opens on demand."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def plots(*figures: str) -> str:
    """Figures side by side, as many as the screen is wide."""
    some = [figure for figure in figures if figure]
    return f'<div class="plots">{"".join(some)}</div>' if some else ""


def section(name: str, heading: str, inside: str, level: int) -> str:
    """A part of the page that can be linked to."""
    return f'<section aria-labelledby="{name}"><h{level} id="{name}">{escape(heading)}</h{level}>{inside}</section>'
