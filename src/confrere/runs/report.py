"""The report on a run: the study's result, and for every user the model of one of its splits."""

import calendar
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confrere.answers import Answer, AnswerWarning, personalise
from confrere.answers.predictor import Predictor
from confrere.answers.ready import ready_answer
from confrere.data.silos import Silos
from confrere.insight.footprint.compared import compared, table
from confrere.recipe import Recipe
from confrere.report import Contents, report_on, write_report
from confrere.report.contents import Footprint
from confrere.report.helping import main_algorithm
from confrere.report.metrics import DESCENT, MAIN
from confrere.runs.run import Finished, Progress, journal, study_of
from confrere.study import Study, StudyResult
from confrere.study.cases import seeded_silos
from confrere.study.study import for_rounds

PAGE = "report.html"
REPLICAS = 30  # behind the intervals of single predictions
WORDS: dict[str, dict[str, Any]] = {  # of data sets with a name
    "titanic": {
        "title": "Who should learn with whom? Four groups of Titanic passengers", "people": "passengers",
        "place": "group", "label": "survival",
    },
    "heart_disease": {
        "title": "Heart disease: should these hospitals learn together?", "meanings": {"sex": {0: "women", 1: "men"}},
    },
    "breast_cancer": {"label": "the diagnosis of a tumour"},
    "diabetes": {"label": "disease progression after one year"},
}  # fmt: skip


def write_run_report(
    finished: Finished,
    users: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    page: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    country: str | None = None,
    watts: float | None = None,
) -> Path:
    """Write the report of a run, by default into its folder: there as a whole or not at all."""
    contents = run_contents(finished, users, groups, progress, country, watts)
    return write_report(contents, finished.folder / PAGE if page is None else page)


def run_contents(
    finished: Finished,
    users: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    progress: Progress | None = None,
    country: str | None = None,
    watts: float | None = None,
) -> Contents:
    """All that the report of a run says; `progress` is called after every user."""
    config, result = finished.config, finished.result
    chosen = list(result.users if users is None else dict.fromkeys(users))
    for user in chosen:
        if user not in result.users:
            raise ValueError(f"the run in {finished.folder} has no user {user!r}; it has {', '.join(result.users)}")
    study = study_of(config, finished.silos)
    [(seed, split)] = seeded_silos(finished.silos, study.seeds[:1])
    main = main_algorithm(result)
    answers: dict[str, Answer] = {}
    alone: dict[str, Predictor] = {}
    for user in chosen:
        answers[user] = answer_of(study, split, seed, user, result, main)
        if alone_by_steps(study, main):
            alone[user] = answer_of(study, split, seed, user, result, DESCENT).model
        if progress is not None:
            progress(len(answers), len(chosen))
    named = config.data.path if isinstance(config.data.path, str) else ""
    return report_on(
        split, chosen, result, answers, groups=groups, main=main, seed=seed, alone=alone,
        seconds=seconds_of(finished.folder), footprint=footprint_of(finished, country, watts),
        overridden=[f"{name}: {value}" for name, value in config.overridden.items()], **WORDS.get(named, {}),
    )  # fmt: skip


def footprint_of(finished: Finished, country: str | None, watts: float | None) -> Footprint:
    """What the run cost, as a table with words."""
    found = compared(finished.result, journal(finished.folder), country, watts)
    titles, rows = table(found)
    kept = [k for k, title in enumerate(titles) if title not in ("rounds", "one silo at most")]  # told above
    return Footprint(tuple(titles[k] for k in kept), tuple(tuple(row[k] for k in kept) for row in rows), found.words)


def alone_by_steps(study: Study, main: str) -> bool:
    """Whether the study trained models alone that have no optimum to be told from the rows."""
    asked = {contender.name for contender in study.contenders}
    return study.settings.model.name not in ("linear", "logistic") and DESCENT in asked - {main}


def answer_of(study: Study, split: Silos, seed: int, user: str, result: StudyResult, main: str) -> Answer:
    """The model that the study measured for a user on one split, with its numbers as they were tuned there."""
    model, others = study.settings.model, study.settings.others
    if main in MAIN:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AnswerWarning)  # they are among its notes
            return personalise(split, user, "auto", model, others=others, uncertainty=REPLICAS)
    contender = next(c for c in study.contenders if c.name == main)
    [cell] = [c for c in result.of(main, user) if c.seed == seed]
    numbers = dict(cell.hyper[cell.row("last")])
    place = split.index(user)
    hyper: dict[str, Any] = numbers | ({"user": place} if contender.personal else {})
    rounds = cell.partners.shape[1]  # fewer than asked for where a budget stopped it
    contender = for_rounds(contender, rounds)
    recipe = Recipe(contender.make, contender.static, hyper, contender.name)
    key = study.key(main, place, seed, contender.candidates.index(numbers))
    start = study.start(seed, split)
    return ready_answer(split, place, recipe, model, rounds, others=others, seed=key, params=start)


def seconds_of(folder: Path) -> dict[str, float]:
    """How long the run took, if nothing interrupted it."""
    first_two = [entry for entry in journal(folder) if entry["event"] != "computed"][:2]
    if [entry["event"] for entry in first_two] != ["begun", "finished"]:
        return {}
    began, ended = (calendar.timegm(time.strptime(entry["time"], "%Y-%m-%dT%H:%M:%SZ")) for entry in first_two)
    return {"the whole comparison": float(ended - began)}
