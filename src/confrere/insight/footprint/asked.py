"""`footprint`: one door to what a run costs, before it, after it, and for a folder with a finished comparison."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from confrere.data.silos import Silos
from confrere.history import History
from confrere.insight.footprint.compared import RunFootprint
from confrere.insight.footprint.energy import energy_of
from confrere.insight.footprint.planned import Footprint, of_history, planned
from confrere.models import Model
from confrere.recipe import Recipe


def footprint(
    run: Recipe | History | str | os.PathLike[str],
    model: Model | None = None,
    silos: Silos | None = None,
    rounds: int | None = None,
    *,
    active: Any = None,
    budget: Any = None,
    operations: bool = True,
    cpu_seconds: float | None = None,
    country: str | None = None,
    watts: float | None = None,
) -> Footprint | RunFootprint:
    """What a run costs: bytes by silo and round, operations, and energy and CO2 as an estimate.

    Args:
        run: a recipe, with model, silos and rounds: before it is run. What `simulate` returned: after it. The folder of
            a finished comparison: all of its algorithms, by what they reached per megabyte and per gram.
        active, budget: as for `simulate`.
        operations: whether to count them, for which the run is compiled (and not run).
        cpu_seconds: how long processors worked, where that was measured, to estimate energy from.
        country, watts: whose electricity, as in "FRA"; what the processor draws at full load. See `energy_of`.

    >>> import numpy as np, confrere as cf
    >>> X = np.random.default_rng(0).normal(size=(2, 40, 3))
    >>> silos = cf.Silos.from_arrays([(x, x[:, 0] > 0) for x in X], names=["a", "b"])
    >>> recipe, model = cf.fedavg(lr=0.5).compressed(cf.transforms.top_k(0.25)), cf.models.logistic()
    >>> before = cf.insight.footprint(recipe, model, silos, rounds=5, operations=False)
    >>> before.bytes_up[0].tolist(), before.bytes_total
    ([10, 10], 460)
    >>> after = cf.insight.footprint(cf.simulate(recipe, model, silos, 5))
    >>> after.bytes_total == before.bytes_total
    True
    """
    if isinstance(run, (str, os.PathLike)):
        from confrere.runs.footprint import run_footprint

        return run_footprint(Path(run), country, watts, operations)
    if isinstance(run, History):
        found = of_history(run)
    elif isinstance(run, Recipe):
        if model is None or silos is None or rounds is None:
            raise TypeError(
                "before a run, model, silos and rounds are needed, too: footprint(recipe, model, silos, 30)"
            )
        found = planned(run, model, silos, rounds, active, budget, operations)
    else:
        raise TypeError(f"run must be a recipe, a history or the folder of a run, not {type(run).__name__}")
    if cpu_seconds is None:
        if country is not None or watts is not None:
            raise ValueError("energy is estimated from processor seconds: say cpu_seconds, too")
        return found
    return replace(found, energy=energy_of(cpu_seconds, None, watts, country))
