"""A model for every silo, mixed from those of its peers: by how near they are, or by how well they do on its rows."""

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.algorithms.common import recipe_of
from confrere.checks import check_counts
from confrere.clients.batches import Order, plan_for
from confrere.core import Algorithm, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe


def fedamp(
    lr: float, attention: float = 0.5, sigma: float = 1.0, pull: float = 1.0, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """FedAMP: every silo trains from, and is pulled towards, a mix of models in which those near its own count most.

    Huang, Chu, Zhou, Wang, Liu, Pei, Zhang: Personalized cross-silo federated learning on non-IID data (2021). Another
    model counts `attention` / n, falling off with its squared distance over `sigma`; attention 0 is training alone,
    attention 1 with a large sigma the mean. `pull` is the paper's lambda / alpha_k.

    >>> import confrere as cf
    >>> cf.fedamp(lr=0.1, sigma=10.0).hyper
    {'lr': 0.1, 'attention': 0.5, 'sigma': 10.0, 'pull': 1.0}
    """
    weighting.attention(attention, sigma)  # refuse what is wrong here rather than later
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order}
    return recipe_of(
        _fedamp, "fedamp", static,
        lr=lr, attention=attention, sigma=sigma, pull=pull, momentum=momentum, weight_decay=weight_decay, l2=l2,
        prior=prior,
    )  # fmt: skip


def _fedamp(loss: Loss, lr, attention, sigma, pull, batch, epochs, steps, order: Order, **how) -> Algorithm:
    client = clients.attentive(loss, lr, pull, plan_for(order, batch, steps, epochs), **how)
    return federate(client, mixers.peers(weighted(weighting.attention(attention, sigma))))


def fedfomo(
    lr: float, every: int = 5, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    order: Order = "shuffled", momentum: float | None = None, weight_decay: float | None = None,
    l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """FedFomo: every silo mixes all silos' models by how much each lowers the loss on validation rows of its own.

    Zhang, Sapra, Fidler, Yeung, Alvarez: Personalized federated learning with first order model optimization (2021).
    One row of `every` is kept for validation. Every silo receives the models of all others as they are, n times the
    bytes of FedAvg in every round, and tells openly how much it listened to whom.

    >>> import confrere as cf
    >>> cf.fedfomo(lr=0.1).static["every"]
    5
    """
    check_counts(every=every)
    if every == 1:
        raise ValueError("every must be 2 or more: with 1 all rows would be kept for validation")
    static = {"every": every, "batch": batch, "epochs": epochs, "steps": steps, "order": order}
    return recipe_of(
        _fedfomo, "fedfomo", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )


def _fedfomo(loss: Loss, lr, every: int, **how) -> Algorithm:
    return federate(clients.judging(clients.sgd(loss, lr, **how), loss, every), mixers.exchange())
