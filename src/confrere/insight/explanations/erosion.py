"""The weight of a silo in Weight Erosion, round by round, in exact terms.

    weight = weight before - p_d d - p_s passes p_d d + what was cut off at 0 (+ what joining late changed)

All terms are multiplied by what the weight is (a size prior, a selection), so that they add up to the recorded change.
Equation (5) of Grimberg, Hartley, Jaggi, Karimireddy: Weight Erosion (2020); see `confrere.weights.erosion`. A silo
that is infinitely far (the user's gradient is zero) loses all it has by distance.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from confrere.algorithms.listening import rows_in_a_message
from confrere.history import History
from confrere.insight.explanations.path import EXACT, Seen, Why, check_agreement, columns_of, distances_from
from confrere.weights.erosion import Eroded, further, passes_before, size_factor, typical

TERMS = {
    "by_distance": "p_d times the distance: its gradient pointed elsewhere",
    "by_size": "p_s times the passes over its rows, times that: the rows of a small silo come again and again",
    "cut_off": "what was not taken, as a weight ends at 0",
    "joined": "a silo that joins late starts at the others' typical weight instead of 1",
}
INFINITE = 1e30  # a distance above stands for infinity
ROUNDING = 1e-9  # a weight below is none
MOSTLY, HARDLY = 2 / 3, 1 / 3  # of what was lost


class Worn(NamedTuple):
    """One round of all silos [n]: the terms, in units of alpha, and the passes over their rows."""

    by_distance: np.ndarray
    by_size: np.ndarray
    cut_off: np.ndarray
    joined: np.ndarray
    passes: np.ndarray


def why_eroded(history: History, seen: Seen) -> Why:
    """The terms of Weight Erosion for one silo."""
    distance = distances_from(seen, history)
    rounds = worn_in_every_round(history, seen, distance)
    factor = factors(history, seen.user)[seen.silo]
    terms = {name: factor * np.array([getattr(w, name)[seen.silo] for w in rounds]) for name in TERMS}
    change = sum(terms.values())
    weight = factor + np.cumsum(change)
    check_agreement(weight, seen)
    here = seen.here[:, seen.silo] & seen.here[:, seen.user]
    columns = columns_of(
        seen, distance=np.where(here & (distance[:, seen.silo] < INFINITE), distance[:, seen.silo], np.nan),
        passes=np.array([w.passes[seen.silo] for w in rounds]), before=weight - change, **terms,
    )  # fmt: skip
    names = history.names
    words = in_words(names[seen.user], names[seen.silo], seen, factor, terms, columns)
    return Why("weight_erosion", names[seen.user], names[seen.silo], "change", TERMS, columns, (*words, EXACT))


def worn_in_every_round(history: History, seen: Seen, distance: np.ndarray) -> list[Worn]:
    """What every round did to all silos, by the rules of `weights.erosion`, from the recorded distances."""
    how, size = history.static, jnp.asarray(history.sizes, jnp.int32)
    p_d, p_s = float(history.hyper["p_d"]), float(history.hyper["p_s"])
    batch, steps = rows_in_a_message(how["batch"], how["form"], how["order"], how["epochs"], how["steps"])
    zeros = jnp.zeros(len(size), jnp.int32)
    state = Eroded(jnp.ones(len(size)), zeros, zeros, zeros)
    found: list[Worn] = []
    alpha = np.ones(len(size))
    for here, d in zip(seen.here, distance, strict=True):
        known = np.asarray(state.rounds) > 0
        start = float(typical(jnp.asarray(alpha), jnp.asarray(known), how["newcomer"]))
        joined = np.where(here & ~known, start - alpha, 0.0)
        passes = np.asarray(passes_before(state, size, batch, steps, how["passes"]), float)
        worn = penalties(alpha + joined, np.where(here & here[seen.user], d, 0.0), p_d, p_s, passes)
        found.append(Worn(*worn, joined, passes))
        alpha = alpha + joined + sum(worn)
        used = further(state, jnp.asarray(here), size, batch, steps)
        state = Eroded(state.alpha, state.rounds + here.astype(np.int32), *used)
    return found


def penalties(
    alpha: np.ndarray, d: np.ndarray, p_d: float, p_s: float, passes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two penalties and what was cut off them [n].

    >>> [v.tolist() for v in penalties(np.array([0.5]), np.array([2.0]), 0.1, 0.5, np.array([4.0]))]
    [[-0.2], [-0.4], [0.10000000000000003]]
    """
    infinite = (d >= INFINITE) & (p_d > 0)
    finite = np.where(d >= INFINITE, 0, d)
    by_distance = np.where(infinite, -alpha, -p_d * finite)
    by_size = -p_s * passes * p_d * finite
    return by_distance, by_size, np.maximum(0, -(alpha + by_distance + by_size))


