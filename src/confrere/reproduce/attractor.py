"""The local model as an attractor: the shortcoming that the authors of Weight Erosion name, with and without the cone.

As training nears the user's own optimum its gradient vanishes, every other silo seems infinitely far, all weights erode
to zero, and what is left is local training (example 4 of the report). The paper's remedy is to stop early, but not as
long as all gradients fit in a cone.

Two problems. `regression`: eight silos, two features, a user with twelve rows: the gradients soon fit in no cone,
and stopping there keeps what the others know. `titanic`: four silos, ten parameters. As many gradients as parameters or
fewer, if they are linearly independent, *always* fit in a cone, so here the rule never stops the run: it is a remedy
only where silos are many and parameters few.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from confrere import algorithms
from confrere.core import Tree
from confrere.data.silo import PARTS
from confrere.data.silos import Silos
from confrere.data.titanic import titanic
from confrere.models import Model, linear, logistic
from confrere.simulate import simulate

ROUNDS = 1000


def regression_silos(seed: int, silos: int = 8, rows: int = 100, user_rows: int = 12, features: int = 2) -> Silos:
    """Linear regressions that differ a little from the user's, which has few rows, and 2000 for test."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=features)
    pairs = []
    for i in range(silos):
        X = rng.normal(size=(user_rows + 2000 if i == 0 else rows, features))
        own = common if i == 0 else common + 0.3 * rng.normal(size=features)
        pairs.append((X, X @ own + rng.normal(size=len(X))))
    made = Silos.from_arrays(pairs)
    part = np.where(np.arange(user_rows + 2000) < user_rows, PARTS.index("train"), PARTS.index("test"))
    return replace(made, silos=(replace(made.silos[0], part=part.astype(np.int8)), *made.silos[1:]))


def apart(one: Tree, two: Tree) -> float:
    """The distance between two models' predictions' parameters: of scores, not of redundant columns."""
    values = [one["w"] - two["w"], (one["b"] - two["b"])[None]]
    stacked = np.concatenate(values)
    if stacked.shape[1] == 2:
        stacked = stacked[:, 1:] - stacked[:, :1]
    return float(np.linalg.norm(stacked))


def study(
    silos: Silos, model: Model, metric: str, lr: float, l2: float | None, p_s: float, rounds: int
) -> dict[str, Any]:
    """Where Weight Erosion ends with full gradients, measured from the local to the global optimum (0 to 1)."""
    eroding = algorithms.weight_erosion(0, lr, p_d=0.01, p_s=p_s, l2=l2)
    how: dict[str, Any] = {"user": 0, "metrics": (metric,), "record": ("weights",)}
    runs = {
        "local": simulate(algorithms.local(lr, l2=l2), model, silos, 5 * rounds, **how),
        "global": simulate(algorithms.fedsgd(lr, weights="uniform", l2=l2), model, silos, 5 * rounds, **how),
        "to_the_end": simulate(eroding, model, silos, rounds, **how),
        "cone": simulate(eroding, model, silos, rounds, stop="cone", **how),
    }
    ends = {name: run.personal(0) for name, run in runs.items()}
    scale = apart(ends["local"], ends["global"])
    return {
        "rounds": runs["cone"].rounds,
        "stopped": runs["cone"].stopped,
        "from_local": {name: apart(ends[name], ends["local"]) / scale for name in ("to_the_end", "cone")},
        metric: {name: float(run.metrics[metric][-1]) for name, run in runs.items()},
    }


def attractor(seeds: int = 20, rounds: int = ROUNDS, progress=None) -> dict[str, Any]:
    """Both problems, as one JSON object."""
    regressions = []
    for seed in range(seeds):
        regressions.append(study(regression_silos(seed), linear(), "rmse", 0.1, None, 0.0, rounds))
        if progress is not None:
            progress(seed + 1, seeds + 1)
    on_titanic = study(titanic("age-strict", 0).for_user(0), logistic(), "accuracy", 1.5, 2e-3, 0.2, rounds)
    if progress is not None:
        progress(seeds + 1, seeds + 1)
    return {"regression": regressions, "titanic": on_titanic}
