"""A run over bytes in one process, beside the same run in the simulator."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import confrere as cf
from confrere.core import Block, Tree
from confrere.deploy.agreed import Agreed, Static
from confrere.deploy.exchange import InProcess
from confrere.deploy.hub import Hub, Terms
from confrere.deploy.journal import Journal
from confrere.deploy.site import Site
from confrere.deploy.store import Store
from confrere.models import Model
from confrere.program import Setup, numbers, personal_models, rollout
from confrere.recipe import Recipe
from confrere.testing import gap, small_problem

NAMES = ("ash", "birch", "cedar", "elm")
STUDY, RUN = "ab" * 32, "cd" * 8
_run = jax.jit(rollout, static_argnums=(0, 1))
_models = jax.jit(personal_models, static_argnums=0)


class Case(NamedTuple):
    """A recipe on a model and rows."""

    recipe: Recipe
    model: Model
    data: Block
    params: Tree
    seed: int = 1

    @property
    def agreed(self) -> Agreed:
        static = Static(self.recipe.bound, self.model, tuple(self.data.X.shape[2:]))
        return Agreed(NAMES, static, numbers(self.recipe.hyper), self.params, jax.random.key(self.seed))

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(NAMES, np.asarray(self.data.size).tolist(), strict=True))

    def simulated(self, active: np.ndarray) -> Tree:
        """Everybody's personal model, from the simulator."""
        setup, hyper = Setup(self.recipe.bound, self.model, (), False, ("weights",)), numbers(self.recipe.hyper)
        key = jax.random.key(self.seed)
        trace = _run(setup, len(active), hyper, key, self.params, self.data, self.data, None, active)
        return _models(setup, hyper, trace.state, self.data)

    def site(self, name: str, folder: Path) -> Site:
        place = NAMES.index(name)
        own = jax.tree.map(lambda a: a[place], self.data)
        return Site(name, self.agreed, own, Store(folder / name, STUDY, RUN, name))

    def sites(self, folder: Path) -> dict[str, Site]:
        return {name: self.site(name, folder) for name in NAMES}

    def hub(self, folder: Path, exchange, **terms) -> Hub:
        settings = Terms(**{"minimum": 0.0, "pause": 0.0, "deadline": 120.0, **terms})
        return Hub(self.agreed, self.sizes, exchange, Journal(folder / "hub", STUDY, RUN), settings, lambda _: None)


def case_of(recipe: Recipe, problem=None) -> Case:
    """A recipe on the small problem, in the precision that is on."""
    chosen = small_problem() if problem is None else problem
    precision = jnp.result_type(float)
    exact = lambda tree: jax.tree.map(lambda a: a.astype(precision) if a.dtype.kind == "f" else a, tree)  # noqa: E731
    return Case(recipe, chosen.model, exact(chosen.data), exact(chosen.params))


FEDAVG = cf.fedavg(lr=0.2, batch=4, momentum=0.9)


class Attendance:
    """An exchange in which sites answer in the rounds in which they are there."""

    def __init__(self, sites: dict[str, Site], active: np.ndarray):
        self.sites, self.active, self.inner, self.calls = sites, active, InProcess(dict.fromkeys(sites, None)), 0

    def __call__(self, requests, deadline, enough=None):
        here = self.active[self.calls] if self.calls < len(self.active) else np.ones(len(NAMES), bool)
        self.calls += 1
        there = {name: site.answer for name, site in self.sites.items() if here[NAMES.index(name)]}
        self.inner.answers = there
        return self.inner(requests, deadline, enough)


def attendance(rounds: int) -> np.ndarray:
    """Everybody is away now and then, never all at once."""
    return (np.arange(rounds)[:, None] * 3 + np.arange(len(NAMES)) * 5) % 7 > 0


def furthest(case: Case, sites: dict[str, Site], active: np.ndarray) -> float:
    """The largest difference between the sites' personal models and the simulator's."""
    wanted = case.simulated(active)
    made = {place: sites[name].model for place, name in enumerate(NAMES) if sites[name].model is not None}
    assert made
    return max(gap(jax.tree.map(lambda a, i=i: a[i], wanted), model) for i, model in made.items())
