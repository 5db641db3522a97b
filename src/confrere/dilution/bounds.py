"""The largest share of weight that a silo can have in a model that somebody else receives, recipe by recipe.

With p the prior, n_i the rows, u the user, sums over those who take part in a round:

    local, ridge_local              0: nothing is sent
    plain averages                  p_i n_i / sum_j p_j n_j, or p_i / sum_j p_j            exact
    data_interpolation              own_share of the user, the rest by the plain average   exact
    gtv_gd, gtv_sgd, gtv_relax      p_i A_ji / sum_k p_k A_jk, largest over neighbours j   exact
    weight_erosion                  p_i b_i / (p_i b_i + p_u b_u), b_i = (n_i / n_u)^size_prior; 1 for the user
    waffle                          p_i / (p_i + p_u); 1 for the user
    fedamp                          p_i x / (p_i x + (1 - x) min_j p_j), x = min(1, attention / n)
    clustered                       p_i n_i / (p_i n_i + p_j n_j) with the smallest other j
    all others                      1: a silo may stand alone, or what it sends is seen as it is

Weight Erosion: alpha is 1 for the user and between 0 and 1 for others, and the share of i, a_i / sum_j a_j with a = p b
alpha, rises with alpha_i and falls with the others'. So it is largest where i has kept its weight and all others but
the user have lost theirs: at most 1/2 where all is equal, however many silos there are. In WAFFLE the user's weight is
the largest of all, by (2) and (3) if Omega is at most 1, and so is its mean over three rounds. A FedAMP receiver gives
itself what the others leave, and one other at most attention / n. Clusters may shrink to two.

Bounds are of the averaged models; control variates (SCAFFOLD, WAFFLE) travel beside them and are not in it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Situation(NamedTuple):
    """What is known before training: rows [n], the prior [n], who takes part in a round [n], the user and settings."""

    rows: np.ndarray
    prior: np.ndarray
    here: np.ndarray
    user: int | None
    static: Mapping[str, Any]
    hyper: Mapping[str, Any]

    @property
    def everybody(self) -> bool:
        """Whether all take part who have a prior and rows at all."""
        return bool(self.here[(self.prior > 0) & (self.rows > 0)].all())


Bound = Callable[[Situation], np.ndarray]


def shares_of(W: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Rows of weights [r, n] with the absent at 0, each summing to 1, or to 0 where nobody counts."""
    counted = np.where(here, W, 0.0)
    total = counted.sum(axis=1, keepdims=True)
    return np.divide(counted, total, out=np.zeros_like(counted), where=total > 0)


def nothing(at: Situation) -> np.ndarray:
    """Nothing is sent."""
    return np.zeros(len(at.rows))


def everything(at: Situation) -> np.ndarray:
    """No bound below 1 is known."""
    return np.where(at.here, 1.0, 0.0)


def plain_average(at: Situation) -> np.ndarray:
    """By rows, or all alike."""
    uniform = at.static.get("weights", "uniform") == "uniform"
    return shares_of((at.prior * (1.0 if uniform else at.rows))[None], at.here)[0]


def interpolation(at: Situation) -> np.ndarray:
    """Part of the weight is the user's, the rest is shared out; with `own_share` still open, whatever is worst."""
    if at.user is None:
        return everything(at)
    own = at.hyper.get("own_share")
    common = plain_average(at._replace(prior=np.ones_like(at.prior)))
    itself = np.arange(len(at.rows)) == at.user

    def shares(part: float) -> np.ndarray:
        return shares_of((at.prior * (part * itself + (1 - part) * common))[None], at.here)[0]

    return shares(float(own)) if own is not None else np.where(itself, 1.0, shares(0.0))


def with_user(at: Situation, factor: np.ndarray) -> np.ndarray:
    """Where the user's weight stays whole, and all others' may go but one's."""
    if at.user is None:
        return everything(at)
    weight = at.prior * factor
    pair = weight + weight[at.user]
    bound = np.divide(weight, pair, out=np.zeros_like(weight), where=pair > 0)
    bound[at.user] = 1.0
    return np.where(at.here, bound, 0.0)


