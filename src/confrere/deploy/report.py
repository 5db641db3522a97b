"""The report on a deployed model, made at its own site: from its own rows, the model, and what the hub told of rounds.

The page is that of `confrere.report`. Others' rows are not here: what would need them (who is like whom, who deserves
credit, a comparison over many splits) is left out, and said to be. The page stays at the site.
"""

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confrere.answers import words
from confrere.answers.predictor import Predictor
from confrere.data.silos import Silos
from confrere.deploy.chronicle import Chronicle
from confrere.deploy.finished import CHRONICLE, MODEL, STUDY, left_the_site
from confrere.deploy.opening import Opening
from confrere.deploy.policy import Policy
from confrere.deploy.rows import OwnRows
from confrere.deploy.study import Deployed, study_of
from confrere.plural import plural
from confrere.report.contents import (
    Contents,
    Cost,
    Credit,
    Engineer,
    Estimate,
    Gain,
    Help,
    Hospital,
    Listening,
    Score,
    Similar,
)
from confrere.report.costs import sent_by
from confrere.report.feedback import own_data
from confrere.report.gather import groups_of, model_hash
from confrere.report.helping import answer_in_words, gain_in_words
from confrere.report.learning import learned, trained_alone
from confrere.report.metrics import ALONE, algorithm_title, better_when_larger
from confrere.report.predictions import label_of, scores_on
from confrere.report.sureness import sureness
from confrere.saved import load_model
from confrere.study.cases import digest_of
from confrere.study.study import versions

PEOPLE = "patients"
ELSEWHERE = "The rows of the others are not here"
CHANGED = (
    "The table is not the one that the model was trained on: it was changed since then. What is said of rows is said "
    "of the table as it is now."
)


class Finished(NamedTuple):
    """A finished study at a site: all that its report is made from."""

    study: Deployed
    opening: Opening
    chronicle: Chronicle
    model: Predictor
    manifest: Mapping[str, Any]
    rows: OwnRows
    silos: Silos  # of this site alone

    @property
    def site(self) -> str:
        """The site's name."""
        return self.rows.name


def finished_in(place: Path, policy: Policy) -> Finished:
    """What a site kept of a finished study, and its rows as the study read them."""
    study = study_of((place / STUDY).read_bytes(), place / STUDY)
    opening = Opening.load(place)
    if opening is None:
        raise FileNotFoundError(f"{place} does not say what was agreed on before round 1: ask for the study again")
    chronicle = Chronicle.heard(json.loads((place / CHRONICLE).read_text(encoding="utf-8")))
    saved = load_model(place / MODEL)
    rows = OwnRows(study, policy.name, policy.data)
    encoding = rows.own_encoding(opening.plan, opening.encoding)
    silo = rows.encoded(opening.plan, opening.encoding)
    origin = f"The table of {silo.name}"
    silos = Silos((silo,), encoding.features, encoding.label_names, origin, "real", encoding=encoding)
    return Finished(study, opening, chronicle, saved.model, saved.manifest, rows, silos)


