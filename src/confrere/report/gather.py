"""Gathering: from silos, a study and one answer per user to all that the report says."""

import datetime
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from confrere.answers.answer import Answer
from confrere.answers.predictor import Predictor
from confrere.answers.worth import CONSIDER_ALONE
from confrere.data.silos import Silos
from confrere.insight.similarity import Similarity
from confrere.report.choosing import chosen_before
from confrere.report.contents import Contents, Curve, Engineer, Footprint, Grouping, Hospital
from confrere.report.costs import cost_of
from confrere.report.credit import credited
from confrere.report.feedback import own_data
from confrere.report.grouping import chosen_columns, columns_of_test_rows, grouping, meant
from confrere.report.helping import helped, main_algorithm
from confrere.report.learning import learned, trained_alone
from confrere.report.listening import listened
from confrere.report.metrics import ALONE
from confrere.report.predictions import Predicted, label_of
from confrere.report.similar import compared, resemblance, similar
from confrere.report.steps import Meanings
from confrere.report.sureness import sureness
from confrere.report.why import explained_by
from confrere.study.cases import digest_of
from confrere.study.cell import When
from confrere.study.result import ALL, StudyResult

MIN_GROUP = 5


def report_on(
    silos: Silos,
    users: Iterable[int | str],
    result: StudyResult,
    answers: Mapping[str, Answer] | Sequence[Answer],
    *,
    title: str = "Learning together, hospital by hospital",
    groups: Sequence[str] | None = None,
    min_group: int = MIN_GROUP,
    meanings: Meanings | None = None,
    people: str = "patients",
    place: str = "hospital",
    label: str | None = None,
    at: When = "last",
    main: str | None = None,
    seconds: Mapping[str, float] | None = None,
    overridden: Sequence[str] = (),
    made: str | None = None,
    seed: int | None = None,
    alone: Mapping[str, Predictor] | None = None,
    footprint: Footprint | None = None,
) -> Contents:
    """All that the report says about some users.

    Args:
        silos: the silos that the answers were made on; the users' test rows, if there are any, are what calibration and
            groups are measured on.
        result: a study over several seeds with the model of the report ("auto" or "evidence", or `main`), and
            `ridge_local` and `fedavg` as rivals.
        answers: what `personalise` gave for every user, by name or in a list.
        groups: columns to look at groups of test rows by; by default sex and age, if they are there.
        min_group: no group of fewer rows is shown.
        meanings: what the codes of a column mean, {"sex": {0: "women", 1: "men"}}, for the names of groups and
            of coefficients.
        people, place: what rows and silos are called on the page.
        label: what is predicted, in words; by default the name of the table's column, if the silos came from one.
        at: which of the study's two models is told about, "last" or "best".
        seconds: how long what took, for the section on costs.
        overridden: what was chosen otherwise than the defaults, in words.
        made: the date on the page; by default today.
        seed: the study's seed that split these silos, if one did; groups and calibration are said to be of that split.
        footprint: what the comparison cost, for the same section.
        alone: by user, the model trained alone on these silos; by default the ridge optimum, where the model has one.

    >>> import numpy as np, confrere as cf
    >>> from confrere.answers.joining import with_answers
    >>> rng = np.random.default_rng(0)
    >>> def hospital(rows):
    ...     X = rng.normal(size=(rows, 3))
    ...     return X, X @ [1.0, -1.0, 0.5] + rng.logistic(size=rows) > 0
    >>> silos = cf.Silos.from_arrays([hospital(60), hospital(300), hospital(300)], names=["a", "b", "c"])
    >>> silos = silos.split(test=0.5, seed=0)
    >>> answers = {"a": cf.personalise(silos, "a")}
    >>> rivals = cf.Study(silos, cf.models.logistic(), [cf.ridge_local], users=["a"], seeds=1).run()
    >>> contents = report_on(silos, ["a"], with_answers(rivals, {0: (silos, answers)}), answers, groups=["x0"])
    >>> contents.hospitals[0].help.words[0]
    'Not known: for a it was measured on a single split, so that there is no interval.'
    >>> [(g.name, g.rows) for g in contents.hospitals[0].groupings[0].groups][0]
    ('under -0.5', 10)
    """
    places = [silos.index(user) for user in users]
    by_name = answers if isinstance(answers, Mapping) else {answer.user: answer for answer in answers}
    check_given(silos, places, result, by_name, min_group, main)
    chosen = main or main_algorithm(result)
    predicted = label or label_of(silos)
    alike = compared(silos, min_group, people)
    hospitals = tuple(
        hospital(
            silos,
            p,
            result,
            by_name[silos.names[p]],
            chosen,
            groups,
            min_group,
            meanings or {},
            people,
            predicted,
            at,
            (alone or {}).get(silos.names[p]),
            alike,
            len(places) == 1,
        )
        for p in places
    )
    sizes = zip(silos.names, silos.sizes("train"), silos.sizes("test"), strict=True)
    return Contents(
        title=title, made=made or datetime.date.today().isoformat(), origin=silos.origin, kind=silos.kind,
        task=str(result.config["task"]), label=predicted, people=people, place=place,
        sizes={name: (train, test) for name, train, test in sizes}, split=split_in_words(result, seed),
        min_group=min_group, overridden=tuple(overridden), notes=silos.notes, hospitals=hospitals,
        overall=helped(result, ALL, chosen, at) if len(result.users) > 1 and len(places) > 1 else None,
        engineer=Engineer(
            dict(result.config), digest_of(silos), dict(seconds or {}), curve_metric(result), keys_of(result)
        ), resemblance=resemblance(alike), footprint=footprint,
    )  # fmt: skip


