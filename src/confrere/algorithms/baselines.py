"""What everybody is compared with: training alone, federated SGD and federated averaging."""

from confrere import clients, mixers
from confrere.algorithms.common import Shares, averaging, recipe_of, shares, stepping
from confrere.checks import check_numbers, concrete
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, federate
from confrere.models import Model
from confrere.prior import Prior
from confrere.recipe import Recipe


def local(
    lr: float, batch: int | None = None, epochs: int | None = None, steps: int | None = None,
    order: Order = "shuffled", momentum: float | None = None, weight_decay: float | None = None,
    l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Every silo trains alone: the baseline that collaboration must beat. Nothing is sent.

    By default one full gradient step a round; with `batch`, one pass over the shuffled rows (or `steps` steps).

    >>> import confrere as cf
    >>> cf.local(lr=0.1).hyper
    {'lr': 0.1}
    """
    if batch is None and epochs is None and steps is None:
        steps = 1
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order}
    return recipe_of(_local, "local", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior)


def _local(loss: Loss, lr, **how) -> Algorithm:
    return federate(clients.sgd(loss, lr, **how), mixers.alone())


def fedsgd(
    lr: float, batch: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Federated SGD: one gradient per silo and round, averaged, one step of the server.

    McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
    decentralized data (2017). `weights="uniform"` is the average that the Weight Erosion paper calls FedAvg.

    >>> import confrere as cf
    >>> cf.fedsgd(lr=0.1, weights="uniform").static["weights"]
    'uniform'
    """
    static = {"batch": batch, "order": order, "weights": weights}
    return recipe_of(_fedsgd, "fedsgd", static, lr=lr, l2=l2, prior=prior)


def _fedsgd(loss: Loss, lr, weights: Shares, **how) -> Algorithm:
    return federate(clients.gradient(loss, **how), stepping(shares(weights), lr))


def fedavg(
    lr: float, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Federated averaging: local training for one pass (or `epochs`, or `steps`), then the mean of the models.

    McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
    decentralized data (2017), Algorithm 1.

    >>> import confrere as cf
    >>> cf.fedavg(lr=0.1, epochs=1, batch=32).name
    'fedavg'
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(_fedavg, "fedavg", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior)


def _fedavg(loss: Loss, lr, weights: Shares, **how) -> Algorithm:
    return federate(clients.sgd(loss, lr, **how), averaging(weights))


def ridge_local(ridge: float = 1.0, prior: Prior = None) -> Recipe:
    """Every silo goes straight to the optimum of its own losses with a ridge: training alone at its best.

    One round suffices, nothing is sent, and there is no learning rate. For linear and logistic models. It minimises the
    sum of losses + ridge/2 |w|^2, intercepts held a tenth as firmly; features should be standardised.

    >>> import confrere as cf
    >>> cf.ridge_local().hyper
    {'ridge': 1.0}
    """
    check_numbers(ridge=ridge)
    if concrete(ridge) == 0:
        raise ValueError("ridge must be above 0: without any, separable rows have no optimum")
    return Recipe.of(_ridge_local, "ridge_local", {}, whole=True, ridge=ridge, prior=prior)._replace(rounds=1)


def _ridge_local(model: Model, ridge) -> Algorithm:
    return federate(clients.optimum(model, ridge), mixers.alone())