def erosion(at: Situation) -> np.ndarray:
    """Weight Erosion; without a penalty it is a fixed average."""
    if at.user is None:
        return everything(at)
    power = at.hyper.get("size_prior")
    rows = np.maximum(at.rows, 1.0)
    factor = np.ones(len(rows)) if power is None else (rows / rows[at.user]) ** float(power)
    if at.hyper.get("p_d") == 0:
        return shares_of((at.prior * factor)[None], at.here)[0]
    return with_user(at, factor)


def waffle(at: Situation) -> np.ndarray:
    """WAFFLE with its own schedule; another may let a silo be nearer to the user than the user itself."""
    if at.static.get("schedule") is not None:
        return everything(at)
    return with_user(at, np.ones(len(at.rows)))


def attention(at: Situation) -> np.ndarray:
    """FedAMP."""
    n = max(int(at.here.sum()), 1)
    given = at.hyper.get("attention")
    x = 1.0 if given is None else min(1.0, float(given) / n)
    bound = np.zeros(len(at.rows))
    for i in np.flatnonzero(at.here):
        others = at.prior[at.here & (np.arange(len(bound)) != i)]
        if len(others):
            whole = at.prior[i] * x + (1 - x) * others.min()
            bound[i] = at.prior[i] * x / whole if whole > 0 else 1.0
    return bound


def clusters(at: Situation) -> np.ndarray:
    """Clusters of two at worst; one who is absent may be told what the other says alone."""
    if not at.everybody:
        return everything(at)
    weight = at.prior * (1.0 if at.static.get("weights") == "uniform" else at.rows)
    bound = np.zeros(len(weight))
    for i in np.flatnonzero(at.here):
        others = weight[at.here & (np.arange(len(weight)) != i)]
        if len(others):
            bound[i] = weight[i] / (weight[i] + others.min())
    return bound


def neighbours(at: Situation) -> np.ndarray:
    """The largest share among a neighbour's neighbours."""
    edges = np.asarray(at.static["network"].adjacency().toarray(), float)
    shares = shares_of(edges * at.prior, at.here)
    np.fill_diagonal(shares, 0.0)
    return shares.max(axis=0, initial=0.0)


def neighbours_late(at: Situation) -> np.ndarray:
    """The same where old messages may stand in: only if all are always there."""
    return neighbours(at) if at.everybody and not at.static.get("delay") else everything(at)


AVERAGES = (
    "fedavg", "fedsgd", "fine_tuned", "ditto", "apfl", "fedper", "fedrep", "fedbn", "featurised", "model_interpolation",
    "fedprox", "pfedme", "fedopt", "per_fedavg", "scaffold", "multi_task", "fedavg_prox",
)  # fmt: skip
BOUNDS: dict[str, Bound] = {
    **dict.fromkeys(("local", "ridge_local"), nothing),
    **dict.fromkeys(AVERAGES, plain_average),
    **dict.fromkeys(("gtv_gd", "gtv_sgd", "gtv_relax"), neighbours),
    "gtv_async": neighbours_late,
    "data_interpolation": interpolation,
    "weight_erosion": erosion,
    "waffle": waffle,
    "fedamp": attention,
    "clustered": clusters,
}
WHY: dict[Bound, str] = {
    nothing: "nothing is sent",
    plain_average: "its share of the plain average",
    interpolation: "its share of the average beside the user's own part",
    erosion: "the share it would have if all others but the user lost their weight",
    waffle: "the share it would have if all others but the user lost their weight",
    attention: "the most that one silo counts for another",
    clusters: "the share it would have in a cluster of two with the smallest other silo",
    neighbours: "the largest share it has of what a neighbour receives",
    neighbours_late: "the largest share it has of what a neighbour receives",
    everything: "what it sends may be seen by itself",
}


def bound_of(name: str) -> Bound:
    """The bound of a recipe; 1 for one that is not known."""
    return BOUNDS.get(name, everything)
