"""The algorithms under test, one row each, and the small problems they are tested on."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import confrere as cf


class Row(NamedTuple):
    """How to make the recipe for silos in some order, and the local training that one silo alone must equal."""

    make: Callable[[list[int]], cf.Recipe]
    local: cf.Recipe | None = None


ALGORITHMS = {
    "local": Row(lambda order: cf.local(lr=0.2), cf.local(lr=0.2)),
    "local-batches": Row(lambda order: cf.local(lr=0.2, batch=4), cf.local(lr=0.2, batch=4)),
    "fedsgd": Row(lambda order: cf.fedsgd(lr=0.2), cf.local(lr=0.2)),
    "fedsgd-uniform": Row(lambda order: cf.fedsgd(lr=0.2, weights="uniform", batch=4, l2=0.1)),
    "fedavg": Row(
        lambda order: cf.fedavg(lr=0.2, batch=4, momentum=0.9, weight_decay=0.01, l2=0.01),
        cf.local(lr=0.2, batch=4, momentum=0.9, weight_decay=0.01, l2=0.01),
    ),
    "fine-tuned": Row(lambda order: cf.fine_tuned(lr=0.2, batch=4, tune_steps=3)),
    "ditto": Row(lambda order: cf.ditto(lr=0.2, pull=0.5, batch=4)),
    "weight-erosion": Row(
        lambda order: cf.weight_erosion(user=order.index(0), lr=0.2, p_d=0.05, batch=4, order="cyclic"),
        cf.local(lr=0.2, steps=1, batch=4, order="cyclic"),
    ),
    "weight-erosion-updates": Row(
        lambda order: cf.weight_erosion(
            user=order.index(1), lr=0.2, p_d=0.05, batch=4, form="update", steps=3, newcomer="median", size_prior=1.0
        ),
        cf.local(lr=0.2, batch=4, steps=3),
    ),
    "scaffold": Row(
        lambda order: cf.scaffold(lr=0.2, batch=4, momentum=0.5, weight_decay=0.01),
        cf.local(lr=0.2, batch=4, momentum=0.5, weight_decay=0.01),
    ),
    "scaffold-option-one": Row(lambda order: cf.scaffold(lr=0.1, batch=4, steps=2, option="I", weights="size")),
    "waffle": Row(lambda order: cf.waffle(user=order.index(1), rounds=5, lr=0.2, batch=4), cf.local(lr=0.2, batch=4)),
    "waffle-literal": Row(
        lambda order: cf.waffle(user=order.index(0), rounds=5, lr=0.1, batch=4, variate="literal", distance="raw")
    ),
    "ridge-local": Row(lambda order: cf.ridge_local(ridge=0.5), cf.ridge_local(ridge=0.5)),
    "evidence": Row(lambda order: cf.evidence(candidates=["pair", "pool"]), cf.ridge_local()),
    "evidence-user": Row(
        lambda order: cf.evidence(user=order.index(0), candidates=["pair", "joint"]), cf.ridge_local()
    ),
}


def two_class_silos(sizes=(40, 30, 20), features=3, seed=0, shift=0.5) -> cf.Silos:
    """Silos of linear two-class problems whose true weights differ by `shift`."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=features)
    pairs = []
    for rows in sizes:
        X = rng.normal(size=(rows, features))
        noise = 0.3 * rng.normal(size=rows)
        pairs.append((X, (X @ (common + shift * rng.normal(size=features)) + noise > 0).astype(int)))
    return cf.Silos.from_arrays(pairs)
