"""Adaptive optimizers on the server, to whom the silos' local training is a pseudo-gradient."""

from collections.abc import Mapping
from typing import Any, Literal

import optax

from confrere import clients, mixers
from confrere.algorithms.common import Shares, recipe_of, shares
from confrere.checks import check_numbers, concrete
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe

Server = Literal["adam", "yogi", "adagrad", "sgd"]
MOMENTS = {"server_lr": 0.1, "b1": 0.9, "b2": 0.99, "eps": 1e-3}
NUMBERS: Mapping[str, Mapping[str, float | None]] = {  # what each server has, and what it is by default
    "adam": MOMENTS,
    "yogi": MOMENTS,
    "adagrad": {"server_lr": 0.1, "eps": 1e-3},
    "sgd": {"server_lr": 1.0, "b1": None},
}


def fedopt(
    lr: float, server: Server = "adam", server_lr: float | None = None, b1: float | None = None,
    b2: float | None = None, eps: float | None = None, batch: int | None = 32, epochs: int | None = None,
    steps: int | None = None, weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Adaptive federated optimisation: FedAvg whose server takes the mean of x - y_i for a gradient.

    Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar, McMahan: Adaptive federated optimization (2021), Algorithm 2.
    `server` is "adam" (FedAdam), "yogi" (FedYogi), "adagrad" (FedAdagrad) or "sgd": by default FedAvg, and with `b1` as
    momentum FedAvgM (Hsu, Qi, Brown 2019). By default server_lr = 0.1, b1 = 0.9, b2 = 0.99, and eps, its tau, 1e-3.

    >>> import confrere as cf
    >>> cf.fedopt(lr=0.1, server="adagrad").hyper
    {'lr': 0.1, 'server_lr': 0.1, 'eps': 0.001}
    """
    numbers = numbers_of(server, {"server_lr": server_lr, "b1": b1, "b2": b2, "eps": eps})
    static = {
        "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights, "server": server,
    }  # fmt: skip
    return recipe_of(
        _fedopt, "fedopt", static, lr=lr, **numbers, momentum=momentum, weight_decay=weight_decay, l2=l2, prior=prior
    )  # fmt: skip


def numbers_of(server: str, given: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a server: those given, else the default ones; what it does not have is refused."""
    if server not in NUMBERS:
        raise ValueError(f"server must be one of {', '.join(NUMBERS)}, not {server!r}")
    known = NUMBERS[server]
    for name, value in given.items():
        if value is not None and name not in known:
            raise ValueError(f"the server {server!r} has no {name}; it has {', '.join(known)}")
    filled = {name: default if given[name] is None else given[name] for name, default in known.items()}
    numbers = {name: value for name, value in filled.items() if value is not None}
    check_numbers(**numbers)
    for name in ("b1", "b2"):
        if name in numbers and (concrete(numbers[name]) or 0) >= 1:
            raise ValueError(f"{name} must be below 1, not {numbers[name]!r}")
    if "eps" in numbers and concrete(numbers["eps"]) == 0:
        raise ValueError("eps must be above 0: without any, a gradient of zero is divided by zero")
    return numbers


def _sgd(server_lr, b1=None) -> optax.GradientTransformation:
    return optax.sgd(server_lr, momentum=b1)


def _adagrad(server_lr, eps) -> optax.GradientTransformation:
    return optax.adagrad(server_lr, initial_accumulator_value=0.0, eps=eps**2)  # it adds eps inside the root


OPTIMIZERS = {"adam": optax.adam, "yogi": optax.yogi, "adagrad": _adagrad, "sgd": _sgd}


def _fedopt(
    loss: Loss, lr, server_lr, server: Server, weights: Shares, batch, epochs, steps, order: Order, momentum=None,
    weight_decay=None, l2=None, **moments,
) -> Algorithm:  # fmt: skip
    client = clients.sgd(loss, lr, batch, epochs, steps, order, momentum, weight_decay, l2)
    part = mixers.step(OPTIMIZERS[server](server_lr, **moments))
    return federate(client, mixers.server(weighted(shares(weights)), x=part))
