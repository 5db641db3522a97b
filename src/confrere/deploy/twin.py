"""The twin of a deployed study: the same on one machine, in the simulator, from all sites' tables.

For rehearsals with made-up tables, and for the tests that hold the two to be the same.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import numpy as np

from confrere.core import Tree
from confrere.data.intake.encoding import Encoding
from confrere.data.intake.survey import Plan
from confrere.data.silos import Silos
from confrere.deploy.opening import Opening, common_encoding, common_plan
from confrere.deploy.rows import OwnRows
from confrere.deploy.study import Deployed
from confrere.history import History
from confrere.simulate import simulate


def twin_silos(study: Deployed, tables: Mapping[str, Path], opening: Opening | None = None) -> Silos:
    """All sites' rows as silos, made from their messages, or from what those agreed on who were there to begin with."""
    rows = {name: OwnRows(study, name, tables[name]) for name in study.names}
    plan, encoding = agreed_among(study, list(rows.values())) if opening is None else (opening.plan, opening.encoding)
    silos = tuple(own.encoded(plan, encoding) for own in rows.values())
    return Silos(silos, encoding.features, encoding.label_names, "tables of sites", encoding=encoding)


def agreed_among(study: Deployed, rows: Sequence[OwnRows]) -> tuple[Plan, Encoding]:
    """What all sites agree on."""
    plan = common_plan([own.survey() for own in rows], study)
    classes = [own.classes(plan) for own in rows]
    sums = [own.summaries(plan) for own in rows]
    encoding = common_encoding(
        plan, [c for c in classes if c is not None], [own.layout(plan) for own in rows],
        [everything for everything, _ in sums], [training for _, training in sums], study,
    )  # fmt: skip
    return plan, encoding


def simulated(
    study: Deployed, tables: Mapping[str, Path], active: np.ndarray | None = None, opening: Opening | None = None
) -> History:
    """The run of a study in the simulator; `active` [rounds, n]: who took part."""
    silos = twin_silos(study, tables, opening)
    part = study.said.study
    with jax.enable_x64(part.double):
        model = study.model(silos.label_names is not None)
        history = simulate(study.recipe(), model, silos, part.rounds, part.seed, active=active, metrics=())
        jax.block_until_ready(history.models)
    return history


def model_at(history: History, site: str) -> Tree:
    """A site's personal model in the simulator."""
    return history.personal(history.names.index(site))
