"""Weights that do not wear: how an algorithm weighs silos, told from its records and its name."""

import numpy as np

from confrere.answers.answer import Answer
from confrere.answers.words import percent
from confrere.history import History
from confrere.insight.explanations.path import EXACT, Seen, Why, columns_of

SAME = 1e-5
RULES = {  # how algorithms weigh silos whose weights change by themselves
    "ifca": "silos that chose the same model, the one with the lowest loss on their own rows, count by their rows",
    "clustered": "silos of the same cluster count; clusters part where gradients point in opposite directions",
    "fedamp": "the nearer the models of two silos, the more each counts for the other",
    "fedfomo": "a silo counts by how much its model lowers the user's loss on rows held out, by distance of models",
    "scaffold": "everybody who takes part counts alike",
    "gtv_gd": "a silo counts by the network's edges", "gtv_sgd": "a silo counts by the network's edges",
    "gtv_relax": "a silo counts by the network's edges", "gtv_async": "a silo counts by the network's edges",
    "data_interpolation": "the user counts by its share, the others by their rows for the rest",
}  # fmt: skip


def why_plain(history: History, seen: Seen) -> Why:
    """The weights of a silo whose algorithm has no terms, and by what rule they are what they are."""
    user, silo = history.names[seen.user], history.names[seen.silo]
    words = (f"{silo}: {rule_in_words(history, seen)}.", EXACT)
    return Why(history.algorithm, user, silo, "", {}, columns_of(seen), words)


def why_unweighed(answer: Answer, silo: str) -> Why:
    """An algorithm that weighs nobody, round by round."""
    share = answer.weights.get(silo, 0.0)
    words = (f"{silo}: {answer.algorithm} weighs no silo round by round; its share is {percent(share)}.", EXACT)
    return Why(answer.algorithm, answer.user, silo, "", {}, {"share": [share]}, words)


def rule_in_words(history: History, seen: Seen) -> str:
    """By rows, alike, itself alone, or by a rule of its own."""
    share, here = seen.shares[:, seen.silo], seen.here[:, seen.silo]
    counted = seen.shares.sum(axis=1) > 0
    if not (here & counted).any():
        return "it took part in no round that counted"
    mean = f"its share was {100 * share[here & counted].mean():.0f} % in the mean"
    others = np.delete(seen.shares, seen.user, axis=1)
    if (others[counted] <= SAME).all():
        own = (
            "the user alone counts, by design: training alone"
            if seen.silo == seen.user
            else "it never counts, by design"
        )
        return f"{own} ({history.algorithm})"
    rows = np.asarray(history.sizes, float)
    if in_proportion(seen.shares[counted], seen.here[counted] * rows):
        fixed = f"it counts by its rows ({history.sizes[seen.silo]} of {sum(history.sizes)})"
        return f"{fixed}, whatever it says: {mean}; no distance enters"
    if in_proportion(seen.shares[counted], seen.here[counted] * 1.0):
        return f"everybody who takes part counts alike, whatever it says: {mean}; no distance enters"
    rule = RULES.get(history.algorithm, "its weights follow a rule of the algorithm's own")
    return f"{rule}; {mean}, {100 * share[0]:.0f} % in the first round and {100 * share[-1]:.0f} % in the last"


def in_proportion(shares: np.ndarray, to: np.ndarray) -> bool:
    """Whether shares [R, n] are in proportion to something, round by round."""
    total = to.sum(axis=1, keepdims=True)
    return bool(np.allclose(shares, to / np.where(total > 0, total, 1), atol=SAME))
