"""Evaluation at the site, on its own rows: only the metrics that its policy allows come back."""

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from confrere.clients.batches import everything
from confrere.core import Block, Tree
from confrere.deploy.policy import Policy, allowed_metrics
from confrere.deploy.site import Measure, own_block
from confrere.models import METRICS, Model, metrics_of


def measures(policy: Policy, model: Model, train: Block, test: tuple[np.ndarray, np.ndarray]) -> Measure:
    """What may be told of a model: the loss on training rows and metrics on test rows, of large enough groups."""
    held = own_block(*test, 0, model.task == "classification")
    wanted = tuple(name for name in metrics_of(model.task) if name in policy.said.policy.metrics)

    def measure(params: Tree) -> Mapping[str, float]:
        loss, found = measured(model, wanted, jax.tree.map(jnp.asarray, params), train, held)
        numbers: dict[str, float] = {name: float(value) for name, value in found.items() if np.isfinite(value)}
        own: dict[str, float] = {"loss": float(loss)} if np.isfinite(loss) else {}
        return allowed_metrics(policy, int(train.size), own) | allowed_metrics(policy, len(test[1]), numbers)

    return measure


@functools.partial(jax.jit, static_argnums=(0, 1))
def measured(
    model: Model, wanted: tuple[str, ...], params: Tree, train: Block, held: Block
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The loss on training rows, and metrics on held-out ones."""
    rows = everything(held)
    scores = model.apply(params, rows.X)
    found = {name: METRICS[name](scores, rows.y, rows.live) for name in wanted}
    return model.loss(params, everything(train)), found
