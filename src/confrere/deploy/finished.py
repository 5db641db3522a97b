"""The finished model stays at its site: saved as every model is, for `confrere predict` and `confrere monitor`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from confrere.answers import Answer
from confrere.answers.answer import NoHistory
from confrere.answers.predictor import Predictor
from confrere.core import Tree
from confrere.data.intake import messages
from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.deploy.opening import Opening
from confrere.deploy.rows import OwnRows
from confrere.deploy.study import Deployed
from confrere.saved import save_model

MODEL = "model"


def keep_model(
    place: Path, study: Deployed, opening: Opening, rows: OwnRows, silo: Silo, model: Tree, facts: Mapping[str, Any]
) -> Path:
    """Write a site's personal model beside its state; the same again if the hub asks again."""
    encoding = rows.own_encoding(opening.plan, opening.encoding)
    shared = tuple(left_the_site(study, opening, rows))
    silos = Silos(
        (silo,), encoding.features, encoding.label_names, f"the table of {silo.name}", "real", shared, encoding=encoding
    )
    predictor = Predictor.of(study.model(encoding.label_names is not None), [(1.0, model)], silos, 0)
    weights = weights_in(facts, silo.name)
    part = study.said.study
    reason = f"{part.algorithm} over {part.rounds} rounds with {', '.join(sorted(opening.sizes))}."

    def nothing() -> Any:
        raise NoHistory("a deployed model has its history in the hub's journal")

    answer = Answer(
        silo.name, part.algorithm, predictor, weights, 0.0, {}, {}, {}, silo.count("train"), (), (), shared, reason, (),
        nothing, nothing, key=part.seed,
    )  # fmt: skip
    config: dict[str, Any] = {"study": study.hash, "sites": sorted(opening.sizes), "test": part.test, "seed": part.seed,
              "scale": study.said.data.scale, "min_level": study.said.data.min_level, "overridden": {},
              "derive": study.choice("").formulas(silo.name)}  # fmt: skip
    return save_model(answer, silos, place / MODEL, config, replace=(place / MODEL).exists())


def left_the_site(study: Deployed, opening: Opening, rows: OwnRows) -> list[Shared]:
    """What left this site for the study: before round 1, and in its rounds."""
    classes = rows.classes(opening.plan)
    said: list[messages.Message] = [rows.survey(), rows.layout(opening.plan), *rows.summaries(opening.plan)]
    found = [
        entry for message in (*said, *([] if classes is None else [classes])) for entry in messages.record(message)
    ]
    numbers = sum(int(np.prod(leaf.shape)) for leaf in leaves_of(study, opening))
    part = study.said.study
    what = f"numbers of its messages in {part.rounds} rounds of {part.algorithm}"
    return [*found, Shared(rows.name, what, numbers * part.rounds, "to learn together")]


def leaves_of(study: Deployed, opening: Opening) -> list[Any]:
    """The arrays of one message, by their shapes."""
    import jax

    return jax.tree.leaves(opening.agreed(study).message_spec())


def weights_in(facts: Mapping[str, Any], name: str) -> dict[str, float]:
    """Whose messages counted for how much in the last round, as the hub says; the site alone if it does not."""
    given = facts.get("weights")
    if not isinstance(given, dict) or not given:
        return {name: 1.0}
    return {str(site): float(share) for site, share in given.items() if isinstance(share, int | float)}
