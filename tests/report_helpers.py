"""Contents of reports that several files test: three small hospitals with sex, age and missing values."""

import functools
from dataclasses import replace

import numpy as np
import polars as pl

import confrere as cf
from confrere.report import Contents, report_on

NAMES = ("Genève", "<b>Zürich</b> & co", "basel")  # one that would be HTML, if it were not escaped


def hospital_table(seed: int = 0, rows: int = 90) -> pl.DataFrame:
    """Patients of three hospitals; the last one has its labels the wrong way round."""
    rng = np.random.default_rng(seed)
    count = 3 * rows
    age, pressure = rng.integers(15, 90, count), rng.normal(120, 15, count).round()
    woman = rng.random(count) < 0.5
    ill = 0.06 * (age - 50) + 0.8 * woman + 0.03 * (pressure - 120) + rng.logistic(size=count) > 0
    place = np.repeat(NAMES, rows)
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
    """Auto, alone and FedAvg over three random splits."""
    silos = cf.Silos.from_table(hospital_table(), label="ill", silo="hospital")
    methods = {"auto": cf.evidence, "ridge_local": cf.ridge_local, "fedavg": cf.fedavg}
    return cf.Study(silos, cf.models.logistic(), methods, seeds=3, rounds=5, grid={"lr": [0.1, 1.0]}).run()


@functools.cache
def hospital_answers() -> dict[str, cf.Answer]:
    """One answer per hospital."""
    silos = hospital_silos()
    return {name: cf.personalise(silos, name) for name in silos.names}


@functools.cache
def hospital_contents() -> Contents:
    """The report on all three."""
    silos = hospital_silos()
    return report_on(
        silos, silos.names, hospital_study(), hospital_answers(), groups=["sex", "age", "pressure"], made="2026-01-31",
        seconds={"the study": 1.5},
    )  # fmt: skip


def with_rounds(contents: Contents) -> Contents:
    """The same as if the first model had gone round by round."""
    first, *rest = contents.hospitals
    weights = {name: tuple(0.5 + 0.1 * k - 0.04 * r for r in range(6)) for k, name in enumerate(NAMES)}
    return replace(contents, hospitals=(replace(first, listening=replace(first.listening, rounds=weights)), *rest))
