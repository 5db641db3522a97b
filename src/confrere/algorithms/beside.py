"""A common model, and beside it one of one's own: fine-tuned from it, or pulled towards it."""

from confrere import clients
from confrere.algorithms.common import Shares, averaging, recipe_of
from confrere.checks import check_counts
from confrere.clients.batches import Order, plan_for
from confrere.core import Algorithm, Loss, federate
from confrere.prior import Prior
from confrere.recipe import Recipe


def fine_tuned(
    lr: float, tune_lr: float | None = None, tune_steps: int = 10, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Local fine-tuning: FedAvg, and each silo's own model is the global one after some steps on its own rows.

    Kairouz et al.: Advances and open problems in federated learning (2019), section 3.3.

    >>> import confrere as cf
    >>> cf.fine_tuned(lr=0.1, tune_lr=0.01).hyper
    {'lr': 0.1, 'tune_lr': 0.01}
    """
    check_counts(tune_steps=tune_steps)
    static = {
        "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights,
        "tune_steps": tune_steps,
    }  # fmt: skip
    tune_lr = lr if tune_lr is None else tune_lr
    return recipe_of(
        _fine_tuned, "fine_tuned", static,
        lr=lr, tune_lr=tune_lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior,
    )  # fmt: skip


def _fine_tuned(loss: Loss, lr, tune_lr, tune_steps: int, weights: Shares, l2=None, **how) -> Algorithm:
    client = clients.fine_tuned(clients.sgd(loss, lr, l2=l2, **how), loss, tune_lr, tune_steps, l2)
    return federate(client, averaging(weights))


def ditto(
    lr: float, pull: float = 1.0, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Ditto: FedAvg, and beside it a personal model for every silo that is pulled towards the common one.

    Li, Hu, Beirami, Smith: Ditto: fair and robust federated learning through personalization (2021), Algorithm 1;
    `pull` is its lambda: 0 is training alone.

    >>> import confrere as cf
    >>> cf.ditto(lr=0.1, pull=3).hyper
    {'lr': 0.1, 'pull': 3}
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(
        _ditto, "ditto", static, lr=lr, pull=pull, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )


def _ditto(loss: Loss, lr, pull, weights: Shares, batch, epochs, steps, order: Order, **how) -> Algorithm:
    common = clients.sgd(loss, lr, batch, epochs, steps, order, **how)
    client = clients.ditto(common, loss, lr, pull, plan_for(order, batch, steps, epochs), **how)
    return federate(client, averaging(weights))