def factors(history: History, user: int) -> np.ndarray:
    """By what alpha is multiplied to give the recorded weight [n]: the prior on silos and the size prior."""
    factor = np.asarray(history.hyper.get("prior", np.ones(len(history.names))), float)
    if "size_prior" not in history.hyper:
        return factor
    return factor * np.asarray(size_factor(jnp.asarray(history.sizes), user, history.hyper["size_prior"]), float)


def in_words(
    user: str, silo: str, seen: Seen, factor: float, terms: dict[str, np.ndarray], columns: dict[str, list[Any]]
) -> list[str]:
    """Since when it counted less, and because of what."""
    if user == silo:
        return [f"{silo} is the user: its own weight is never worn away."]
    if factor == 0:
        return [f"{silo} was left out before training (prior 0): it never counted."]
    here = seen.here[:, seen.silo] & seen.here[:, seen.user]
    if not here.any():
        return [f"{silo} never took part together with {user}: its weight was not judged."]
    weight = seen.weights[:, seen.silo] / factor
    alive = np.array([value > ROUNDING for value in columns["before"]])  # what is taken from nothing is no loss
    lost = [-float(terms[name][alive].sum() / factor) for name in ("by_distance", "by_size")]
    d = np.array([v for v, there in zip(columns["distance"], alive, strict=True) if v is not None and there])
    passes = max(v for v, there in zip(columns["passes"], alive, strict=True) if there)
    far = f"distance {d.mean():.2f} in the mean" if len(d) else "infinitely far: the user's own gradient was zero"
    headline = f"{silo} {since_when(weight)}{because(lost, far, passes)}"
    said = [
        f"By distance it was to lose {lost[0]:.3f}, by size {abs(lost[1]):.3f}, of a weight that began at "
        f"{1 + float(terms['joined'].sum() / factor):.2f} and ended at {weight[-1]:.3f}.",
    ]
    cut = float(terms["cut_off"][alive].sum() / factor)
    if cut > 0:
        round_ = int(np.argmax(weight <= 0)) + 1
        said.append(f"It reached 0 in round {round_}; {cut:.3f} of that was not taken, as no weight is below 0.")
    return [headline, *said]


def since_when(weight: np.ndarray) -> str:
    """From which round on it counted less, in words."""
    if weight[-1] > 0.99:
        return f"kept its weight ({weight[-1]:.2f}) to the end"
    if weight[-1] > 0.5:
        return f"still had {weight[-1]:.2f} of its weight at the end; it lost the rest"
    return f"counted less than half from round {int(np.argmax(weight < 0.5)) + 1} on"


def because(lost: list[float], far: str, count: float) -> str:
    """Because of distance, of size, or of both."""
    total = sum(lost)
    if total <= 0:
        return ", as its gradients were those of the user."
    if total < 0.01:
        return f", as its gradients hardly differed from the user's ({far})."
    passes = f"its rows were used {count:.0f} times over"
    if lost[1] / total < HARDLY:
        return f" because its gradient pointed elsewhere ({far}), not because it is small."
    if lost[1] / total > MOSTLY:
        return f" mostly because it is small ({passes}, which multiplies what its {far} costs)."
    return f" because its gradient pointed elsewhere ({far}), and because it is small ({passes})."
