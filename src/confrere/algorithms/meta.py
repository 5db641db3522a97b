"""Meta-learning: a common model that is good after a step on one's own rows."""

from confrere import clients
from confrere.algorithms.common import Shares, averaging, recipe_of
from confrere.checks import check_counts, check_switches
from confrere.clients.batches import Order, plan_for
from confrere.clients.meta import in_pairs
from confrere.core import Algorithm, Loss, federate
from confrere.prior import Prior
from confrere.recipe import Recipe


def per_fedavg(
    lr: float, inner_lr: float = 0.1, inner_steps: int = 1, first_order: bool = False, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Per-FedAvg, personalised MAML: the common model is trained to be good after a step on each silo's own rows.

    Fallah, Mokhtari, Ozdaglar: Personalized federated learning with theoretical guarantees: a model-agnostic
    meta-learning approach (2020), Algorithm 1. `lr` is its beta, `inner_lr` its alpha. The personal model takes the
    inner step, or `inner_steps` of them, on all own rows. `first_order=True` leaves out second derivatives;
    inner_lr = 0 is FedAvg. Momentum and weight decay are of the outer steps.

    >>> import confrere as cf
    >>> cf.per_fedavg(lr=0.1, inner_lr=0.05).hyper
    {'lr': 0.1, 'inner_lr': 0.05}
    """
    check_counts(inner_steps=inner_steps)
    check_switches(first_order=first_order)
    static = {
        "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights,
        "inner_steps": inner_steps, "first_order": first_order,
    }  # fmt: skip
    return recipe_of(
        _per_fedavg, "per_fedavg", static,
        lr=lr, inner_lr=inner_lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior,
    )  # fmt: skip


def _per_fedavg(
    loss: Loss, lr, inner_lr, inner_steps: int, first_order: bool, weights: Shares, batch, epochs, steps,
    order: Order, **how,
) -> Algorithm:  # fmt: skip
    plan = plan_for(order, batch, steps, epochs)
    if batch is not None and order == "shuffled":
        plan = in_pairs(plan)
    return federate(clients.meta(loss, lr, inner_lr, plan, inner_steps, first_order, **how), averaging(weights))
