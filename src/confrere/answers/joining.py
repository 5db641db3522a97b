"""Answers as a study's cells: what `personalise` gave for every user and seed, beside the algorithms of a study.

It spares a second program: an answer for every split is all that is needed both to serve and to compare.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere.algorithms import evidence
from confrere.answers.answer import Answer
from confrere.answers.predictor import Predictor
from confrere.data.silos import Silos
from confrere.models import METRICS
from confrere.models.model import Task
from confrere.study.cases import Case, cases_of, round_up
from confrere.study.cell import Cell
from confrere.study.contenders import Contender, contenders
from confrere.study.result import StudyResult
from confrere.study.runner import bytes_per_round

Answered = Mapping[int, tuple[Silos, Mapping[str, Answer]]]  # seed -> the silos of its split, an answer per user


def with_answers(result: StudyResult, answered: Answered, name: str = "auto") -> StudyResult:
    """The result with evidence-weighted answers in front, measured on the users' test rows as the study measures."""
    check_answered(result, answered, name)
    [contender] = contenders({name: evidence}, {}, {}, 1)
    sent: tuple[int, int] | None = None
    cells: list[Cell] = []
    for seed, (silos, answers) in answered.items():
        model = next(iter(answers.values())).model.model
        for case in cases_of(seed, silos, [silos.index(u) for u in result.users], result.config["others"], model, 2):
            sent = sent or bytes_per_round(model, contender, case)
            cells.append(cell_of(contender, case, silos, answers[case.name], tuple(result.config["metrics"]), sent))
    ordered = sorted(cells, key=lambda c: result.users.index(c.user))  # by user, then by seed, as a study's
    about = {name: {"static": {k: str(v) for k, v in contender.static.items()}, "rounds": contender.rounds,
                    "candidates": [{}]}}  # fmt: skip
    config = {**result.config, "algorithms": {**about, **result.config["algorithms"]}}
    return StudyResult(config, (*ordered, *result.cells_))


def cell_of(
    contender: Contender, case: Case, silos: Silos, answer: Answer, metrics: tuple[str, ...], sent: tuple[int, int]
) -> Cell:
    """An answer as a cell: only the end of its rounds is measured."""
    X, y = silos[case.user].rows("test")
    measured = measure(answer.model, X, y, metrics, round_up(max(silos.sizes("test"))))
    before = np.full(contender.rounds, np.nan)
    return Cell(
        algorithm=contender.name, user=case.name, seed=case.seed, train_rows=case.train_rows, test_rows=case.test_rows,
        hyper=({},), round=(contender.rounds,), score=(float("nan"),),
        curves={metric: np.append(before, value)[None] for metric, value in measured.items()},
        partners=np.full((1, contender.rounds), -1), borrowed=np.full((1, contender.rounds), np.nan),
        bytes_each=sent[0], bytes_total=sent[1], tried=np.zeros((0, 0)),
    )  # fmt: skip


def measure(predictor: Predictor, X: np.ndarray, y: np.ndarray, names: tuple[str, ...], size: int) -> dict[str, float]:
    """Metrics on rows, padded to a size so that one program does for all."""
    padded = np.zeros((size, X.shape[1]))
    padded[: len(y)] = X
    if predictor.model.task == "classification":
        told, labels = predictor.predict_proba(padded), np.zeros(size, np.int32)
    else:
        told, labels = predictor.predict(padded)[:, None], np.zeros(size, X.dtype)
    labels[: len(y)] = y
    found = _metrics(names, predictor.model.task, told, labels, np.arange(size) < len(y))
    return {name: float(value) for name, value in found.items()}


@partial(jax.jit, static_argnums=(0, 1))
def _metrics(names: tuple[str, ...], task: Task, told: jax.Array, y: jax.Array, live: jax.Array) -> dict[str, Any]:
    scores = jnp.log(jnp.maximum(told, 1e-30)) if task == "classification" else told
    return {name: METRICS[name](scores, y, live) for name in names}


def check_answered(result: StudyResult, answered: Answered, name: str) -> None:
    """Every seed and user of the study needs an answer."""
    if name in result.algorithms:
        raise ValueError(f"the study has an algorithm {name!r} already: give the answers another name")
    if list(answered) != list(result.config["seeds"]):
        raise ValueError(f"answers for the seeds {list(answered)}, but the study has {list(result.config['seeds'])}")
    for seed, (_, answers) in answered.items():
        lacking = [user for user in result.users if user not in answers]
        if lacking:
            raise ValueError(f"seed {seed}: there is no answer for {', '.join(lacking)}")
