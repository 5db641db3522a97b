"""A model for one user, who listens to others as long as they resemble it."""

from typing import Literal

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.algorithms.common import recipe_of, stepping
from confrere.clients.batches import Order
from confrere.core import Algorithm, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe


def weight_erosion(
    user: int | str, lr: float, p_d: float = 0.01, p_s: float = 0.2, batch: int | None = None,
    form: Literal["gradient", "update"] = "gradient", epochs: int | None = None, steps: int | None = None,
    order: Order = "shuffled", passes: Literal["paper", "code"] = "paper",
    newcomer: Literal["mean", "median"] = "mean", size_prior: float | None = None,
    momentum: float | None = None, weight_decay: float | None = None, l2: float | None = None,
    prior: Prior = None,
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
    return recipe_of(
        _weight_erosion, "weight_erosion", static,
        user=user, lr=lr, p_d=p_d, p_s=p_s, size_prior=size_prior, momentum=momentum,
        weight_decay=weight_decay, l2=l2, prior=prior,
    )  # fmt: skip


def _weight_erosion(
    loss: Loss, user, lr, p_d, p_s, batch, form, passes, newcomer, order, epochs, steps, size_prior=None, l2=None,
    **how,
) -> Algorithm:  # fmt: skip
    rows, times = rows_in_a_message(batch, form, order, epochs, steps)
    erosion = weighting.erosion(user, p_d, p_s, rows, passes, newcomer, size_prior, times)
    if form == "gradient":
        return federate(clients.gradient(loss, batch, order, l2), stepping(erosion, lr))
    client = clients.sgd(loss, lr, batch, epochs, steps, order, l2=l2, **how)
    return federate(client, mixers.server(weighted(erosion)))


def rows_in_a_message(
    batch: int | None, form: str, order: str, epochs: int | None, steps: int | None
) -> tuple[int | None, int]:
    """Of how many batches a message of Weight Erosion is made, and of how many rows each: None for whole passes."""
    whole = order == "full" or batch is None or (form == "update" and steps is None)
    return None if whole else batch, steps or epochs or 1
