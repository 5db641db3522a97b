"""A model for every group of silos: groups found by the losses of k models, or by the directions of updates."""

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.algorithms.common import Shares, recipe_of, shares
from confrere.checks import check_counts
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe


def ifca(
    lr: float, k: int = 2, spread: float = 1.0, batch: int | None = 32, epochs: int | None = None,
    steps: int | None = None, weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Iterative federated clustering: k models, of which every silo trains the one that fits its own rows best.

    Ghosh, Chung, Yin, Ramchandran: An efficient framework for clustered federated learning (2020), Algorithm 1 with
    model averaging. Silos receive all k models and tell openly which they chose. The k models start `spread` apart,
    around the given one; see `confrere.clients.choosing`. The paper averages with `weights="uniform"`.

    >>> import confrere as cf
    >>> cf.ifca(lr=0.1, k=3).hyper
    {'lr': 0.1, 'spread': 1.0}
    """
    check_counts(k=k)
    static = {"k": k, "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(
        _ifca, "ifca", static, lr=lr, spread=spread, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )  # fmt: skip


def _ifca(loss: Loss, lr, k: int, spread, weights: Shares, l2=None, **how) -> Algorithm:
    client = clients.choosing(clients.sgd(loss, lr, l2=l2, **how), loss, k, spread, l2)
    return federate(client, mixers.server(weighted(weighting.chosen(k, shares(weights))), deliver="all"))


def clustered(
    lr: float, eps1: float = 0.1, eps2: float = 0.2, gamma: float = 0.5, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Clustered federated learning: FedAvg, and a cluster whose silos pull apart at its optimum is divided in two.

    Sattler, Müller, Samek: Clustered federated learning: model-agnostic distributed multitask optimization under
    privacy constraints (2020). A cluster is divided by the cosines of its updates when their mean is shorter than
    `eps1` and the longest longer than `eps2`, in units of the longest update so far, and if their noise, at most
    `gamma` of their length, cannot explain it (0: any difference is taken for a dispute, so that batches drawn at
    random part silos for ever); see `confrere.weights.cluster`. With eps2 of 1 nothing is ever divided.

    >>> import confrere as cf
    >>> cf.clustered(lr=0.1, eps1=0.05).hyper
    {'lr': 0.1, 'eps1': 0.05, 'eps2': 0.2, 'gamma': 0.5}
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(
        _clustered, "clustered", static,
        lr=lr, eps1=eps1, eps2=eps2, gamma=gamma, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior,
    )  # fmt: skip


def _clustered(loss: Loss, lr, eps1, eps2, gamma, weights: Shares, **how) -> Algorithm:
    rule = weighted(weighting.cluster(eps1, eps2, gamma, shares(weights)))
    return federate(clients.sgd(loss, lr, **how), mixers.server(rule, deliver="own"))
