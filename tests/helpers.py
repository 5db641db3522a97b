"""The algorithms under test, one row each, the small problems they are tested on, and a count of programs."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import confrere as cf
from confrere.models.model import dense, init_dense, model_of
from confrere.testing import Problem, small_problem


class Row(NamedTuple):
    """How to make the recipe for silos in some order, the local training that one silo alone must equal, and what to
    check it on if the usual problem will not do."""

    make: Callable[[list[int]], cf.Recipe]
    local: cf.Recipe | None = None
    problem: Callable[[], Problem] | None = None


def normalised(width=4) -> cf.models.Model:
    """A network with a normalisation between its two layers."""

    def init(key, inputs, outputs):
        first, last = jax.random.split(key)
        norm = {"gain": jnp.ones(width), "shift": jnp.zeros(width)}
        return {"layer0": init_dense(first, inputs, width), "norm": norm, "layer1": init_dense(last, width, outputs)}

    def apply(params, X):
        h = dense(params["layer0"], X)
        spread = jnp.sqrt(jnp.square(h - h.mean(-1, keepdims=True)).mean(-1, keepdims=True) + 1e-3)
        h = (h - h.mean(-1, keepdims=True)) / spread * params["norm"]["gain"] + params["norm"]["shift"]
        return dense(params["layer1"], jax.nn.relu(h))

    return model_of(init, apply, "classification", "normalised")


NORMALISED = normalised()


def network_problem() -> Problem:
    """The usual problem, for a network with a normalisation."""
    usual = small_problem()
    return usual._replace(model=NORMALISED, params=NORMALISED.init(jax.random.key(0), usual.data.X.shape[-1], 2))


NETWORK = cf.networks.Network.from_edges([(0, 1), (1, 2), (1, 3)], weights=[1.0, 0.5, 2.0])
RING = cf.networks.Network.from_edges([(0, 1), (1, 2), (2, 3), (3, 0)])  # equal degrees: equal silos move alike

BELIEVED = np.array([1.0, 0.5, 2.0, 0.25])  # of the four silos of the usual problem, before training

ALGORITHMS = {
    "local": Row(lambda order: cf.local(lr=0.2), cf.local(lr=0.2)),
    "local-batches": Row(lambda order: cf.local(lr=0.2, batch=4), cf.local(lr=0.2, batch=4)),
    "fedsgd": Row(lambda order: cf.fedsgd(lr=0.2), cf.local(lr=0.2)),
    "fedsgd-uniform": Row(lambda order: cf.fedsgd(lr=0.2, weights="uniform", batch=4, l2=0.1)),
    "fedavg": Row(
        lambda order: cf.fedavg(lr=0.2, batch=4, momentum=0.9, weight_decay=0.01, l2=0.01),
        cf.local(lr=0.2, batch=4, momentum=0.9, weight_decay=0.01, l2=0.01),
    ),
    "fedavg-prior": Row(lambda order: cf.fedavg(lr=0.2, batch=4, prior=BELIEVED[order]), cf.local(lr=0.2, batch=4)),
    "fine-tuned": Row(lambda order: cf.fine_tuned(lr=0.2, batch=4, tune_steps=3)),
    "ditto": Row(lambda order: cf.ditto(lr=0.2, pull=0.5, batch=4, momentum=0.5)),
    "apfl": Row(lambda order: cf.apfl(lr=0.2, alpha=0.4, batch=4, l2=0.01)),
    "fedper": Row(
        lambda order: cf.fedper(lr=0.2, keep=("b",), batch=4, momentum=0.9), cf.local(lr=0.2, batch=4, momentum=0.9)
    ),
    "fedrep": Row(lambda order: cf.fedrep(lr=0.2, batch=4, head_epochs=2), problem=network_problem),
    "fedbn": Row(lambda order: cf.fedbn(lr=0.2, batch=4), cf.local(lr=0.2, batch=4), network_problem),
    "featurised": Row(lambda order: cf.featurised(lr=0.2, batch=4)),
    "model-interpolation": Row(lambda order: cf.model_interpolation(lr=0.2, batch=4)),
    "model-interpolation-given": Row(
        lambda order: cf.model_interpolation(lr=0.2, batch=4, own_share=0.3), cf.local(lr=0.2, batch=4)
    ),
    "data-interpolation": Row(
        lambda order: cf.data_interpolation(user=order.index(1), lr=0.2, own_share=0.3), cf.local(lr=0.2)
    ),
    "fedprox": Row(lambda order: cf.fedprox(lr=0.2, mu=0.5, batch=4, momentum=0.9, l2=0.01)),
    "pfedme": Row(lambda order: cf.pfedme(lr=0.1, pull=5.0, beta=0.8, inner_steps=3, batch=4)),
    "fedopt": Row(lambda order: cf.fedopt(lr=0.2, server="adam", batch=4)),
    "fedopt-yogi": Row(lambda order: cf.fedopt(lr=0.2, server="yogi", batch=4)),
    "fedopt-adagrad": Row(lambda order: cf.fedopt(lr=0.2, server="adagrad", batch=4)),
    "fedopt-sgd": Row(lambda order: cf.fedopt(lr=0.2, server="sgd", batch=4), cf.local(lr=0.2, batch=4)),
    "per-fedavg": Row(lambda order: cf.per_fedavg(lr=0.2, inner_lr=0.3, batch=4)),
    "per-fedavg-first-order": Row(
        lambda order: cf.per_fedavg(lr=0.2, inner_lr=0.3, inner_steps=2, first_order=True, batch=4, steps=1)
    ),
    "multi-task": Row(lambda order: cf.multi_task(lr=0.2, pull=0.5), cf.local(lr=0.2)),
    "multi-task-batches": Row(
        lambda order: cf.multi_task(lr=0.2, pull=0.5, batch=4, weights="size"), cf.local(lr=0.2, batch=4)
    ),
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
    "scaffold-bounded": Row(lambda order: cf.scaffold(lr=0.2, batch=4, bounded=True), cf.local(lr=0.2, batch=4)),
    "scaffold-option-one": Row(lambda order: cf.scaffold(lr=0.1, batch=4, steps=2, option="I", weights="size")),
    "waffle": Row(lambda order: cf.waffle(user=order.index(1), rounds=5, lr=0.2, batch=4), cf.local(lr=0.2, batch=4)),
    "waffle-untempered": Row(
        lambda order: cf.waffle(user=order.index(1), rounds=5, lr=0.2, batch=4, variate="untempered"),
        cf.local(lr=0.2, batch=4),
    ),
    "waffle-bounded": Row(
        lambda order: cf.waffle(user=order.index(1), rounds=5, lr=0.2, batch=4, distance="raw", bounded=True),
        cf.local(lr=0.2, batch=4),
    ),
    "waffle-literal": Row(
        lambda order: cf.waffle(user=order.index(0), rounds=5, lr=0.1, batch=4, variate="literal", distance="raw")
    ),
    "ifca": Row(lambda order: cf.ifca(lr=0.2, batch=4)),
    "clustered": Row(
        lambda order: cf.clustered(lr=0.2, eps1=0.6, eps2=0.3, gamma=0.0, batch=4), cf.local(lr=0.2, batch=4)
    ),
    "fedamp": Row(
        lambda order: cf.fedamp(lr=0.2, attention=0.8, pull=0.5, batch=4, steps=1),
        cf.local(lr=0.2, batch=4, steps=1),
    ),
    "fedfomo": Row(lambda order: cf.fedfomo(lr=0.2, batch=4)),
    "gtv-gd": Row(lambda order: cf.gtv_gd(NETWORK.induced(order), lr=0.1, alpha=0.3), cf.local(lr=0.1)),
    "gtv-sgd": Row(
        lambda order: cf.gtv_sgd(NETWORK.induced(order), lr=0.1, alpha=0.3, batch=4),
        cf.local(lr=0.1, batch=4, steps=1),
    ),
    "gtv-async": Row(lambda order: cf.gtv_async(NETWORK.induced(order), lr=0.1, alpha=0.3), cf.local(lr=0.1)),
    "gtv-relax": Row(lambda order: cf.gtv_relax(RING.induced(order), alpha=0.3, steps=6, l2=0.5)),
    "fedavg-prox": Row(lambda order: cf.fedavg_prox(eta=0.5, steps=6)),
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


@contextlib.contextmanager
def programs():
    """The names of the programs that are compiled meanwhile."""
    names, listening = [], [True]

    def note(event, duration, fun_name="", **_):
        if listening and event == "/jax/core/compile/jaxpr_to_mlir_module_duration":
            names.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        yield names
    finally:
        listening.clear()
