"""The uncertainty of a saved model: its replicas and scores among the tensors, the rest in the manifest."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from confrere.answers.predictor import Predictor

REPLICAS, SCORES = "replicas", "calibration/scores"


def spread_tensors(predictor: Predictor) -> dict[str, np.ndarray]:
    """Replicas of every member by name, replicas/0/w [B, ...], and the conformal scores; nothing if there are none."""
    found = predictor.uncertainty
    if found is None:
        return {}
    tensors = {SCORES: np.ascontiguousarray(found.scores)}
    for k, member in enumerate(found.members):
        for path, leaf in jax.tree.leaves_with_path(member):
            tensors["/".join([REPLICAS, str(k), *(str(step.key) for step in path)])] = np.ascontiguousarray(leaf)
    return tensors


def spread_manifest(predictor: Predictor) -> dict[str, Any] | None:
    """What the manifest says about the uncertainty; None if there is none."""
    found = predictor.uncertainty
    if found is None:
        return None
    told = {"replicas": found.replicas, "held": found.held, "rows": found.rows}
    return told | {"factor": found.factor, "noise": found.noise, "words": found.in_words(0.95)}


def is_spread(name: str) -> bool:
    """Whether a tensor belongs to the uncertainty."""
    return name == SCORES or name.startswith(f"{REPLICAS}/")


def loaded_spread(manifest: Mapping[str, Any], tensors: Mapping[str, np.ndarray], unflattened: Any) -> Any:
    """The uncertainty of a loaded model, or None."""
    told = manifest.get("uncertainty")
    if told is None:
        return None
    from confrere.insight.explanations.uncertainty import Uncertainty

    stacked = {name.removeprefix(f"{REPLICAS}/"): a for name, a in tensors.items() if name.startswith(f"{REPLICAS}/")}
    members = tuple(unflattened(stacked))
    return Uncertainty(members, told["held"], told["rows"], told["factor"], told["noise"], tensors[SCORES])
