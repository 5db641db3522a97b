"""Models coupled along the edges of a network: GTV minimisation by messages between neighbours.

A. Jung: Federated Learning: From Theory to Practice (2024), chapters 5 and 8; `clients.gtv` has the formulas. A silo
without rows takes no part; `networks.GTVMin` has nodes without labels. `networks.fedgd` and the others run the same
iterations on millions of nodes.
"""

from typing import TYPE_CHECKING, Any

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.algorithms.common import averaging, recipe_of
from confrere.checks import check_counts, check_network, check_numbers, check_switches, concrete, those_given
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, Mixer, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe

if TYPE_CHECKING:
    from confrere.networks import Network


def neighbours(network: Any) -> Mixer:
    """Every silo receives the weighted mean of its neighbours' models."""
    return mixers.peers(weighted(weighting.graph(network)))


def gtv_gd(network: "Network", lr: float, alpha: float = 1.0, l2: float | None = None, prior: Prior = None) -> Recipe:
    """FedGD: gradient steps on the sum of losses + alpha sum over edges of A_ij |w_i - w_j|^2 (Algorithm 5.1).

    >>> import confrere as cf
    >>> cf.gtv_gd(cf.networks.Network.from_edges([(0, 1)]), lr=0.1).hyper
    {'lr': 0.1, 'alpha': 1.0}
    """
    return gtv_recipe(
        _gtv_gd, "gtv_gd", network, {"batch": None, "order": "full"}, lr=lr, alpha=alpha, l2=l2, prior=prior
    )


def gtv_sgd(
    network: "Network",
    lr: float,
    alpha: float = 1.0,
    batch: int = 10,
    order: Order = "shuffled",
    l2: float | None = None,
    prior: Prior = None,
) -> Recipe:
    """FedSGD on a network: like `gtv_gd`, with the gradient of one batch of every silo (Algorithm 5.2).

    >>> import confrere as cf
    >>> cf.gtv_sgd(cf.networks.Network.from_edges([(0, 1)]), lr=0.1, batch=5).static["batch"]
    5
    """
    return gtv_recipe(
        _gtv_gd, "gtv_sgd", network, {"batch": batch, "order": order}, lr=lr, alpha=alpha, l2=l2, prior=prior
    )


def gtv_async(
    network: "Network", lr: float, alpha: float = 1.0, delay: int = 0, batch: int | None = None,
    order: Order = "shuffled", l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Asynchronous FedGD: the last models that neighbours sent stand in for those of the silent (Algorithm 8.1).

    Who is active is the host's to say (`simulate(..., active=...)`). With `delay`, messages come up to so many rounds
    late. A neighbour that was never heard does not count.

    >>> import confrere as cf
    >>> cf.gtv_async(cf.networks.Network.from_edges([(0, 1)]), lr=0.1, delay=2).static["delay"]
    2
    """
    check_counts(0, delay=delay)
    static = {"batch": batch, "order": order, "delay": delay}
    return gtv_recipe(_gtv_async, "gtv_async", network, static, lr=lr, alpha=alpha, l2=l2, prior=prior)


def gtv_relax(
    network: "Network",
    alpha: float = 1.0,
    steps: int = 10,
    book: bool = False,
    l2: float | None = None,
    prior: Prior = None,
) -> Recipe:
    """FedRelax: every silo goes to the minimum of its loss and its coupling, its neighbours held (Algorithm 5.4).

    `steps`: Newton steps of a silo in a round; for linear regression 1 is exact. For models of few parameters. With
    `book=True` the coupling is alpha/2, as (5.20) prints it: the iterations then end at the optimum of alpha/2.

    >>> import confrere as cf
    >>> cf.gtv_relax(cf.networks.Network.from_edges([(0, 1)]), alpha=2.0).hyper
    {'alpha': 2.0}
    """
    check_network(network)
    check_counts(steps=steps)
    check_switches(book=book)
    check_numbers(alpha=alpha, **those_given(l2=l2))
    static = {"network": network, "steps": steps, "book": book}
    return Recipe.of(_gtv_relax, "gtv_relax", static, alpha=alpha, l2=l2, prior=prior)


def fedavg_prox(eta: float, steps: int = 10, l2: float | None = None, prior: Prior = None) -> Recipe:
    """FedAvg with a proximal step: the plain mean of argmin_v f_i(v) + |v - x|^2/eta (Algorithm 5.3).

    As the proximal operator of (4.19) its step is eta/2. For a finite eta its fixed point is not the minimum of the
    mean loss; it tends to it as eta goes to 0, and to the mean of the local minimisers as eta grows.

    >>> import confrere as cf
    >>> cf.fedavg_prox(eta=0.1).hyper
    {'eta': 0.1}
    """
    check_counts(steps=steps)
    check_numbers(eta=eta, **those_given(l2=l2))
    if concrete(eta) == 0:
        raise ValueError("eta must be above 0: with 0 no model would ever move")
    return Recipe.of(_fedavg_prox, "fedavg_prox", {"steps": steps}, eta=eta, l2=l2, prior=prior)


def gtv_recipe(maker, name: str, network: Any, static: dict[str, Any], **hyper: Any) -> Recipe:
    """A recipe on a network, its words and numbers checked."""
    check_network(network)
    made = recipe_of(maker, name, static, **hyper)
    return Recipe.of(maker, name, {**static, "network": network}, **made.hyper)


def _gtv_gd(loss: Loss, lr, alpha, network: Any, **how) -> Algorithm:
    return federate(clients.gtv_gradient(loss, lr, alpha, **how), neighbours(network))


def _gtv_async(loss: Loss, lr, alpha, network: Any, delay: int, **how) -> Algorithm:
    near = neighbours(network)
    late = mixers.delayed(near, delay) if delay else mixers.mailbox(near)
    return federate(clients.gtv_gradient(loss, lr, alpha, **how), late)


def _gtv_relax(loss: Loss, alpha, network: Any, steps: int, book: bool, **how) -> Algorithm:
    coupling = alpha / 2 if book else alpha
    return federate(clients.gtv_prox(loss, coupling, steps, **how), neighbours(network))


def _fedavg_prox(loss: Loss, eta, steps: int, **how) -> Algorithm:
    return federate(clients.prox_average(loss, eta, steps, **how), averaging("uniform"))
