"""Some layers of the model stay in the silo, the others are averaged: FedPer, FedRep and FedBN."""

from collections.abc import Sequence

from confrere import clients, layers
from confrere.algorithms.common import Shares, averaging, recipe_of
from confrere.checks import check_counts
from confrere.clients.batches import Order, plan_for
from confrere.core import Algorithm, Loss, federate
from confrere.prior import Prior
from confrere.recipe import Recipe


def fedper(
    lr: float, keep: str | Sequence[str] = "head", batch: int | None = 32, epochs: int | None = None,
    steps: int | None = None, weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """FedPer: FedAvg on all layers but those that every silo keeps, by default the last one.

    Arivazhagan, Aggarwal, Singh, Choudhary: Federated learning with personalization layers (2019), Algorithms 1 and 2.
    `keep` is "head" (the last layer) or the names of layers, such as ("layer1",). The head of a linear model is all of
    it, which is refused; `keep=("b",)` gives every silo an intercept of its own and slopes that all share.

    >>> import confrere as cf
    >>> cf.fedper(lr=0.1).static["keep"], cf.fedper(lr=0.1, keep=["b"]).static["keep"]
    ('head', ('b',))
    """
    static = {
        "keep": layers.checked_names(keep), "batch": batch, "epochs": epochs, "steps": steps, "order": order,
        "weights": weights,
    }  # fmt: skip
    return recipe_of(_fedper, "fedper", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior)


def _fedper(loss: Loss, lr, keep: layers.Names, weights: Shares, **how) -> Algorithm:
    return federate(clients.keep(clients.sgd(loss, lr, **how), layers.layers(keep)), averaging(weights))


def fedrep(
    lr: float, keep: str | Sequence[str] = "head", head_epochs: int = 1, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """FedRep: every silo first trains its own head on the common body, then the body below that head, which is sent.

    Collins, Hassani, Mokhtari, Shakkottai: Exploiting shared representations for personalized federated learning
    (2021), Algorithm 1. `head_epochs` passes over the rows (without batches: steps) for the head, then `epochs` or
    `steps` for the body; the paper's experiments train the head for longer than the body. `keep` is that of `fedper`.

    >>> import confrere as cf
    >>> cf.fedrep(lr=0.1, head_epochs=5).static["head_epochs"]
    5
    """
    check_counts(head_epochs=head_epochs)
    static = {
        "keep": layers.checked_names(keep), "head_epochs": head_epochs, "batch": batch, "epochs": epochs,
        "steps": steps, "order": order, "weights": weights,
    }  # fmt: skip
    return recipe_of(_fedrep, "fedrep", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior)


def _fedrep(
    loss: Loss, lr, keep: layers.Names, head_epochs: int, weights: Shares, batch, epochs, steps, order: Order, **how
) -> Algorithm:
    head = layers.layers(keep)
    plans = plan_for(order, batch, None, head_epochs), plan_for(order, batch, steps, epochs)
    return federate(clients.keep(clients.alternating(loss, lr, head, *plans, **how), head), averaging(weights))


def fedbn(
    lr: float, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """FedBN: FedAvg on all layers but the normalisations, of which every silo keeps its own.

    Li, Jiang, Zhang, Kamp, Dou: FedBN: federated learning on non-IID features via local batch normalization (2021),
    Algorithm 1. Normalisations are the layers whose name begins with "norm"; a model without any is refused.

    >>> import confrere as cf
    >>> cf.fedbn(lr=0.1, epochs=1).name
    'fedbn'
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return recipe_of(_fedbn, "fedbn", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior)


def _fedbn(loss: Loss, lr, weights: Shares, **how) -> Algorithm:
    return federate(clients.keep(clients.sgd(loss, lr, **how), layers.norms()), averaging(weights))
