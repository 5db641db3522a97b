"""Bytes by silo and round, and operations, of a run that has not begun; and the same of one that is over.

Bytes follow from shapes: of the message as it travels (compressed, if it is) and of the inbox. Both ways must agree, to
the byte, with what a run then takes. They are exact, so that they have no interval.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.budget import bytes_of, rounds_within
from confrere.core import Block, Tree
from confrere.data.silos import Silos
from confrere.history import History
from confrere.insight.footprint.energy import Energy
from confrere.insight.footprint.flops import Operations, operations
from confrere.models import Model
from confrere.program import Setup, expected_traffic, numbers
from confrere.recipe import Recipe
from confrere.simulation.inputs import availability, check_rounds, check_types, initial_params, with_places
from confrere.simulation.rows import with_classes


@dataclass(frozen=True, eq=False)
class Footprint:
    """What one run costs: bytes that every silo sends and receives in every round [R, n], and operations.

    `operations` is None where they were not counted; `energy` where nothing was measured or said.
    """

    algorithm: str
    names: tuple[str, ...]
    bytes_up: np.ndarray
    bytes_down: np.ndarray
    operations: Operations | None = None
    energy: Energy | None = None

    @property
    def rounds(self) -> int:
        """How many rounds it has."""
        return len(self.bytes_up)

    @property
    def bytes_total(self) -> int:
        """What all silos together send and receive."""
        return int(self.bytes_up.sum() + self.bytes_down.sum())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        by_silo = {
            name: {"up": self.bytes_up[:, i].tolist(), "down": self.bytes_down[:, i].tolist()}
            for i, name in enumerate(self.names)
        }
        return {
            "algorithm": self.algorithm, "rounds": self.rounds, "bytes_total": self.bytes_total, "bytes": by_silo,
            "operations": None if self.operations is None else self.operations._asdict(),
            "energy": None if self.energy is None else self.energy.to_dict(),
        }  # fmt: skip


def planned(
    recipe: Recipe, model: Model, silos: Silos, rounds: int, active: Any = None, budget: Any = None, count: bool = True
) -> Footprint:
    """What a run will cost, before it is run."""
    rounds = check_rounds(rounds)
    check_types(model, silos)
    chosen = with_places(recipe, silos)
    key = jax.random.key(0)
    params, train = initial_params(model, silos, key), with_classes(silos.block("train"), model)
    hyper = numbers(chosen.hyper, jax.tree.leaves(params)[0].dtype)
    setup = Setup(chosen.bound, model)
    traffic = expected_traffic(setup, hyper, params, train)
    listener = setup.algorithm(chosen.hyper).mixer.listener
    if listener is not None:
        traffic = traffic._replace(listens=np.arange(len(silos)) == int(listener.user))
    up, down = traffic.by_silo()
    who = availability(active, rounds, len(silos)) & (np.array(silos.sizes("train")) > 0)
    if "prior" in chosen.hyper:
        who = who & (chosen.hyper["prior"] > 0)
    limit = bytes_of(budget)
    if limit is not None:
        who = who[: rounds_within(limit, (who * (up + down)).sum(axis=1))]
    found = Footprint(chosen.name, silos.names, who * up, who * down)
    if not count:
        return found
    return replace(found, operations=training_operations(setup, len(who), hyper, params, train))


def training_operations(setup: Setup, rounds: int, hyper: Any, params: Tree, train: Block) -> Operations | None:
    """The operations of all rounds, silos and mixer together, without any evaluation; None where JAX does not tell."""

    def run(hyper, params, train, key):
        algorithm = setup.algorithm(hyper)
        step = lambda state, _: (algorithm.update(state, train, key)[0], None)  # noqa: E731
        return jax.lax.scan(step, algorithm.init(params, train), length=rounds)[0]

    try:
        return operations(run, hyper, params, jax.tree.map(jnp.asarray, train), jax.random.key(0))
    except NotImplementedError:
        return None


def of_history(history: History) -> Footprint:
    """What a run did cost."""
    return Footprint(history.algorithm, history.names, history.bytes_up, history.bytes_down)