def split_in_words(result: StudyResult, seed: int | None) -> str:
    """Which split groups and calibration are about."""
    count = len(result.config["seeds"])
    if count == 1:
        return "the only split" if seed is None else f"the only split, of seed {seed}"
    return (
        f"one split beside the study's {count}" if seed is None else f"one of the {count} splits, that of seed {seed}"
    )


def keys_of(result: StudyResult) -> dict[str, tuple[int, ...]]:
    """The JAX key of every seed, as its numbers."""
    seeds = map(int, result.config["seeds"])
    return {str(seed): tuple(map(int, jax.random.key_data(jax.random.key(seed)))) for seed in seeds}


def hospital(
    silos: Silos, user: int, result: StudyResult, answer: Answer, main: str, groups: Sequence[str] | None,
    min_group: int, meanings: Meanings, people: str, label: str, at: When, by_itself: Predictor | None,
    alike: Similarity | str, single: bool,
) -> Hospital:  # fmt: skip
    """All that the report says about one user."""
    by_itself = by_itself or trained_alone(answer.model, silos, user, ridge_of(result, answer.user))
    sure, found = sureness(answer.model, by_itself, silos, user, result.config, people, min_group, label)
    groupings, without = groups_of(silos, user, found, groups, min_group, meanings, people)
    notes = tuple(n for n in answer.notes if CONSIDER_ALONE not in n)  # question 1 answers that over all splits
    return Hospital(
        answer.user, answer.algorithm, (*notes, *answer.advice), helped(result, answer.user, main, at),
        listened(answer), learned(answer.model, by_itself, silos, user, meanings, label), groupings, without, sure,
        cost_of(answer, result, main), credited(silos, user, answer, result), curves_of(result, answer.user),
        model_hash(answer.model), similar(alike, user),
        own_data(silos, user, min_group, rows=single), explained_by(answer, silos, user),
        chosen_before(silos, user, result, min_group),
    )  # fmt: skip


def groups_of(
    silos: Silos, user: int, found: Predicted | None, asked: Sequence[str] | None, min_group: int,
    meanings: Meanings, people: str,
) -> tuple[tuple[Grouping, ...], str]:  # fmt: skip
    """The groups of every column, or why there are none."""
    if found is None:
        return (), f"No {people} were set aside for test, so that groups cannot be compared."
    columns = {name: meant(v, meanings.get(name, {})) for name, v in columns_of_test_rows(silos, user).items()}
    chosen = chosen_columns(list(columns), asked)
    if not chosen:
        return (), "There is no column called sex or age; name the columns to look at, and they are shown here."
    return tuple(grouping(name, columns[name], found, min_group, people) for name in chosen), ""


def ridge_of(result: StudyResult, user: str) -> float:
    """The ridge with which the study trained alone; 1 if it did not."""
    cells = result.of(ALONE, user)
    return float(cells[0].hyper[0].get("ridge", 1.0)) if cells else 1.0


def curves_of(result: StudyResult, user: str) -> tuple[Curve, ...]:
    """The criterion round by round, mean over seeds; where only the end was measured, there is only the end."""
    table = result.curves(curve_metric(result)).to_dicts()
    return tuple(
        Curve(name, tuple(finite(r["mean"]) for r in table if r["algorithm"] == name and r["user"] == user))
        for name in result.algorithms
    )


def curve_metric(result: StudyResult) -> str:
    """The criterion, if it was measured on test rows; else the first metric."""
    criterion = str(result.config["criterion"])
    return criterion if criterion in result.config["metrics"] else result.metric(None)


def finite(value: float) -> float | None:
    """A number, or None."""
    return float(value) if np.isfinite(value) else None


def model_hash(predictor: Predictor) -> str:
    """SHA-256 over the units, the weights and the parameters, leaf by leaf."""
    found = hashlib.sha256(repr(tuple(predictor.units)).encode())
    for weight, params in predictor.members:
        found.update(repr(weight).encode())
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            array = np.ascontiguousarray(leaf)
            found.update(f"{jax.tree_util.keystr(path)} {array.shape} {array.dtype.str}".encode())
            found.update(array.tobytes())
    return found.hexdigest()


def check_given(
    silos: Silos, users: Sequence[int], result: StudyResult, answers: Mapping[str, Any], min_group: int,
    main: str | None,
) -> None:  # fmt: skip
    """Every user needs an answer and a place in the study."""
    if not users:
        raise ValueError("users: name one at least")
    if isinstance(min_group, bool) or not isinstance(min_group, int) or min_group < 1:
        raise ValueError(f"min_group must be a whole number above 0, not {min_group!r}")
    if main is not None and main not in result.algorithms:
        raise ValueError(f"main: the study has no {main!r}; it has {', '.join(result.algorithms)}")
    for name in (silos.names[p] for p in users):
        if name not in answers:
            raise ValueError(f"there is no answer for {name}: make one with personalise(silos, {name!r})")
        if name not in result.users:
            raise ValueError(f"the study has no user {name}; it has {', '.join(result.users)}")
