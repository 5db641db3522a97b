"""Question 2: whose data did the model listen to, and when?"""

import numpy as np

from confrere.algorithms.borrowing import EVIDENCE_ROUNDS
from confrere.answers import words
from confrere.answers.answer import RELEVANT, Answer
from confrere.history import row_for
from confrere.report.contents import Listening

ROUNDING = 1e-6


def listened(answer: Answer) -> Listening:
    """Shares, relevances and, for methods that go round by round, the weights of every round."""
    by_exchange = answer.algorithm.startswith("auto (evidence")
    rounds = {} if by_exchange else rounds_of(answer)
    return Listening(
        dict(answer.weights), answer.prior, dict(answer.relevance), answer.refused, answer.silent, rounds,
        (
            words.whom_it_listened_to(answer.user, answer.weights, answer.prior),
            *words.who_was_left_out(answer.relevance, answer.refused, answer.silent, answer.weights),
            *relevance_in_words(answer),
            *when_in_words(answer, by_exchange, rounds),
        ),
    )  # fmt: skip


def rounds_of(answer: Answer) -> dict[str, tuple[float, ...]]:
    """The weight of every silo in every round, as the rule gave it; where these are rows, shares of them. Empty where
    there is none."""
    history = answer.history
    raw = history.weights
    if raw is None or not len(raw):
        return {}
    row = row_for(raw, history.names.index(answer.user), history.per_silo)
    if row.max() > 1 + ROUNDING:
        row = row / np.maximum(row.sum(axis=1, keepdims=True), ROUNDING)
    return {name: tuple(float(v) for v in row[:, i]) for i, name in enumerate(history.names)}


def relevance_in_words(answer: Answer) -> list[str]:
    """What the relevances mean, where there are some and all are high."""
    heard = [v for name, v in answer.relevance.items() if name not in (*answer.refused, *answer.silent)]
    if not heard or min(heard) < RELEVANT:
        return []
    return [
        f"Judged by {answer.user}'s own rows, every silo that was heard may well have something to say (relevance "
        f"{min(heard):.2f} or more, where below {RELEVANT} a silo is flagged)."
    ]


def when_in_words(answer: Answer, by_exchange: bool, rounds: dict[str, tuple[float, ...]]) -> list[str]:
    """When it listened."""
    if by_exchange:
        return [
            f"It weighed the others once, at the end: in {EVIDENCE_ROUNDS} rounds every other silo sent its summary "
            "and refined it, and all were then weighed together."
        ]
    if not rounds:
        return []
    others = [values for name, values in rounds.items() if name != answer.user]
    whole = [sum(values[k] for values in rounds.values()) or 1.0 for k in (0, -1)]
    first, last = (words.percent(sum(values[k] for values in others) / whole[k]) for k in (0, -1))
    count = len(next(iter(rounds.values())))
    if count == 1:
        return [f"The others together had {first} of the weight in its only round."]
    return [f"The others together had {first} of the weight in the first of {count} rounds, {last} in the last."]
