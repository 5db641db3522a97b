"""The methods of the benchmark: one row each. A row is a function from the setting to a recipe."""

from collections.abc import Callable, Mapping
from typing import Any

from confrere import algorithms
from confrere.clients.context import Context
from confrere.recipe import Recipe
from confrere.reproduce.waffle.setting import ALICE, Setting

Method = Callable[[Setting], Recipe]
WITH_NORMS = ("fedbn",)  # methods for models with normalisations
NETWORK_PENALTY = 0.8  # of Weight Erosion, times the rounds
ALONE = ("local",)  # methods for which Alice's own rows are enough


def training(setting: Setting) -> dict[str, Any]:
    """One pass over the shuffled rows in every round."""
    return {"lr": setting.lr, "batch": setting.batch, "epochs": 1}


def network(setting: Setting) -> bool:
    """Whether the model has several layers."""
    return setting.model != "softmax"


def waffle(setting: Setting, **how: Any) -> Recipe:
    """WAFFLE with the paper's slope of 3.2; corrections of a network are bounded unless `how` says otherwise."""
    given: dict[str, Any] = {**training(setting), **setting.momentum, "bounded": network(setting), **how}
    return algorithms.waffle(ALICE, setting.rounds, **given)


def weight_erosion(setting: Setting, penalty: float | None = None) -> Recipe:
    """Weight Erosion on updates with p_d = penalty / rounds; the paper's penalties are lost, so they are ours.

    For networks it is chosen on validation rows (see `penalties`). The size penalty is 0.
    """
    p_d = (own_penalty(setting) if penalty is None else penalty) / setting.rounds
    return algorithms.weight_erosion(ALICE, p_d=p_d, p_s=0.0, form="update", **training(setting), **setting.momentum)


def own_penalty(setting: Setting) -> float:
    """Weight Erosion's penalty in the table, times the rounds."""
    return NETWORK_PENALTY if network(setting) else 2


def kept(setting: Setting) -> tuple[str, ...] | str:
    """What FedPer and FedRep keep: the head, or the intercepts of a model that has but one layer."""
    return "head" if network(setting) else ("b",)


def context(setting: Setting) -> Context:
    """How an agent describes its images: pixel by pixel to softmax regression, in two numbers to a convolution."""
    return "moments" if network(setting) else "means"


TABLE_1: Mapping[str, Method] = {
    "local": lambda s: algorithms.local(**training(s), **s.momentum),
    "fedavg": lambda s: algorithms.fedavg(**training(s), **s.momentum),
    "scaffold": lambda s: algorithms.scaffold(**training(s), **s.momentum),
    "weight_erosion": weight_erosion,
    "waffle": waffle,
    "apfl": lambda s: algorithms.apfl(**training(s), **s.momentum),
}

FURTHER: Mapping[str, Method] = {
    "scaffold_bounded": lambda s: algorithms.scaffold(**training(s), **s.momentum, bounded=True),
    "waffle_unbounded": lambda s: waffle(s, bounded=False),
    "waffle_literal": lambda s: waffle(s, variate="literal", bounded=False),
    "waffle_untempered": lambda s: waffle(s, variate="untempered", bounded=False),
    "waffle_raw": lambda s: waffle(s, distance="raw"),
    "fine_tuned": lambda s: algorithms.fine_tuned(**training(s), **s.momentum),
    "ditto": lambda s: algorithms.ditto(**training(s), **s.momentum),
    "fedprox": lambda s: algorithms.fedprox(**training(s), **s.momentum),
    "fedadam": lambda s: algorithms.fedopt(**training(s), **s.momentum, server_lr=0.01),
    "per_fedavg": lambda s: algorithms.per_fedavg(**training(s), **s.momentum, inner_lr=s.lr / 10),
    "pfedme": lambda s: algorithms.pfedme(**training(s), **s.momentum, inner_lr=s.lr / 5),
    "fedper": lambda s: algorithms.fedper(**training(s), **s.momentum, keep=kept(s)),
    "fedbn": lambda s: algorithms.fedbn(**training(s), **s.momentum),
    "fedrep": lambda s: algorithms.fedrep(**training(s), **s.momentum, keep=kept(s)),
    "ifca": lambda s: algorithms.ifca(**training(s), **s.momentum),
    "clustered": lambda s: algorithms.clustered(**training(s), **s.momentum),
    "fedamp": lambda s: algorithms.fedamp(**training(s), **s.momentum),
    "fedfomo": lambda s: algorithms.fedfomo(**training(s), **s.momentum),
    "model_interpolation": lambda s: algorithms.model_interpolation(**training(s), **s.momentum),
    "data_interpolation": lambda s: algorithms.data_interpolation(ALICE, **training(s), **s.momentum),
    "featurised": lambda s: algorithms.featurised(
        **training(s), **s.momentum, context=context(s), layer="head" if s.model == "dla" else None
    ),
    "multi_task": lambda s: algorithms.multi_task(**training(s)),
}

METHODS: Mapping[str, Method] = {**TABLE_1, **FURTHER}


def chosen(names: tuple[str, ...], model: str = "dla") -> tuple[str, ...]:
    """The methods' names: those given, those of Table 1 if none is, or all that the model can have."""
    possible = [name for name in METHODS if model == "dla" or name not in WITH_NORMS]
    if names == ("all",):
        return tuple(possible)
    unknown = [name for name in names if name not in possible]
    if unknown:
        raise ValueError(f"there is no method {unknown[0]!r} for {model}; there are all, {', '.join(possible)}")
    return tuple(dict.fromkeys(names)) or tuple(TABLE_1)
