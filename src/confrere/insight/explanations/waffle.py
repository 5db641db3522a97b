"""The weight of a silo in WAFFLE, round by round, in terms that add up to it.

    weight = (Psi - (d_i - d_u) / (dM - d_u) + what was cut off at 0) / (3 S)
             + (alpha of the last two rounds) / 3

with S the sum of the raw weights of all silos, by which alpha is divided; where nobody is nearer than another all count
alike, and from 95 % of the rounds on the user counts alone. See `confrere.weights.omega`, equations (2)-(4).
"""

import jax
import numpy as np

from confrere.history import History
from confrere.insight.explanations.path import EXACT, Seen, Why, check_agreement, columns_of, distances_from
from confrere.weights.omega import LOCAL_FROM, SMOOTHED, sigmoid

TERMS = {
    "by_schedule": "Psi, which falls from everybody to the user alone as rounds go by",
    "by_distance": "how far it is between the user (0) and the farthest silo (1)",
    "cut_off": "what was not taken, as no weight is below 0",
    "by_rule": "all alike where nobody is nearer than another; the user alone in the last 5 % of the rounds",
    "smoothed": "a third of what it had in each of the two rounds before",
}


def why_waffled(history: History, seen: Seen) -> Why:
    """The terms of WAFFLE for one silo; none where distances of other parts of the message were compared."""
    names = history.names
    if history.static.get("distance") == "raw":
        words = ("This run compared raw gradients, whose distances were not recorded: the weight has no terms here.",)
        return Why("waffle", names[seen.user], names[seen.silo], "", {}, columns_of(seen), words)
    distance = absolute_distances(history, seen)
    steps = followed(history, seen, distance)
    factor = float(np.asarray(history.hyper.get("prior", np.ones(len(names))))[seen.silo])
    terms = {name: factor * np.array([step[name] for step in steps]) for name in TERMS}
    check_agreement(np.sum(list(terms.values()), axis=0), seen)
    columns = columns_of(seen, distance=np.where(seen.here[:, seen.silo], distance[:, seen.silo], np.nan), **terms)
    words = in_words(history, seen, terms, distance)
    return Why("waffle", names[seen.user], names[seen.silo], "weight", TERMS, columns, (*words, EXACT))


def absolute_distances(history: History, seen: Seen) -> np.ndarray:
    """Distances of messages [R, n]: the recorded ones are relative to the norm of the user's."""
    if history.norm is None:
        raise ValueError("the run did not record norms: run simulate with record=('weights', 'distance', 'norm')")
    return distances_from(seen, history) * history.norm[:, seen.user, None].astype(float)


def followed(history: History, seen: Seen, distance: np.ndarray) -> list[dict[str, float]]:
    """The terms of every round; NaN in a round that the user missed, in which nobody counted."""
    n, rounds = len(history.names), history.static["rounds"]
    omega, psi = schedules(history)
    own = (np.arange(n) == seen.user).astype(float)
    alpha, known, heard = np.full((2, n), 1 / n), np.zeros(n), np.zeros(n, bool)
    found: list[dict[str, float]] = []
    for r, (here, d) in enumerate(zip(seen.here, distance, strict=True), start=1):
        if not here[seen.user]:
            found.append(dict.fromkeys(TERMS, np.nan))
            continue
        known, heard = np.where(here, d, known), heard | here
        late = 20 * r >= 19 * rounds
        terms = {"by_rule": own} if late else parts_of(known, heard, seen.user, omega[r - 1], psi[r - 1])
        smoothed = alpha.sum(axis=0)[seen.silo] / SMOOTHED
        told = {name: float(values[seen.silo]) / SMOOTHED for name, values in terms.items()}
        found.append(dict.fromkeys(TERMS, 0.0) | told | {"smoothed": float(smoothed)})
        alpha = np.stack([alpha[1], sum(terms.values())])
    return found


def schedules(history: History) -> tuple[np.ndarray, np.ndarray]:
    """Omega and Psi in every round [R]."""
    personal = history.static.get("schedule") or sigmoid(float(history.hyper["slope"]))
    near = history.static.get("threshold") or personal
    with jax.enable_x64(True):
        t = np.arange(1, history.rounds + 1) / history.static["rounds"]
        return np.asarray(jax.vmap(personal)(t), float), np.asarray(jax.vmap(near)(t), float)


def parts_of(d: np.ndarray, heard: np.ndarray, user: int, omega: float, psi: float) -> dict[str, np.ndarray]:
    """The parts of alpha before smoothing [n]: schedule, distance and what was cut off, divided by the sum of all."""
    own = np.arange(len(d)) == user
    others = heard & ~own
    if not others.any():
        return {"by_rule": own.astype(float)}
    farthest, nearest = d[others].max(), d[others].min()
    of_user = nearest * (1 - (farthest - nearest) / (farthest or 1.0) * (1 - omega))
    reach = farthest - of_user
    if reach <= 0:  # nobody is nearer than another
        return {"by_rule": heard / heard.sum()}
    apart = np.where(heard, np.where(own, 0, d - of_user) / reach, 0)
    cut = np.where(heard, np.maximum(apart - psi, 0), 0)
    schedule = np.where(heard, psi, 0.0)
    total = (schedule - apart + cut).sum()
    if total <= 0:
        return {"by_rule": own.astype(float)}
    return {"by_schedule": schedule / total, "by_distance": -apart / total, "cut_off": cut / total}


def in_words(history: History, seen: Seen, terms: dict[str, np.ndarray], distance: np.ndarray) -> list[str]:
    """Since when it does not count, and whether distance or the schedule did it."""
    silo, user = history.names[seen.silo], history.names[seen.user]
    alone_from = int(np.ceil(LOCAL_FROM * history.static["rounds"]))
    last = f"From round {alone_from} on the rule lets {user} count alone, whatever the distances."
    if silo == user:
        return [f"{silo} is the user: its share grows from {seen.weights[0, seen.silo]:.2f} as the others fade.", last]
    now = np.nansum([terms[name] for name in TERMS if name != "smoothed"], axis=0)
    here = seen.here[:, seen.silo] & seen.here[:, seen.user]
    if not here.any():
        return [f"{silo} never took part together with {user}: its weight was not judged.", last]
    gone = next((k for k in range(len(now)) if not (now[k:] > 0).any()), None)
    others = [i for i in range(len(history.names)) if i != seen.user]
    rank = 1 + int((distance[here][:, others].mean(axis=0) < distance[here][:, seen.silo].mean()).sum())
    mean = f"{distance[here, seen.silo].mean():.3g} in the mean"
    place = f"it was number {rank} of {len(others)} by distance from {user}, {mean}"
    if gone is None:
        return [f"{silo} counted to the end of the run; {place}.", last]
    why = "by the rule of the last rounds" if gone + 1 >= alone_from else "because it was too far for the schedule"
    return [f"{silo} earned nothing more from round {gone + 1} on, {why}; {place}.", last]
