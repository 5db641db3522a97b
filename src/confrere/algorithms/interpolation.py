"""Between the common and the own: mixing models (APFL, model interpolation) or losses (data interpolation)."""

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.algorithms.common import Shares, averaging, recipe_of, shares
from confrere.checks import check_share, check_switches
from confrere.clients.batches import Order, plan_for
from confrere.core import Algorithm, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe


def apfl(
    lr: float, alpha: float = 0.5, adaptive: bool = True, batch: int | None = 32, epochs: int | None = None,
    steps: int | None = None, weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Adaptive personalised federated learning: a silo's model is a mixture of the common one and one of its own.

    Deng, Kamani, Mahdavi: Adaptive personalized federated learning (2020), Algorithm 1. `alpha` is the share of the own
    model: 0 is FedAvg, 1 training alone. With `adaptive` it is where every silo starts, and is learnt with the models,
    in plain steps: momentum and weight decay are of the models alone.

    >>> import confrere as cf
    >>> cf.apfl(lr=0.1, alpha=0.25, adaptive=False).hyper
    {'lr': 0.1, 'alpha': 0.25}
    """
    check_share(alpha=alpha)
    check_switches(adaptive=adaptive)
    static = {
        "adaptive": adaptive, "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights,
    }  # fmt: skip
    return recipe_of(
        _apfl, "apfl", static, lr=lr, alpha=alpha, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )


def _apfl(
    loss: Loss, lr, alpha, adaptive: bool, weights: Shares, batch, epochs, steps, order: Order, **how
) -> Algorithm:
    client = clients.apfl(loss, lr, alpha, plan_for(order, batch, steps, epochs), adaptive, **how)
    return federate(client, averaging(weights))


def model_interpolation(
    lr: float, own_share: float | None = None, batch: int | None = 32, epochs: int | None = None,
    steps: int | None = None, weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Model interpolation: a silo's model lies between FedAvg's and one that it trained alone.

    Mansour, Mohri, Ro, Suresh: Three approaches for personalization with applications to federated learning (2020).
    `own_share` is its lambda: 0 is FedAvg, 1 training alone. Without it every silo takes the best of 0, 0.1, ..., 1 on
    every fifth row of its own, which then train nothing; a silo of fewer than five rows takes FedAvg's.

    >>> import confrere as cf
    >>> cf.model_interpolation(lr=0.1, own_share=0.3).hyper
    {'lr': 0.1, 'own_share': 0.3}
    """
    if own_share is not None:
        check_share(own_share=own_share)
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(
        _model_interpolation, "model_interpolation", static,
        lr=lr, own_share=own_share, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior,
    )  # fmt: skip


def _model_interpolation(
    loss: Loss, lr, weights: Shares, batch, epochs, steps, order: Order, own_share=None, **how
) -> Algorithm:
    common = clients.sgd(loss, lr, batch, epochs, steps, order, **how)
    client = clients.interpolated(common, loss, lr, plan_for(order, batch, steps, epochs), own_share, **how)
    return federate(client, averaging(weights))


def data_interpolation(
    user: int | str, lr: float, own_share: float = 0.5, batch: int | None = None, epochs: int | None = None,
    steps: int | None = None, weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Data interpolation: a model for one user that minimises own_share f_user + (1 - own_share) sum_j p_j f_j.

    Mansour, Mohri, Ro, Suresh: Three approaches for personalization with applications to federated learning (2020).
    `own_share` is its lambda: 0 is FedAvg for all, 1 training alone. No row leaves its silo: gradients are mixed in
    place of rows. By default one full gradient step a round, whose fixed point is the minimiser; with `batch`, a pass
    over shuffled rows, or `epochs` or `steps`, and then only nearly. A round without the user changes nothing.

    >>> import confrere as cf
    >>> cf.data_interpolation(user=0, lr=0.1, own_share=0.3).hyper
    {'user': 0, 'lr': 0.1, 'own_share': 0.3}
    """
    check_share(own_share=own_share)
    if batch is None and epochs is None and steps is None:
        steps = 1
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(
        _data_interpolation, "data_interpolation", static,
        user=user, lr=lr, own_share=own_share, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior,
    )  # fmt: skip


def _data_interpolation(loss: Loss, user, lr, own_share, weights: Shares, **how) -> Algorithm:
    between = weighting.interpolated(user, own_share, shares(weights))
    return federate(clients.sgd(loss, lr, **how), mixers.server(weighted(between)))
