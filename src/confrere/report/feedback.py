"""The last question: what could be better in my own data? Findings about the records, and which column to record next.

What is said of single rows is on the page of one user only: a page for several is read by others, too.
"""

from confrere.data.silos import Silos
from confrere.report import html
from confrere.report.contents import Hospital, OwnData

HEADING = "What could be better in my own data?"
MOST = 12  # findings in the table
OPEN_TO_OTHERS = (
    "Rows and labels are not judged here, where several silos are told of on one page: see confrere feedback."
)


def own_data(silos: Silos, user: int, min_count: int, rows: bool) -> OwnData:
    """What there is to say to one user; about single `rows` only if the page is its own."""
    from confrere.insight.quality import findings, record_next
    from confrere.insight.quality.words import TITLES, advice_in_words, interval, next_in_words, sureness

    about = findings(silos, user, min_count=max(min_count, 2))
    found = tuple((TITLES[f.kind], f.words, f"{interval(f)} {f.unit}", sureness(f)) for f in about.found)
    nexts = record_next(silos, user, min_count=min_count)[0] if len(silos) > 1 else ()
    said = [*advice_in_words(about.found), *(about_rows(silos, user) if rows else [OPEN_TO_OTHERS])]
    return OwnData(found, about.tests, 0.05, (*said, *next_in_words(nexts)))


def about_rows(silos: Silos, user: int) -> list[str]:
    """Rows that hurt and labels that may be wrong, in words."""
    from confrere.insight.quality.feedback import own_models
    from confrere.insight.quality.words import judged_in_words

    without: list[str] = []
    harmful, labels = own_models(silos, user, 0, without)
    return [*without, *judged_in_words(harmful, labels)]


def about_own_data(hospital: Hospital) -> list[tuple[str, str]]:
    """The heading and the section, if the data were looked at."""
    if hospital.own_data is None:
        return []
    own = hospital.own_data
    first = f"{len(own.found)} things are worth a look." if len(own.found) > 1 else "One thing is worth a look."
    answer = first if own.found else "Nothing in the records looks wrong, or otherwise than elsewhere."
    shown = html.table(
        f"Findings in the records of {hospital.name}", ["kind", "what was found", "how much", "false discovery"],
        own.found[:MOST], reasons=True,
    ) if own.found else ""  # fmt: skip
    more = f" The {MOST} first of {len(own.found)} are shown." if len(own.found) > MOST else ""
    rule = (
        f"{own.tests} tests were made; of what they found at most {100 * own.alpha:g} % are expected to be chance. "
        f"Intervals are 95 % intervals, each by itself.{more}"
    )
    return [(HEADING, html.listed((answer, *own.words)) + shown + html.paragraphs([rule], "small"))]
