"""Similarity by itself, as a picture of the map or as a page with the matrices."""

from confrere._version import __version__
from confrere.insight.similarity import Similarity
from confrere.report import html
from confrere.report.html import escape
from confrere.report.likeness import map_parts, pair_table, sense_table, sent_table
from confrere.report.page import PAGE
from confrere.report.similar import in_words, resemblance, similar
from confrere.report.style import STYLE
from confrere.report.svg import WIDTH, figure

TITLE = "Who is like whom"
PICTURE = (
    "text { font: 12px system-ui, sans-serif; fill: #1b1f24; } .unit { font-size: 11px; fill: #4d5661; } "
    ".mark { fill: #0072b2; } .cloud { fill: #0072b2; fill-opacity: .12; stroke: #0072b2; stroke-opacity: .6; } "
    ".zero { stroke: #1b1f24; stroke-width: 1.2; }"
)


def picture(found: Similarity) -> str:
    """The map as a file of its own (SVG)."""
    shown = resemblance(found)
    if shown is None or len(shown.places) < 2:
        raise ValueError("there are too few silos for a map")
    parts, height = map_parts(shown, list(shown.places), "")
    said = f"{TITLE}: {found.map().words}. {found.groups().words}."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{2 * WIDTH}" role="img" '
        f'aria-label="{escape(said)}"><title>{escape(said)}</title><style>{PICTURE}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )  # fmt: skip


def page(found: Similarity) -> str:
    """The map, the matrix of all pairs, and every silo's view of the others, as one HTML page."""
    shown = resemblance(found)
    if shown is None or len(shown.places) < 2:
        raise ValueError("there are too few silos for a map")
    parts, height = map_parts(shown, list(shown.places), "")
    words = (
        f"The nearer two silos, the more alike, all measures as one; directions mean nothing. It is {shown.trust}. An "
        "ellipse holds 95 % of the places that draws of the rows give."
    )
    chapters = "".join(one_silo(found, i) for i in range(len(found.names)))
    main = (
        html.listed((f"{shown.groups[0].upper()}{shown.groups[1:]}.",))
        + html.plots(figure("Map of the silos", parts, height, words)) + pair_table(shown, "by silo") + chapters
        + html.section("sent", "What crossed the border", sent_table(shown, "all"), 2)
    )  # fmt: skip
    rows = ", ".join(f"{name} {count}" for name, count in zip(found.names, found.rows, strict=True))
    opening = html.paragraphs([f"In what sense silos are alike, and what it rests on. Training rows: {rows}."], "lead")
    return PAGE.format(
        title=TITLE, version=escape(__version__), style=STYLE, opening=opening, main=main, made="request"
    )


def one_silo(found: Similarity, user: int) -> str:
    """One silo's view of the others."""
    name, seen = found.names[user], similar(found, user)
    known = [o for o in seen.others if o.distance.value == o.distance.value]
    table = sense_table(name, known) if known else ""
    words = tuple(in_words(found, user, found.like(user)))
    return html.section(f"silo-{user}", f"Who is like {name}?", html.listed(words) + table, 2)
