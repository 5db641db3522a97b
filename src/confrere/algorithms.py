"""The named algorithms: compositions of parts, each with its citation.

Every function returns a `Recipe`: the model comes from the host, and the numbers (learning rates, penalties, the user)
stay open, so that another value does not recompile and a grid is a `vmap`.

    local          = federate(sgd,      alone())
    fedsgd         = federate(gradient, server(weighted(by_size()), x=step(sgd(lr))))
    fedavg         = federate(sgd,      server(weighted(by_size())))
    fine_tuned     = federate(fine_tuned(sgd), server(weighted(by_size())))
    ditto          = federate(ditto(sgd),      server(weighted(by_size())))
    weight_erosion = federate(gradient | sgd, server(weighted(erosion(user, p_d, p_s)), x=step(sgd(lr))))
    ridge_local    = federate(optimum,   alone())
    evidence       = federate(summaries, bulletin(user))
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import optax

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.borrowing.candidates import CANDIDATES, LOCAL
from confrere.borrowing.summary import MIN_CELL, SHARES, Share
from confrere.checks import check_counts, check_numbers, concrete
from confrere.clients.batches import Order, plan_for
from confrere.core import Algorithm, Loss, Mixer, Recipe, Weights, federate, weighted
from confrere.models import Model

Shares = Literal["size", "uniform"]
EVIDENCE_ROUNDS = 6  # one message around the own optimum, five around the pooled one


def local(
    lr: float, batch: int | None = None, epochs: int | None = None, steps: int | None = None,
    order: Order = "shuffled", momentum: float | None = None, weight_decay: float | None = None,
    l2: float | None = None,
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
    return _recipe(_local, "local", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2)


def _local(loss: Loss, lr, **how) -> Algorithm:
    return federate(clients.sgd(loss, lr, **how), mixers.alone())


def fedsgd(
    lr: float, batch: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    l2: float | None = None,
) -> Recipe:  # fmt: skip
    """Federated SGD: one gradient per silo and round, averaged, one step of the server.

    McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
    decentralized data (2017). `weights="uniform"` is the average that the Weight Erosion paper calls FedAvg.

    >>> import confrere as cf
    >>> cf.fedsgd(lr=0.1, weights="uniform").static["weights"]
    'uniform'
    """
    static = {"batch": batch, "order": order, "weights": weights}
    return _recipe(_fedsgd, "fedsgd", static, lr=lr, l2=l2)


def _fedsgd(loss: Loss, lr, weights: Shares, **how) -> Algorithm:
    return federate(clients.gradient(loss, **how), _stepping(_shares(weights), lr))


def fedavg(
    lr: float, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "size", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None,
) -> Recipe:  # fmt: skip
    """Federated averaging: local training for one pass (or `epochs`, or `steps`), then the mean of the models.

    McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-efficient learning of deep networks from
    decentralized data (2017), Algorithm 1.

    >>> import confrere as cf
    >>> cf.fedavg(lr=0.1, epochs=1, batch=32).name
    'fedavg'
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return _recipe(_fedavg, "fedavg", static, lr=lr, momentum=momentum, weight_decay=weight_decay, l2=l2)


def _fedavg(loss: Loss, lr, weights: Shares, **how) -> Algorithm:
    return federate(clients.sgd(loss, lr, **how), mixers.server(weighted(_shares(weights))))


