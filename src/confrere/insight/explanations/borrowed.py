"""What the relevance of a silo rests on in `auto`: the evidence of the user's own rows.

    relevance / (1 - relevance) = P(user's rows | the silo is like the user) / P(user's rows | it is not),

as both are as likely beforehand; "not" is unrelated or the opposite (see `confrere.borrowing.borrow`). The share of the
information is what came of it, averaged over the candidates by how well they predicted held-out rows.
"""

from confrere.answers.answer import RELEVANT, Answer
from confrere.answers.words import listing, percent
from confrere.insight.explanations.path import Why

EVEN = 3.0  # evidence below speaks neither for nor against
MOST = 1e6  # evidence above is told as more than that
NO_INTERVAL = "Relevances and shares are told given the rows that were seen; they have no interval of their own."
TERMS = {
    "evidence": "how many times as probable the user's rows are if the silo is like the user as if it is not",
    "relevance": "the probability that follows, both being as likely beforehand",
}


def why_borrowed(answer: Answer, silo: str) -> Why:
    """What the relevance and the share of a silo rest on."""
    share = answer.weights.get(silo, 0.0)
    relevance = answer.relevance.get(silo)
    columns = {"relevance": [relevance], "evidence": [odds(relevance)], "share": [share]}
    words = (*in_words(answer, silo, relevance, share), *by_candidates(answer), NO_INTERVAL)
    return Why(answer.algorithm, answer.user, silo, "", TERMS, columns, words)


def odds(relevance: float | None) -> float | None:
    """The evidence behind a relevance; at most a million times either way.

    >>> odds(0.75), odds(1.0)
    (3.0, 1000000.0)
    """
    if relevance is None:
        return None
    return min(MOST, max(1 / MOST, relevance / max(1 - relevance, 1e-12)))


def in_words(answer: Answer, silo: str, relevance: float | None, share: float) -> list[str]:
    """The evidence in words."""
    if silo == answer.user:
        return [f"{silo} is the user: {percent(share)} of what the model knows comes from its own {answer.rows} rows."]
    if silo in answer.refused:
        return [f"{silo} counted for nothing: what it sent could not be true."]
    if silo in answer.silent:
        return [f"{silo} counted for nothing: it has too few rows to be heard."]
    if relevance is None:
        return [f"{silo} was not judged by itself; {percent(share)} of what the model knows comes from it."]
    factor = odds(relevance) or 1.0
    more = "at least " if factor in (MOST, 1 / MOST) else ""
    times = f"{more}{max(factor, 1 / factor):.3g} times"
    if factor >= EVEN:
        judged = f"{answer.user}'s own rows are {times} as probable if {silo} is like it as if it is not"
    elif factor <= 1 / EVEN:
        judged = f"{answer.user}'s own rows are {times} as probable if {silo} is unlike it as if it is like it"
    else:
        judged = f"{answer.user}'s own rows hardly tell whether {silo} is like it"
    flagged = ", and it is flagged as unrelated" if relevance < RELEVANT else ""
    return [f"{judged} (relevance {relevance:.2f}){flagged}: {percent(share)} of what the model knows comes from it."]


def by_candidates(answer: Answer) -> list[str]:
    """Which ways of borrowing counted."""
    some = [f"{name} {percent(value)}" for name, value in answer.candidates.items() if value >= 0.005]
    return [f"Ways to borrow were weighted by how well they predicted held-out rows: {listing(some)}."] if some else []
