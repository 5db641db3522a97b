"""Training with a pull: the silos' models towards the common one, or the common one towards theirs."""

from confrere import clients
from confrere.algorithms.common import Shares, averaging, recipe_of, shares, stepping
from confrere.checks import check_counts
from confrere.clients.batches import Order, plan_for
from confrere.core import Algorithm, Loss, federate
from confrere.prior import Prior
from confrere.recipe import Recipe


def fedprox(
    lr: float, mu: float = 0.1, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """FedProx: FedAvg whose local training is held back by mu/2 |y - x|^2, the distance from the common model.

    Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith: Federated optimization in heterogeneous networks (2020), Algorithm 2.
    mu = 0 is FedAvg; keep lr mu below 1.

    >>> import confrere as cf
    >>> cf.fedprox(lr=0.1, mu=0.5).hyper
    {'lr': 0.1, 'mu': 0.5}
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(
        _fedprox, "fedprox", static, lr=lr, mu=mu, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )


def _fedprox(loss: Loss, lr, mu, weights: Shares, batch, epochs, steps, order: Order, **how) -> Algorithm:
    return federate(clients.proximal(loss, lr, mu, plan_for(order, batch, steps, epochs), **how), averaging(weights))


def pfedme(
    lr: float, inner_lr: float | None = None, pull: float = 15.0, beta: float = 1.0, inner_steps: int = 5,
    batch: int | None = 32, epochs: int | None = None, steps: int | None = None, weights: Shares = "size",
    order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """pFedMe: a personal model for every silo near a common one, which descends the Moreau envelopes of the losses.

    Dinh, Tran, Nguyen: Personalized federated learning with Moreau envelopes (2020), Algorithm 1. `lr` is its eta,
    `pull` its lambda, `inner_lr` (by default `lr`) and `inner_steps` those of the inner problem, and `beta` how far the
    server goes towards the mean of the local models. Keep inner_lr (pull + the curvature of the loss) below 2. Momentum
    and weight decay are of the common model's steps.

    >>> import confrere as cf
    >>> cf.pfedme(lr=0.05, pull=10).hyper
    {'lr': 0.05, 'inner_lr': 0.05, 'pull': 10, 'beta': 1.0}
    """
    check_counts(inner_steps=inner_steps)
    static = {
        "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights,
        "inner_steps": inner_steps,
    }  # fmt: skip
    inner_lr = lr if inner_lr is None else inner_lr
    return recipe_of(
        _pfedme, "pfedme", static,
        lr=lr, inner_lr=inner_lr, pull=pull, beta=beta, momentum=momentum, weight_decay=weight_decay, l2=l2,
        prior=prior,
    )  # fmt: skip


def _pfedme(
    loss: Loss, lr, inner_lr, pull, beta, inner_steps: int, weights: Shares, batch, epochs, steps, order: Order, **how
) -> Algorithm:
    client = clients.moreau(loss, lr, inner_lr, pull, inner_steps, plan_for(order, batch, steps, epochs), **how)
    return federate(client, stepping(shares(weights), beta))
