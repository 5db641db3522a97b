"""One model for all that is told whom it works for: the silo's context as features."""

import functools

from confrere import clients
from confrere.algorithms.common import Shares, averaging, recipe_of
from confrere.clients.batches import Order
from confrere.clients.context import Context
from confrere.core import Algorithm, Loss, federate
from confrere.prior import Prior
from confrere.recipe import Recipe


def featurised(
    lr: float, context: Context = "means", layer: str | None = None, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Featurisation: FedAvg on rows that also carry a description of their silo, made of the silo's own rows.

    Kairouz et al.: Advances and open problems in federated learning (2019), section 3.3. `context="means"` describes a
    silo by the mean of every feature, "moments" by mean and standard deviation of all numbers of its rows (for
    convolutions). The description stays in the silo; a silo that never trained has a model of its own all the same.
    For models whose first layer (by name, or `layer`) has weights `w` and a bias `b`.

    >>> import confrere as cf
    >>> cf.featurised(lr=0.1).static["context"]
    'means'
    """
    if context not in ("means", "moments"):
        raise ValueError(f"context must be 'means' or 'moments', not {context!r}")
    static = {
        "context": context, "layer": layer, "batch": batch, "epochs": epochs, "steps": steps, "order": order,
        "weights": weights,
    }  # fmt: skip
    return recipe_of(
        _featurised, "featurised", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )


def _featurised(loss: Loss, lr, context: Context, layer: str | None, weights: Shares, **how) -> Algorithm:
    client_of = functools.partial(clients.sgd, lr=lr, **how)
    return federate(clients.contextual(client_of, loss, context, layer), averaging(weights))
