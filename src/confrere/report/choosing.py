"""The question: whom might the user have chosen before training? Three selections side by side, and what others hear.

Selections are made by linear models and from training rows, whatever was trained afterwards.
"""

from collections.abc import Mapping
from typing import Any

from confrere.data.silos import Silos
from confrere.insight.quality.others import to_others
from confrere.insight.quality.words import other_in_words
from confrere.report import html
from confrere.report.contents import Choice, Hospital
from confrere.selection import Selection, gradients, influence, ndoye
from confrere.selection.asking import Others
from confrere.selection.words import between, signed, size_of
from confrere.study.result import StudyResult

METHODS: Mapping[str, Any] = {"ndoye": ndoye, "influence": influence, "gradients": gradients}
SMALL = (
    "ndoye: how much more a silo's own model loses a row on the user's rows than at home, lower is better; influence: "
    "how much the user's loss a row would rise without the silo, higher is better; gradients: mean weight in a short "
    "run of Weight Erosion, higher is better. With 95 % intervals from rows drawn anew; ranks and bytes have none. "
    "The user's training rows judge here, where its test rows give credit. "
    "Nobody need follow such advice: any silo can be kept or left out by hand."
)


def chosen_before(silos: Silos, user: int, result: StudyResult) -> Choice:
    """What three methods say of every other silo, and what the others are told; or why nothing can be said."""
    others: Others = result.config.get("others", "train")
    found: dict[str, Selection] = {}
    without = []
    for name, method in METHODS.items():
        try:
            found[name] = method(silos, user, others=others)
        except ValueError as problem:
            without.append(f"{name} cannot be asked: {problem}.")
    if not found:
        return Choice((), (), tuple(dict.fromkeys(words.split(": ", 1)[1] for words in without)))
    lines = tuple(
        (silo, *(cell(selection, silo) for selection in found.values()))
        for i, silo in enumerate(silos.names)
        if i != user
    )
    told = to_others(silos, user, found["ndoye"])[0] if "ndoye" in found else ()
    said = [other_in_words(one, silos.names[user]) for one in told]
    return Choice(tuple(found), lines, (*map(in_words, found.values()), *without), tuple(said))


def cell(selection: Selection, silo: str) -> str:
    """The rank of one silo, its score with the interval, and whether it would take part."""
    if silo in selection.silent:
        return selection.reasons[silo]
    i = selection.names.index(silo)
    score = f"{signed(float(selection.scores[i]))} ({between(float(selection.low[i]), float(selection.high[i]))})"
    return f"{selection.ranking.index(silo) + 1}: {score}, {'chosen' if silo in selection.kept else 'not chosen'}"


def in_words(selection: Selection) -> str:
    """Whom one method would choose, and what was sent for it."""
    kept = [name for name in selection.ranking if name in selection.kept]
    sent = size_of(int(selection.bytes_up.max()))
    return f"By {selection.method}: {', '.join(kept) or 'nobody'} ({selection.rule}; a silo sends {sent} for it)."


def about_choice(hospital: Hospital) -> list[tuple[str, str]]:
    """The heading and the section, if the selections were made."""
    found = hospital.choice
    if found is None:
        return []
    heading = f"Whom might {hospital.name} have chosen before training?"
    if not found.lines:
        return [(heading, html.listed(found.words))]
    shown = html.table(
        f"The other silos as {hospital.name} could have seen them before training", ["", *found.methods], found.lines
    )
    told = html.folded("What the others are told after the selection by ndoye", html.listed(found.told))
    inside = html.listed(found.words) + shown + html.paragraphs([SMALL], "small")
    return [(heading, inside + (told if found.told else ""))]
