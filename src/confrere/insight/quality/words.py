"""Feedback in a clinician's words, and as tables for a terminal."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from confrere.insight.quality.finding import Finding
from confrere.insight.quality.labels import Suspects
from confrere.insight.quality.next_feature import Next
from confrere.insight.quality.others import ToOther
from confrere.insight.quality.rows import HarmfulRow
from confrere.plural import plural
from confrere.selection.words import between, signed

if TYPE_CHECKING:
    from confrere.insight.quality.feedback import Feedback

WIDTH, MOST, MOST_WEIGHTS = 110, 5, 3
TITLES = {
    "code": "code for a gap", "limit": "limit of an instrument", "unit": "unit", "impossible": "impossible value",
    "digits": "rounded values", "missing": "missing", "constant": "always the same", "location": "level",
    "spread": "spread", "share": "share",
}  # fmt: skip
PRIVATE = "This feedback is for silo {user!r} only: what it says of rows does not leave it."
ASSUMPTION = (
    "Estimated on rows of silos that record it, weighted to your case mix; it assumes that, given your features and "
    "the label, the column is distributed there as it would be with you."
)


def interval(finding: Finding) -> str:
    """An effect with its interval."""
    percent = "share" in finding.unit
    sign = percent and ("difference" in finding.unit or "above" in finding.unit)
    shown = (lambda v: f"{100 * v:{'+' if sign else ''}.0f} %") if percent else (lambda v: f"{v:.2f}")
    if finding.low is None or finding.high is None:
        return f"{shown(finding.effect)} (no interval)"
    return f"{shown(finding.effect)} ({shown(finding.low)} to {shown(finding.high)})"


def sureness(finding: Finding) -> str:
    """How sure a finding is."""
    if finding.discovery is None:
        return "by a rule"
    rate = "below 0.001" if finding.discovery < 0.001 else f"{finding.discovery:.3f}"
    beyond = {True: "; more than others differ", False: "; others differ as much", None: ""}[finding.beyond]
    return f"{rate}{beyond}"


def table_of(feedback: "Feedback") -> Table:
    """The findings as a table."""
    table = Table(
        title=Text(f"What could be better in the data of {feedback.user}"),
        caption=Text(
            f"{feedback.columns} columns, {feedback.tests} tests; rate of false discoveries at most "
            f"{feedback.alpha:g}. Intervals are 95 % intervals, each by itself; rows, ranks and means have none."
        ),
    )
    for title in ("Kind", "What was found", "How much", "False discovery"):
        table.add_column(title)
    for f in feedback.findings:
        table.add_row(TITLES[f.kind], Text(f.words), f"{interval(f)} {f.unit}", sureness(f))
    return table


def advice_in_words(findings: Sequence[Finding]) -> list[str]:
    """What to do, columns with the same advice together."""
    columns: dict[str, list[str]] = {}
    for finding in findings:
        columns.setdefault(finding.advice, []).append(finding.column)
    return [
        f"{', '.join(dict.fromkeys(named))}: {advice}{'' if advice[-1] in '?.' else '.'}"
        for advice, named in columns.items()
    ]


def judged_in_words(rows: Sequence[HarmfulRow], labels: Suspects) -> list[str]:
    """Rows that hurt, and labels that may be wrong."""
    clear = [r for r in rows if r.clear]
    said = [
        f"Row {r.row} hurts: without it the loss on rows that were held out would fall by {r.fall:.4f} "
        f"({between(r.low, r.high)})."
        for r in clear[:MOST]
    ]
    if rows and not clear:
        worst = ", ".join(str(r.row) for r in rows[:MOST])
        said.append(f"No single row clearly hurts the model. To look at first, if any: rows {worst}.")
    return [*said, *labels_in_words(labels)]


def labels_in_words(labels: Suspects) -> list[str]:
    """Labels that may be wrong."""
    if not labels.found or not labels.clear:
        return [f"No sign of wrong labels in {plural(labels.rows, 'row')}, beyond chance."] if labels.rows else []
    listed = "; ".join(
        f"row {s.row}: {s.label}, likely {s.likely}" + ("" if s.wrong is None else f" ({s.wrong:.0%})")
        for s in labels.found[:MOST]
    )
    more = f"; and {len(labels.found) - MOST} more" if len(labels.found) > MOST else ""
    return [
        f"{plural(len(labels.found), 'label')} of {labels.rows} may be wrong, about {labels.expected:.1f} of them are "
        f"(chance of such labels without any error: {labels.chance:.2g} at most; no interval). {listed}{more}."
    ]


def next_in_words(nexts: Sequence[Next]) -> list[str]:
    """What to record next."""
    said = []
    for n in nexts:
        verdict = "it would help" if n.low > 0 else "it would not help" if n.high < 0 else "chance may explain it"
        rests = ", ".join(f"{name} ({gain.rows:.0f} effective rows)" for name, gain in n.silos.items())
        said.append(
            f"{n.column}, known in {n.known:.0%} of your rows: recorded in all, it would take {signed(n.gain)} "
            f"({between(n.low, n.high)}) off your loss of {n.loss:.3f} a row (no interval): {verdict}. "
            f"Rests on {rests}."
        )
    return [*said, ASSUMPTION] if said else []


def other_in_words(told: ToOther, user: str) -> str:
    """What one other silo is told."""
    if told.rank is None:
        return f"To {told.silo}: you were left out: {told.why}."
    score = "" if told.score is None else f", score {signed(told.score)} ({between(told.low or 0.0, told.high or 0.0)})"
    clear = [d for d in told.differences if d.clear][:MOST_WEIGHTS]
    weights = "; ".join(f"{d.feature} {signed(d.difference)} ({between(d.low, d.high)})" for d in clear)
    apart = (
        f"Your model differs from {user}'s most in {weights}." if clear else f"No weight clearly differs from {user}'s."
    )
    rank = f"rank {told.rank} of {told.of}{', shared' if told.shared else ''}"
    return f"To {told.silo}: {rank}, {'' if told.chosen else 'not '}chosen{score}. {apart}"


def sections(feedback: "Feedback") -> list[tuple[str, list[str]]]:
    """All that is said beside the table, under headings."""
    sent = sum(s.count for s in feedback.shared if s.silo != feedback.user)
    noise = f", with noise of scale {feedback.noise:g} in those of their columns alone" if feedback.noise else ""
    found = [
        ("What to do", advice_in_words(feedback.findings)),
        ("Your own rows", judged_in_words(feedback.rows, feedback.labels)),
        ("What to record next", next_in_words(feedback.record_next)),
        ("What the others are told", [other_in_words(t, feedback.user) for t in feedback.to_others]),
        ("What was shared", [
            f"The other silos told {plural(sent, 'number')}, none about fewer than {feedback.min_count} rows{noise}. "
            + PRIVATE.format(user=feedback.user), *feedback.without,
        ]),
    ]  # fmt: skip
    return [(heading, words) for heading, words in found if words]


def plain_text(feedback: "Feedback") -> str:
    """Everything as text."""
    page = io.StringIO()
    Console(file=page, width=WIDTH, markup=False, emoji=False, color_system=None).print(table_of(feedback))
    for heading, words in sections(feedback):
        page.write("\n".join(["", f"{heading}:", *(f"- {said}" for said in words), ""]))
    return page.getvalue().rstrip()