def fine_tuned(
    lr: float, tune_lr: float | None = None, tune_steps: int = 10, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, weights: Shares = "size", order: Order = "shuffled",
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
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
    return _recipe(
        _fine_tuned, "fine_tuned", static,
        lr=lr, tune_lr=tune_lr, momentum=momentum, weight_decay=weight_decay, l2=l2,
    )  # fmt: skip


def _fine_tuned(loss: Loss, lr, tune_lr, tune_steps: int, weights: Shares, l2=None, **how) -> Algorithm:
    client = clients.fine_tuned(clients.sgd(loss, lr, l2=l2, **how), loss, tune_lr, tune_steps, l2)
    return federate(client, mixers.server(weighted(_shares(weights))))


def ditto(
    lr: float, pull: float = 1.0, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    weights: Shares = "size", order: Order = "shuffled", l2: float | None = None,
) -> Recipe:  # fmt: skip
    """Ditto: FedAvg, and beside it a personal model for every silo that is pulled towards the common one.

    Li, Hu, Beirami, Smith: Ditto: fair and robust federated learning through personalization (2021), Algorithm 1;
    `pull` is its lambda: 0 is training alone.

    >>> import confrere as cf
    >>> cf.ditto(lr=0.1, pull=3).hyper
    {'lr': 0.1, 'pull': 3}
    """
    static = {"batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights}
    return _recipe(_ditto, "ditto", static, lr=lr, pull=pull, l2=l2)


def _ditto(loss: Loss, lr, pull, weights: Shares, batch, epochs, steps, order: Order, l2=None) -> Algorithm:
    common = clients.sgd(loss, lr, batch, epochs, steps, order, l2=l2)
    client = clients.ditto(common, loss, lr, pull, plan_for(order, batch, steps, epochs), l2)
    return federate(client, mixers.server(weighted(_shares(weights))))


def weight_erosion(
    user: int | str, lr: float, p_d: float = 0.01, p_s: float = 0.2, batch: int | None = None,
    form: Literal["gradient", "update"] = "gradient", epochs: int | None = None, steps: int | None = None,
    order: Order = "shuffled", passes: Literal["paper", "code"] = "paper",
    newcomer: Literal["mean", "median"] = "mean", size_prior: float | None = None,
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
) -> Recipe:  # fmt: skip
    """Weight Erosion: a model for one user, in which silos count less as their gradients differ from the user's.

    Grimberg, Hartley, Jaggi, Karimireddy: Weight Erosion: an update aggregation scheme for personalized
    collaborative machine learning (2020), Algorithm 1. `form="update"` is its footnote 2: silos train locally for
    `epochs` passes or `steps` steps and their updates take the place of gradients. p_d is the distance penalty (0: the
    uniform FedSGD; large: the user alone), p_s the size penalty; see `confrere.weights.erosion` for the rest.

    >>> import confrere as cf
    >>> cf.weight_erosion(user=0, lr=0.1, p_d=0.01, p_s=0.2).hyper
    {'user': 0, 'lr': 0.1, 'p_d': 0.01, 'p_s': 0.2}
    """
    if form not in ("gradient", "update"):
        raise ValueError(f"form must be 'gradient' or 'update', not {form!r}")
    training = {"epochs": epochs, "steps": steps, "momentum": momentum, "weight_decay": weight_decay}
    given = sorted(k for k, v in training.items() if v is not None)
    if form == "gradient" and given:
        raise ValueError(f"{', '.join(given)}: only with form='update' do silos train locally")
    weighting.erosion(0, p_d, p_s, batch, passes, newcomer)  # refuse what is wrong here rather than later
    static = {
        "batch": batch, "form": form, "epochs": epochs, "steps": steps, "order": order, "passes": passes,
        "newcomer": newcomer,
    }  # fmt: skip
    return _recipe(
        _weight_erosion, "weight_erosion", static,
        user=user, lr=lr, p_d=p_d, p_s=p_s, size_prior=size_prior, momentum=momentum,
        weight_decay=weight_decay, l2=l2,
    )  # fmt: skip


def _weight_erosion(
    loss: Loss, user, lr, p_d, p_s, batch, form, passes, newcomer, order, epochs, steps, size_prior=None, l2=None,
    **how,
) -> Algorithm:  # fmt: skip
    whole = order == "full" or batch is None or (form == "update" and steps is None)  # messages of whole passes
    times = steps or epochs or 1
    erosion = weighting.erosion(user, p_d, p_s, None if whole else batch, passes, newcomer, size_prior, times)
    if form == "gradient":
        return federate(clients.gradient(loss, batch, order, l2), _stepping(erosion, lr))
    client = clients.sgd(loss, lr, batch, epochs, steps, order, l2=l2, **how)
    return federate(client, mixers.server(weighted(erosion)))


def ridge_local(ridge: float = 1.0) -> Recipe:
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
    return Recipe.of(_ridge_local, "ridge_local", {}, whole=True, ridge=ridge)._replace(rounds=1)


def _ridge_local(model: Model, ridge) -> Algorithm:
    return federate(clients.optimum(model, ridge), mixers.alone())


def evidence(
    user: int | str | None = None, share: Share = "full", min_cell: int = MIN_CELL,
    candidates: Sequence[str] = CANDIDATES,
) -> Recipe:  # fmt: skip
    """Evidence-weighted borrowing: the user's own rows judge how related every silo is, and borrow accordingly.

    Each silo sends one message (its losses to second order around its own optimum) and, to be pooled, a few more around
    a common point: 6 rounds are enough. With a user, that silo sends nothing at all; without one, everybody ends with
    a model of its own. For linear and logistic models, on standardised features. See `confrere.borrowing` for the
    formulas, for what `share` ("full", "diagonal", "parameters", "sum") costs and reveals, and for `min_cell`.

    >>> import confrere as cf
    >>> cf.evidence(user=0).hyper
    {'user': 0}
    """
    if share not in SHARES:
        raise ValueError(f"share must be one of {', '.join(SHARES)}, not {share!r}")
    if share == "sum" and user is None:
        raise ValueError("share='sum' needs a user: what is summed cannot be taken apart for everybody")
    unknown = [name for name in candidates if name not in (*CANDIDATES, *LOCAL)]
    if unknown or not candidates or isinstance(candidates, str):
        raise ValueError(f"candidates must be some of {', '.join((*CANDIDATES, *LOCAL))}, not {candidates!r}")
    check_counts(min_cell=min_cell)
    static = {"share": share, "min_cell": min_cell, "candidates": tuple(candidates)}
    return Recipe.of(_evidence, "evidence", static, whole=True, user=user)._replace(rounds=EVIDENCE_ROUNDS)


def _evidence(model: Model, share: Share, min_cell: int, candidates: tuple[str, ...], user=None) -> Algorithm:
    return federate(clients.summaries(model, share, min_cell, candidates), mixers.bulletin(user, share))


def _shares(weights: Shares) -> Weights:
    return weighting.uniform() if weights == "uniform" else weighting.by_size()


def _stepping(weights: Weights, lr) -> Mixer:
    """A server that steps by the weighted mean gradient."""
    return mixers.server(weighted(weights), x=mixers.step(optax.sgd(lr)))


def _recipe(maker, name: str, static: dict[str, Any], **hyper: Any) -> Recipe:
    """Check a user's words and numbers at the door, and make the recipe."""
    plan_for(static["order"], static["batch"], static.get("steps"), static.get("epochs"))
    if static.get("weights", "size") not in ("size", "uniform"):
        raise ValueError(f"weights must be 'size' or 'uniform', not {static['weights']!r}")
    optional = ("momentum", "weight_decay", "l2", "size_prior")
    needed = {k: v for k, v in hyper.items() if k != "user" and not (k in optional and v is None)}
    check_numbers(**{k: v for k, v in needed.items() if k != "size_prior"})
    if "size_prior" in needed:
        check_numbers(-math.inf, size_prior=needed["size_prior"])
    if "user" in hyper and hyper["user"] is None:
        raise ValueError("user must be the name or the place of a silo")
    return Recipe.of(maker, name, static, **hyper)


__all__ = ["ditto", "evidence", "fedavg", "fedsgd", "fine_tuned", "local", "ridge_local", "weight_erosion"]
