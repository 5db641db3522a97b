"""Multi-task learning: a model for every silo, all of them coupled."""

from confrere import clients, mixers
from confrere.algorithms.common import Shares, recipe_of, shares
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe


def multi_task(
    lr: float, pull: float = 1.0, batch: int | None = None, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "uniform", order: Order = "shuffled", l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Multi-task learning: every silo has a model of its own, and pull/2 |w_i - mean|^2 draws all of them together.

    Evgeniou, Pontil: Regularized multi-task learning (2004); Smith, Chiang, Sanjabi, Talwalkar: Federated multi-task
    learning (2017), mean-regularised form: a coupling on the complete graph. pull = 0 is training alone, a large pull
    FedAvg. By default one full gradient step a round, which ends at the optimum of the coupled losses.

    >>> import confrere as cf
    >>> cf.multi_task(lr=0.1, pull=0.5).hyper
    {'lr': 0.1, 'pull': 0.5}
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(_multi_task, "multi_task", static, lr=lr, pull=pull, l2=l2, prior=prior)


def _multi_task(loss: Loss, lr, pull, weights: Shares, **how) -> Algorithm:
    mixer = mixers.server(weighted(shares(weights)), x=mixers.table())
    return federate(clients.coupled(loss, lr, pull, **how), mixer)
