"""Question 7: who is like me, in what sense, and what does it rest on? From what was measured to plain values."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from confrere.data.silos import Silos
from confrere.insight.similarity import Likeness, Measured, Similarity, similarity
from confrere.insight.similarity.measures import MEASURES
from confrere.insight.similarity.words import beyond_chance
from confrere.plural import plural
from confrere.report.contents import Estimate, Other, Resemblance, Sense, Similar
from confrere.selection.words import size_of

RESAMPLES = 50
MOST_SILOS = 40  # that are compared pair by pair
FEW_SILOS = 12  # so many users can be asked whom they would miss


def compared(silos: Silos, min_group: int, people: str = "patients", seed: int = 0) -> Similarity | str:
    """All silos compared with one another on their training rows; or, in words, why they are not.

    `people` is what rows are called.
    """
    if len(silos) > MOST_SILOS:
        return f"Nothing is said of who is like whom: {len(silos)} silos are too many to compare pair by pair."
    measures = [name for name in MEASURES if name != "influence" or len(silos) <= FEW_SILOS]
    try:
        found = similarity(silos, measures, resamples=RESAMPLES, min_group=min_group, seed=seed)
    except (ValueError, TypeError) as problem:
        return f"Nothing is said of who is like whom: {problem}."
    called = {n: replace(m, title=m.title.replace("patients", people), unit=m.unit.replace("patients", people))
              for n, m in found.measures.items()}  # fmt: skip
    return replace(found, measures=called)


def resemblance(found: Similarity | str) -> Resemblance | None:
    """The map, the groups and the matrix of all pairs."""
    if isinstance(found, str):
        return None
    plane, view = found.map(), found.combined
    places = {n: (float(x), float(y)) for n, (x, y) in zip(plane.names, plane.places, strict=True)}
    sent = tuple((m.title, said_of(m), size_of(m.bytes_up), size_of(m.bytes_down)) for m in found.measures.values())
    n = len(found.names)
    return Resemblance(
        found.names, tuple(tuple(estimate(view, i, j) for j in range(n)) for i in range(n)),
        tuple(tuple(beyond_chance(view, i, j) for j in range(n)) for i in range(n)), places,
        dict(zip(plane.names, map(tuple, plane.ellipses), strict=False)), plane.words, found.groups().words, sent,
        found.resamples, found.min_group,
    )  # fmt: skip


def said_of(m: Measured) -> str:
    """What leaves a silo for a measure."""
    return m.crossings[0].what if m.crossings else "nothing"


def similar(found: Similarity | str, user: int) -> Similar:
    """The others as one user sees them."""
    if isinstance(found, str):
        return Similar((), (found,))
    likely = found.like(user)
    others = tuple(other(found, user, one) for one in likely)
    return Similar(others, tuple(in_words(found, user, likely)))


def other(found: Similarity, user: int, one: Likeness) -> Other:
    """One other silo: in all, and in every sense."""
    j = found.names.index(one.silo)
    senses = tuple(sense(m, user, j) for m in found.measures.values())
    return Other(one.silo, Estimate(one.distance, one.low, one.high), one.differs, senses)


def sense(m: Measured, i: int, j: int) -> Sense:
    """What one measure says of a pair, one way and back."""
    back = None if m.symmetric else estimate(m, j, i)
    return Sense(m.name, m.title, m.unit, estimate(m, i, j), back, beyond_chance(m, i, j), shade(m, i, j))


def estimate(m: Measured, i: int, j: int) -> Estimate:
    """A value with its interval."""
    low, high = float(m.low[i, j]), float(m.high[i, j])
    ends = (low, high) if math.isfinite(low) and math.isfinite(high) and i != j else (None, None)
    return Estimate(float(m.matrix[i, j]), *ends)


def shade(m: Measured, i: int, j: int) -> int:
    """How dark a cell is, 0 to 4: how many times what chance explains two silos are apart."""
    if m.dissimilarity is None or i == j or not np.isfinite(m.dissimilarity[i, j]):
        return 0
    chance = float(m.chance[i, j])
    times = float(m.dissimilarity[i, j]) / chance if chance > 0 else 4.0 * bool(m.dissimilarity[i, j] > 0)
    return int(np.searchsorted([0.5, 1.0, 2.0, 4.0], times, side="right"))


def in_words(found: Similarity, user: int, likely: tuple[Likeness, ...]) -> list[str]:
    """The answer first, then every other silo in a sentence, the groups, and what it rests on."""
    known = [one for one in likely if not math.isnan(one.distance)]
    me = found.names[user]
    if not known:
        return [f"Not known: {likely[0].words[0].removeprefix('Nothing is known: ')}"]
    said = [answer(me, known[0]), *(one_in_words(found, one) for one in known)]
    said += [f"Of {one.silo} nothing is known: {found.without.get(one.silo, 'no measure is defined')}."
             for one in likely if one not in known]  # fmt: skip
    words = found.groups().words
    pairs = plural(found.rows[user], "training row")
    return [
        *said, f"{words[0].upper()}{words[1:]}.",
        f"All this rests on {pairs} of {me}, and on {found.resamples} draws of every silo's rows. A difference counts "
        "if chance explains less in 95 % of the draws; looked at pair by pair, one in twenty is found by chance alone.",
    ]  # fmt: skip


def answer(me: str, nearest: Likeness) -> str:
    """Who is most like me, and whether a difference is left.

    >>> answer("a", Likeness("b", 0.5, 0.0, 1.0, (), ()))
    'b is most like a, and differs from it in nothing by more than chance explains.'
    """
    if not nearest.differs:
        return f"{nearest.silo} is most like {me}, and differs from it in nothing by more than chance explains."
    return f"{nearest.silo} is the least unlike {me}, but differs from it by more than chance explains."


def one_in_words(found: Similarity, one: Likeness) -> str:
    """In what sense one other silo is alike, and in what sense not."""
    titles = {n: f"{m.title[0].lower()}{m.title[1:]}" for n, m in found.measures.items() if m.dissimilarity is not None}
    no = [title for name, title in titles.items() if name in one.differs]
    yes = [title for name, title in titles.items() if name not in one.differs]
    if not no:
        return f"{one.silo}: no difference is clear of chance."
    return f"{one.silo} differs in {listing(no)}" + (f"; no clear difference in {listing(yes)}." if yes else ".")


def listing(words: Sequence[str]) -> str:
    """Words in a row.

    >>> listing(["a", "b", "c"]), listing(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
