"""Contents of reports that several files test: three small hospitals with sex, age and missing values.

Answers and studies are made by hand, so that nothing needs to be trained for them.
"""

import functools
from dataclasses import replace

import numpy as np
import polars as pl

import confrere as cf
from confrere.answers import Predictor
from confrere.data.source import Shared
from confrere.report import Contents, report_on
from tests.study_helpers import cell, result

NAMES = ("<b>Zürich</b> & co", "Genève", "basel")  # one that would be HTML, if it were not escaped
ROWS = 90
METRICS = ("accuracy", "log_loss", "brier")
ROUNDS = {"auto": 6, "ridge_local": 1, "fedavg": 5}


def hospital_table(seed: int = 0) -> pl.DataFrame:
    """Patients of three hospitals; the last one has its labels the wrong way round."""
    rng = np.random.default_rng(seed)
    count = 3 * ROWS
    age, pressure = rng.integers(15, 90, count), rng.normal(120, 15, count).round()
    woman = rng.random(count) < 0.5
    ill = 0.06 * (age - 50) + 0.8 * woman + 0.03 * (pressure - 120) + rng.logistic(size=count) > 0
    place = np.repeat(NAMES, ROWS)
    return pl.DataFrame({
        "age": [None if k % 11 == 0 else int(a) for k, a in enumerate(age)], "pressure": pressure,
        "sex": np.where(woman, "woman", "man"), "ill": np.where(ill ^ (place == NAMES[2]), "yes", "no"),
        "hospital": place,
    })  # fmt: skip


@functools.cache
def hospital_silos() -> cf.Silos:
    """The table with half of every hospital's rows for test."""
    return cf.Silos.from_table(hospital_table(), label="ill", silo="hospital").split(test=0.5, seed=0)


@functools.cache
def hospital_study() -> cf.StudyResult:
    """Auto, alone and FedAvg over three splits."""
    rng = np.random.default_rng(1)

    def curves(algorithm: str) -> dict[str, np.ndarray]:
        last = {"auto": 0.8, "ridge_local": 0.75, "fedavg": 0.7}[algorithm] + 0.02 * rng.normal()
        rising = np.linspace(0.5, last, ROUNDS[algorithm] + 1)
        if algorithm == "auto":
            rising[:-1] = np.nan
        return {"accuracy": rising[None], "log_loss": (1.2 - rising)[None], "brier": (1 - rising)[None] / 2}

    cells = [
        cell(a, user, seed, np.zeros(ROUNDS[a] + 1), curves=curves(a), train_rows=45, test_rows=45,
             hyper=({"ridge": 1.0} if a == "ridge_local" else {"lr": 0.1},),
             bytes_each=0 if a == "ridge_local" else 84, bytes_total=0 if a == "ridge_local" else 252)
        for a in ROUNDS for user in NAMES for seed in range(3)
    ]  # fmt: skip
    return result(
        cells, METRICS, "resplit", criterion="log_loss", task="classification", tune="cv", folds=5, model="logistic",
        precision="float32", versions={"confrere": "0"}, others="all",
    )  # fmt: skip


def made_answer(user: str) -> cf.Answer:
    """An answer with a model near the law that made the labels."""
    silos = hospital_silos()
    slopes = np.linspace(0.5, 1.0, len(silos.feature_names)) * (-1 if user == NAMES[2] else 1)
    params = {
        "w": np.stack([-slopes / 2, slopes / 2], axis=1).astype(np.float32),
        "b": np.array([0.2, -0.2], np.float32),
    }
    others = [name for name in NAMES if name != user]
    relevance = {name: 0.02 if NAMES[2] in (user, name) else 0.97 for name in others}
    weights = {name: 0.6 if name == user else 0.3 * relevance[name] for name in NAMES}
    predictor = Predictor.of(cf.models.logistic(), [(1.0, params)], silos, silos.index(user))

    def nothing():
        raise AssertionError("a report must not start a run")

    return cf.Answer(
        user=user, algorithm="auto (evidence-weighted borrowing)", model=predictor, weights=weights,
        prior=1 - sum(weights.values()), relevance=relevance, candidates={}, scores={}, rows=45, refused=(), silent=(),
        shared=(*silos.shared, *(Shared(name, "coefficients", 18, "to borrow") for name in others)), findings="",
        notes=(), make_history=nothing, compare=nothing,
    )  # fmt: skip


@functools.cache
def hospital_answers() -> dict[str, cf.Answer]:
    """One answer per hospital."""
    return {name: made_answer(name) for name in NAMES}


@functools.cache
def hospital_contents() -> Contents:
    """The report on all three."""
    return report_on(
        hospital_silos(), NAMES, hospital_study(), hospital_answers(), groups=["sex", "age", "pressure"],
        made="2026-01-31", seconds={"the study": 1.5},
    )  # fmt: skip


def with_rounds(contents: Contents) -> Contents:
    """The same as if the first model had gone round by round."""
    first, *rest = contents.hospitals
    weights = {name: tuple(0.5 + 0.1 * k - 0.04 * r for r in range(6)) for k, name in enumerate(NAMES)}
    return replace(contents, hospitals=(replace(first, listening=replace(first.listening, rounds=weights)), *rest))
