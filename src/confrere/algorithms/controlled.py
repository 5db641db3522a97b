"""Control variates against the drift of silos: for a common model (SCAFFOLD), and for one user's (WAFFLE)."""

from typing import Literal, get_args

import optax

from confrere import clients, mixers
from confrere import weights as weighting
from confrere.algorithms.common import Shares, recipe_of, shares
from confrere.checks import check_counts, check_switches, check_word
from confrere.clients.batches import Order, plan_for
from confrere.clients.controlled import Option, Receives, Sends
from confrere.clients.sgd import local_optimizer
from confrere.core import Algorithm, Client, Loss, federate, weighted
from confrere.prior import Prior
from confrere.recipe import Recipe
from confrere.weights.omega import Schedule

Variate = Literal["reformed", "untempered", "literal"]
PARTS = {"reformed": mixers.tempered, "untempered": mixers.table, "literal": mixers.add}  # what a server does with c


def scaffold(
    lr: float, server_lr: float = 1.0, batch: int | None = 32, epochs: int | None = None, steps: int | None = None,
    option: Option = "II", weights: Shares = "uniform", order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None, bounded: bool = False,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """SCAFFOLD: federated averaging whose local steps are corrected by control variates.

    Karimireddy, Kale, Mohri, Reddi, Stich, Suresh: SCAFFOLD: stochastic controlled averaging for federated learning
    (2020), Algorithm 1, with its options I and II. It reaches the optimum of the pooled losses where FedAvg drifts.

    `bounded` is ours: in every local step the correction is shortened to at most the length of the gradient that it
    corrects. Over many large steps of a network a correction from the start of the round may otherwise outgrow the
    gradients of its end, and carry the silo away. Where corrections are short it changes nothing.

    >>> import confrere as cf
    >>> cf.scaffold(lr=0.1).hyper
    {'lr': 0.1, 'server_lr': 1.0}
    """
    check_word("option", option, ("I", "II"))
    check_switches(bounded=bounded)
    static = {
        "batch": batch, "epochs": epochs, "steps": steps, "order": order, "weights": weights, "option": option,
        "bounded": bounded,
    }  # fmt: skip
    return recipe_of(
        _scaffold, "scaffold", static,
        lr=lr, server_lr=server_lr, momentum=momentum, weight_decay=weight_decay, l2=l2,
        prior=prior,
    )  # fmt: skip


def _scaffold(loss: Loss, lr, server_lr, weights: Shares, **how) -> Algorithm:
    client = _controlled(loss, lr, "change", **how)
    return federate(
        client, mixers.server(weighted(shares(weights)), x=mixers.step(optax.sgd(server_lr)), c=mixers.add())
    )


def waffle(
    user: int | str, rounds: int, lr: float, slope: float = 3.2, server_lr: float = 1.0, batch: int | None = 32,
    epochs: int | None = None, steps: int | None = None, variate: Variate = "reformed",
    distance: Literal["update", "raw"] = "update", option: Option = "II", schedule: Schedule | None = None,
    threshold: Schedule | None = None, order: Order = "shuffled", momentum: float | None = None,
    weight_decay: float | None = None, l2: float | None = None, bounded: bool = False,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """WAFFLE: SCAFFOLD for one user, from everybody's model to the user's own over `rounds` rounds.

    Beaussart, Grimberg, Hartley, Jaggi: WAFFLE: weighted averaging for personalized federated learning (2021). See
    `confrere.weights.omega` for the weights. `variate="literal"` moves the server's variate as equation (1) says, by
    the weighted changes: it then keeps for ever what silos said whose weight has gone, and cannot personalise.
    `"reformed"` and `"untempered"` take the weighted mean c of all silos' variates c_i anew in every round, which is
    SCAFFOLD while weights are equal, and training alone at the end. `"untempered"` corrects every silo by c - c_i. A
    silo of weight 0 has no part in c, so that nothing holds it: over many large steps it is driven away, and its
    distance sets the scale for all others. `"reformed"` corrects silo i by s_i (c - c_i) instead, with

        s_i = min(1, N alpha_i),    c = sum_i alpha_i s_i c_i / sum_i alpha_i s_i

    for weights alpha that sum to 1 over the N silos heard so far: as far as it counts, and so that corrections cancel
    over those who are averaged. The server, which remembers the c_i, hands each silo its own correction.

    `distance` compares the updates, as the paper does, or the mean raw gradients, from which the variates have not
    taken the difference that is to be measured. `bounded` is that of `scaffold`; it is advised for networks.

    >>> import confrere as cf
    >>> recipe = cf.waffle(user=0, rounds=100, lr=0.1, slope=3.2)
    >>> recipe.rounds, recipe.hyper
    (100, {'user': 0, 'lr': 0.1, 'slope': 3.2, 'server_lr': 1.0})
    """
    check_word("option", option, ("I", "II"))
    check_word("variate", variate, get_args(Variate))
    check_word("distance", distance, ("update", "raw"))
    check_switches(bounded=bounded)
    if rounds is None:
        raise ValueError("rounds must be a whole number above 0: the rounds of the whole run")
    check_counts(rounds=rounds)
    weighting.omega(0, rounds, slope, schedule, threshold)  # refuse what is wrong here rather than later
    static = {
        "batch": batch, "epochs": epochs, "steps": steps, "order": order, "rounds": int(rounds), "variate": variate,
        "distance": distance, "option": option, "schedule": schedule, "threshold": threshold, "bounded": bounded,
    }  # fmt: skip
    recipe = recipe_of(
        _waffle, "waffle", static,
        user=user, lr=lr, slope=slope, server_lr=server_lr, momentum=momentum, weight_decay=weight_decay, l2=l2,
        prior=prior,
    )  # fmt: skip
    return recipe._replace(rounds=int(rounds))


def _waffle(
    loss: Loss, user, lr, slope, server_lr, rounds: int, variate: Variate, distance: str, schedule, threshold, **how,
) -> Algorithm:  # fmt: skip
    weights = weighting.omega(user, rounds, slope, schedule, threshold)
    literal, raw = variate == "literal", distance == "raw"
    sends = ("both" if raw else "change") if literal else "value"
    client = _controlled(loss, lr, sends, receives="correction" if variate == "reformed" else "variate", **how)
    on = ("raw" if literal else "c") if raw else "x"
    part = PARTS[variate]()
    return federate(client, mixers.server(weighted(weights, on), x=mixers.step(optax.sgd(server_lr)), c=part))


def _controlled(
    loss: Loss, lr, sends: Sends, option: Option, bounded: bool, batch, epochs, steps, order, momentum=None,
    weight_decay=None, l2=None, receives: Receives = "variate",
) -> Client:  # fmt: skip
    tx = local_optimizer(lr, momentum, weight_decay)
    plan = plan_for(order, batch, steps, epochs)
    return clients.controlled(loss, tx, plan, option, sends, l2, receives, bounded)
