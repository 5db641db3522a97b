"""The question: whom might the user have chosen before training? Three selections side by side, and what others hear.

Selections are made by linear models and from training rows, whatever was trained afterwards.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from confrere.data.silos import Silos
from confrere.insight.quality.others import to_others
from confrere.insight.quality.words import other_in_words
from confrere.report import html
from confrere.report.contents import Choice, Hospital
from confrere.selection import Selection, gradients, influence, ndoye
from confrere.selection.asking import LEAST, Others
from confrere.selection.words import between, signed, size_of
from confrere.study.result import StudyResult

METHODS: Mapping[str, Any] = {"ndoye": ndoye, "influence": influence, "gradients": gradients}
WAYS = {
    "ndoye": "how well their models carry over",
    "influence": "how much they would be missed",
    "gradients": "how alike they learn",
}
HEADINGS = {
    "ndoye": "carries over (ndoye; lower is better)",
    "influence": "would be missed (influence; higher is better)",
    "gradients": "learns alike (gradients; higher is better)",
}
MEANING = {
    "ndoye": "Carries over: the loss of the silo's own model for a patient of the user, less that at home",
    "influence": "Would be missed: by how much the user's loss for a patient would rise without the silo",
    "gradients": "Learns alike: the weight that the silo has on average in a short run of Weight Erosion",
}


def chosen_before(silos: Silos, user: int, result: StudyResult, min_count: int = LEAST) -> Choice:
    """What three methods say of every other silo, and what the others are told; or why nothing can be said."""
    others: Others = result.config.get("others", "train")
    found: dict[str, Selection] = {}
    without: dict[str, str] = {}
    for name, method in METHODS.items():
        try:
            found[name] = method(silos, user, others=others, min_count=min_count)
        except ValueError as problem:  # in a person's words: too few rows, no model of this kind, nobody else
            without[name] = str(problem)
    if not found:
        return Choice((), (), tuple(dict.fromkeys(f"{problem}." for problem in without.values())))
    lines = tuple((silo, *(cell(selection, silo) for selection in found.values())) for silo in by_rank(found.values()))
    told = to_others(silos, user, found["ndoye"], min_count=min_count)[0] if "ndoye" in found else ()
    said = [other_in_words(one, silos.names[user]) for one in told]
    words = [together(found), *map(in_words, found.values())]
    words += [f"Not known by {WAYS[name]} ({name}): {problem}." for name, problem in without.items()]
    return Choice(tuple(found), lines, tuple(words), tuple(said), small_print(found))


def by_rank(found: Iterable[Selection]) -> list[str]:
    """All other silos, those first that rank best in the mean; who has no rank is last."""
    orders = [[*selection.ranking, *selection.silent] for selection in found]
    return sorted(orders[0], key=lambda silo: sum(order.index(silo) for order in orders))


def together(found: Mapping[str, Selection]) -> str:
    """Who is chosen by all methods, and by some."""
    count = {silo: sum(silo in selection.kept for selection in found.values()) for silo in by_rank(found.values())}
    every = [silo for silo, times in count.items() if times == len(found)]
    some = [f"{silo} (by {times} of {len(found)})" for silo, times in count.items() if 0 < times < len(found)]
    if not every and not some:
        return "Nobody."
    if not some:
        return f"{', '.join(every)}."
    return f"{', '.join(every) or 'Nobody for certain'}; perhaps {', '.join(some)}."


def small_print(found: Mapping[str, Selection]) -> str:
    """What the numbers mean, and what their intervals rest on."""
    parts = [
        f"{MEANING[name]}, with 95 % intervals ({selection.resampled}; a silo sends "
        f"{size_of(int(selection.bytes_up.max()))} for it)."
        for name, selection in found.items()
    ]
    return " ".join([
        *parts,
        "Ranks and bytes have no interval. Intervals differ from those of who is like whom, for which the rows of all "
        "silos are drawn anew. The user's training rows judge here, where its test rows give credit. Nobody need "
        "follow such advice: any silo can be kept or left out by hand.",
    ])  # fmt: skip


def cell(selection: Selection, silo: str) -> str:
    """The rank of one silo, its score with the interval, and whether it would take part."""
    if silo in selection.silent:
        return selection.reasons[silo]
    i = selection.names.index(silo)
    score = f"{signed(float(selection.scores[i]))} ({between(float(selection.low[i]), float(selection.high[i]))})"
    place, shared = selection.rank(silo)
    return f"{place}{' (shared)' if shared else ''}: {score}, {'chosen' if silo in selection.kept else 'not chosen'}"


def in_words(selection: Selection) -> str:
    """Whom one method would choose, and by what rule."""
    kept = [name for name in selection.ranking if name in selection.kept]
    return f"By {WAYS[selection.method]}: {', '.join(kept) or 'nobody'} ({selection.rule})."


def about_choice(hospital: Hospital) -> list[tuple[str, str]]:
    """The heading and the section, if the selections were made."""
    found = hospital.choice
    if found is None:
        return []
    heading = f"Whom might {hospital.name} have chosen before training?"
    if not found.lines:
        return [(heading, html.listed(found.words))]
    shown = html.table(
        f"The other silos as {hospital.name} could have seen them before training",
        ["", *(HEADINGS[name] for name in found.methods)],
        found.lines,
    )
    told = html.folded("What the others are told after the selection by ndoye", html.listed(found.told))
    inside = html.listed(found.words) + shown + html.paragraphs([found.small], "small")
    return [(heading, inside + (told if found.told else ""))]