def site_contents(place: Path, policy: Policy, made: str | None = None) -> Contents:
    """All that the report on a finished study says at its site."""
    found = finished_in(place, policy)
    silos, model, part = found.silos, found.model, found.study.said.study
    smallest, label = policy.said.policy.min_group, label_of(silos)
    alone = trained_alone(model, silos, 0)
    sure, predicted = sureness(model, alone, silos, 0, {"algorithms": {}}, PEOPLE, smallest, label)
    groupings, without = groups_of(silos, 0, predicted, None, smallest, {}, PEOPLE)
    digest = digest_of(silos)
    hospital = Hospital(
        found.site, part.algorithm, () if digest == found.manifest["data"]["sha256"] else (CHANGED,),
        help_of(found, alone), listening_of(found), learned(model, alone, silos, 0, {}, label), groupings, without,
        sure, cost_of(found), Credit((), (f"{ELSEWHERE}, so that nobody's worth can be told.",), ""), (),
        model_hash(model), Similar((), (f"{ELSEWHERE}, so that nobody can be compared with {found.site}.",)),
        own_data(silos, 0, smallest, rows=True),
    )  # fmt: skip
    config = {
        "study": found.study.hash, "algorithm": part.algorithm, "options": dict(part.options), "rounds": part.rounds,
        "model": model.model.name, "precision": "float64" if part.double else "float32", "intervals": "none: one split",
        "seeds": [part.seed], "versions": versions(),
    }  # fmt: skip
    return Contents(
        f"What {found.site} learned with the others", made or datetime.date.today().isoformat(), silos.origin, "real",
        model.model.task, label, PEOPLE, "hospital", {found.site: (silos.sizes("train")[0], silos.sizes("test")[0])},
        "the only split", smallest, (), silos.notes, (hospital,), None, Engineer(config, digest, {}, "log_loss", {}),
    )  # fmt: skip


def help_of(found: Finished, alone: Predictor | None) -> Help:
    """Question 1, on the site's own test rows: one split, so that there is no verdict."""
    main = found.study.said.study.algorithm
    X, y = found.silos[0].rows("test")
    if not len(y):
        return Help(main, (), (), "unknown", (f"Not known: {found.site} set no {PEOPLE} aside for test.",))
    models = {main: found.model, **({} if alone is None or main == ALONE else {ALONE: alone})}
    values = {name: scores_on(model, X, y) for name, model in models.items()}
    scores = tuple(Score(name, metric, value, None, 1) for name, own in values.items() for metric, value in own.items())
    gains = tuple(gain(metric, values[main][metric], value) for metric, value in values.get(ALONE, {}).items())
    said = (gain_in_words(one, main, scores) for one in gains)
    return Help(main, scores, gains, "unknown", (answer_in_words(found.site, "unknown", gains), *said))


def gain(metric: str, own: float, rival: float) -> Gain:
    """How much better the model is than one trained alone, on these rows."""
    value = own - rival if better_when_larger(metric) else rival - own
    return Gain(ALONE, metric, Estimate(value), int(value > 0), int(value == 0), int(value < 0), "unknown")


def listening_of(found: Finished) -> Listening:
    """Question 2, as the hub tells it."""
    chronicle, site = found.chronicle, found.site
    shares = chronicle.shares
    said = (
        [words.whom_its_average_heard(site, found.study.said.study.algorithm, shares)]
        if shares
        else [
            "Who counted for how much was weighed at the site itself, from what the others sent, and is not recorded."
        ]
    )
    counts = "; ".join(f"{name} in {count}" for name, count in chronicle.answered.items())
    said.append(f"Of {plural(chronicle.rounds, 'round')}, messages counted of {counts}.")
    if chronicle.abandoned:
        said.append(f"{plural(chronicle.abandoned, 'round')} had too few answers, and changed nothing.")
    if found.opening.refuses:
        said.append(f"Took no part: {', '.join(sorted(found.opening.refuses))}.")
    said.append("All this is what the hub says: it cannot be checked here.")
    return Listening(shares, 0.0, {}, (), (), dict(chronicle.weights), tuple(said))


def cost_of(found: Finished) -> Cost:
    """Question 6: what left this site."""
    sent = sent_by(left_the_site(found.study, found.opening, found.rows, found.chronicle))
    own = sum(entry.numbers.get(found.site, 0) for entry in sent)
    said = (
        "No row of data left this site. What did leave it is listed below; what left the others is not known here, but "
        "it is of the same kind.",
        f"{found.site} sent {own} numbers or words for {algorithm_title(found.study.said.study.algorithm)}, and the "
        "metrics that its policy allows. Rounds are those in which the hub says that its message counted: one that "
        "came late, or in a round that was abandoned, was sent as well, and is not in these numbers.",
    )
    return Cost(sent, (), said)
