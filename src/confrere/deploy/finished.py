"""The finished model stays at its site: saved as every model is, for `confrere predict` and `confrere monitor`.

model/            the model with its card
study.toml, opening.json, chronicle.json    what its report is made from, with the site's own rows: see `report`
"""

import hashlib
import json
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
from confrere.deploy.chronicle import Chronicle
from confrere.deploy.opening import Opening
from confrere.deploy.rows import OwnRows
from confrere.deploy.study import Deployed
from confrere.disk import write_whole
from confrere.plural import plural
from confrere.saved import save_model

MODEL, STUDY, CHRONICLE = "model", "study.toml", "chronicle.json"
CONSTANT = "to find constant columns"


def keep_model(
    place: Path, study: Deployed, opening: Opening, rows: OwnRows, silo: Silo, model: Tree, facts: Mapping[str, Any]
) -> Path:
    """Write a site's personal model beside its state; the same again if the hub asks again."""
    encoding = rows.own_encoding(opening.plan, opening.encoding)
    chronicle = Chronicle.heard(facts.get("chronicle"))
    shared = tuple(left_the_site(study, opening, rows, chronicle))
    silos = Silos(
        (silo,), encoding.features, encoding.label_names, f"the table of {silo.name}", "real", shared, encoding=encoding
    )
    predictor = Predictor.of(study.model(encoding.label_names is not None), [(1.0, model)], silos, 0)
    write_whole(place / STUDY, study.content)
    write_whole(place / CHRONICLE, json.dumps(chronicle.told()))
    opening.save(place)
    part = study.said.study
    reason = f"{part.algorithm} over {part.rounds} rounds with {', '.join(sorted(opening.sizes))}."
    if not chronicle.shares:
        reason += " Who counted for how much is not recorded."

    def nothing() -> Any:
        raise NoHistory("a deployed model has its history in the hub's journal")

    answer = Answer(
        silo.name, part.algorithm, predictor, chronicle.shares, 0.0, {}, {}, {}, silo.count("train"), (), (), shared,
        reason, (), nothing, nothing, key=part.seed,
    )  # fmt: skip
    config: dict[str, Any] = {"study": study.hash, "sites": sorted(opening.sizes), "test": part.test, "seed": part.seed,
              "scale": study.said.data.scale, "min_level": study.said.data.min_level, "overridden": {},
              "derive": study.choice("").formulas(silo.name)}  # fmt: skip
    return save_model(answer, silos, place / MODEL, config, replace=(place / MODEL).exists())


def has_model(place: Path) -> bool:
    """Whether a run's folder has a finished model."""
    return (place / MODEL).is_dir()


def finished_models(state: Path) -> dict[str, Path]:
    """The finished models at a site by the hashes of their studies; of several runs of one, the newest."""
    found = [place / STUDY for place in state.glob("*/") if has_model(place) and (place / STUDY).is_file()]
    found.sort(key=lambda file: (file.parent / MODEL).stat().st_mtime)
    return {hashlib.sha256(file.read_bytes()).hexdigest(): file.parent / MODEL for file in found}


def left_the_site(study: Deployed, opening: Opening, rows: OwnRows, chronicle: Chronicle) -> list[Shared]:
    """What left this site for the study: before round 1, and in the rounds that counted, of which the hub tells."""
    classes = rows.classes(opening.plan)
    everything, training = rows.summaries(opening.plan)
    said: list[messages.Message] = [rows.survey(), rows.layout(opening.plan), training]
    found = [
        entry for message in (*said, *([] if classes is None else [classes])) for entry in messages.record(message)
    ]
    found += [Shared(rows.name, f"whether values differ in {name!r}", 1, CONSTANT) for name in everything.varies]
    numbers = sum(int(np.prod(leaf.shape)) for leaf in leaves_of(study, opening))
    count = chronicle.answered.get(rows.name, 0)
    if not count:
        return found
    what = f"numbers of its messages in {plural(count, 'round')} of {study.said.study.algorithm} that counted"
    return [*found, Shared(rows.name, what, numbers * count, "to learn together")]


def leaves_of(study: Deployed, opening: Opening) -> list[Any]:
    """The arrays of one message, by their shapes."""
    import jax

    return jax.tree.leaves(opening.agreed(study).message_spec())
