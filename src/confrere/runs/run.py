"""Carrying out a comparison in a folder, so that it survives whatever stops it.

    config.json      what is compared, with paths that hold anywhere
    journal.jsonl    when it began, was resumed and ended, on which data; processors' time by algorithm, and energy
    cells/           every finished cell, written to the disk and renamed: there as a whole or not at all
    study.json, cells.parquet, curves.parquet     the result, once all cells are there
    report.html      the page, if it is wanted (see runs/report.py)

A cell has the same bits whichever others run beside it, so that a run that was interrupted, at any moment, and resumed
ends as one that was not. Where several processes share a run (after `jax.distributed.initialize`), the first of them
keeps the folder; the others write their finished cells into it, or into one of the same name on their own machine.
"""

import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
from pydantic import ValidationError

from confrere import algorithms, models
from confrere.answers.personalise import fitting_model
from confrere.budget import bytes_of
from confrere.checks import WrongField
from confrere.data.choose import check_user, chosen_silos
from confrere.data.fetch import DataNotFound
from confrere.data.silos import Silos
from confrere.disk import write_through, write_whole
from confrere.insight.footprint.rapl import Meter
from confrere.models import Model
from confrere.runs.config import FOR_NETWORKS, Config
from confrere.study import Study, StudyResult
from confrere.study.cases import digest_of
from confrere.study.sharing import told_by_all
from confrere.transforms import Compression, compression_named

CONFIG, JOURNAL, CELLS, RESULT = "config.json", "journal.jsonl", "cells", "study.json"
FOR_LINEAR = {
    "auto": "can be compared for linear models only (`confrere train` has it for networks, too)",
    "ridge_local": "is for linear models only, as networks have no ridge optimum",
}
AS_THEY_ARE = ("auto", "local", "ridge_local")  # sums that are sent once, and what sends nothing
FOR_LAYERS = ("fedper", "fedrep")
OR_NETWORK = 'name others, or take the model "mlp"'
OR_LINEAR = 'or take the model "linear"'
Progress = Callable[[int, int], None]


class Finished(NamedTuple):
    """A run that came to its end."""

    folder: Path
    config: Config
    silos: Silos
    result: StudyResult


def run(config: Config, folder: str | os.PathLike[str], progress: Progress | None = None) -> Finished:
    """Begin a run in a new folder, and carry it out."""
    place = Path(folder)
    if jax.process_index() > 0:
        return beside_the_first(place)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        hint = f"; `confrere resume {place}` continues it" if (place / CONFIG).is_file() else ""
        raise ValueError(f"{place} is there already{hint}: choose another folder")
    silos = chosen_silos(config.choice())
    study = study_of(config, silos)
    study.plan()  # what cannot be right is refused before anything is written
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / CONFIG, config.model_dump_json(indent=1))
    note(place, "begun", data=digest_of(silos))
    everybody_here(config.model_dump_json())
    return carried_out(config, place, silos, study, progress)


def beside_the_first(place: Path) -> Finished:
    """A process's share of a run that the first process has begun."""
    config = Config.model_validate_json(everybody_here(""))
    silos = chosen_silos(config.choice())
    return Finished(place, config, silos, study_of(config, silos).run(place / CELLS, spent=spent_in(place)))


def everybody_here(config: str) -> str:
    """The first process's configuration, once all processes are there."""
    return config if jax.process_count() == 1 else told_by_all(config)[0]


def resume(folder: str | os.PathLike[str], progress: Progress | None = None) -> Finished:
    """Continue a run where it stopped; the data must be what they were. A finished run is only read."""
    place = Path(folder)
    if jax.process_index() > 0:
        return beside_the_first(place)
    config, silos = what_was_begun(place)
    begun = any(entry["event"] == "begun" for entry in journal(place))
    note(place, "resumed" if begun else "begun", data=digest_of(silos))
    everybody_here(config.model_dump_json())
    return carried_out(config, place, silos, study_of(config, silos), progress)


def opened(folder: str | os.PathLike[str]) -> Finished:
    """A run that came to its end, read from its folder; nothing is computed and nothing is written."""
    place = Path(folder)
    config, silos = what_was_begun(place)
    if not (place / RESULT).is_file():
        raise ValueError(f"the run in {place} is not finished: `confrere resume {place}` goes on with it")
    return Finished(place, config, silos, StudyResult.load(place))


def what_was_begun(place: Path) -> tuple[Config, Silos]:
    """What the run in a folder is about, and its data, which must be there and what they were."""
    if not (place / CONFIG).is_file():
        raise FileNotFoundError(f"{place} holds no run: there is no {CONFIG} in it")
    config = config_in(place)
    try:
        silos = chosen_silos(config.choice())
    except FileNotFoundError as problem:
        raise DataNotFound(f"the data of the run in {place} are gone: {problem}") from problem
    begun = [entry for entry in journal(place) if entry["event"] == "begun"]
    if begun and begun[0]["data"] != digest_of(silos):
        raise ValueError(f"the data have changed since the run in {place} began: begin a new one")
    return config, silos


def config_in(place: Path) -> Config:
    """The configuration that a folder keeps; what is no configuration is told in one line."""
    file = place / CONFIG
    try:
        return Config.model_validate_json(file.read_bytes())
    except ValidationError as problem:
        first = problem.errors()[0]
        where = f" in {'.'.join(map(str, first['loc']))}" if first["loc"] else ""
        raise ValueError(
            f"{file} is damaged ({first['msg'].lower()}{where}): put a copy of it back, or begin a new run in another "
            "folder"
        ) from None


def carried_out(config: Config, place: Path, silos: Silos, study: Study, progress: Progress | None) -> Finished:
    """All cells that are not there yet, and the result."""
    meter, began = Meter(), time.process_time()
    result = study.run(place / CELLS, metered(progress, meter), spent_in(place))
    result.save(place)
    joules = meter.joules
    measured = {} if joules is None else {"joules": joules}
    note(place, "finished", cells=len(result.cells_), cpu_seconds=time.process_time() - began, **measured)
    return Finished(place, config, silos, result)


def metered(progress: Progress | None, meter: Meter) -> Progress:
    """The same progress, at every step of which the energy counters are read, before they can go round twice."""

    def step(done: int, total: int) -> None:
        meter.sample()
        if progress is not None:
            progress(done, total)

    return step


def spent_in(place: Path) -> Callable[[str, int, float], None]:
    """What the journal is told of the work for every algorithm."""
    return lambda algorithm, experiments, seconds: note(
        place, "computed", algorithm=algorithm, experiments=experiments, cpu_seconds=seconds
    )


def study_of(config: Config, silos: Silos) -> Study:
    """The study that a configuration describes."""
    part = config.study
    model = model_of(config, silos)
    with told_of_field("compress"):
        way = None if part.compress is None else compression_named(part.compress)
    makers: dict[str, Any] = {name: compressing(maker_of(name, model), name, way) for name in part.algorithms}
    for user in [] if part.users == "all" else part.users:
        check_user(user, silos.names, config.choice())
    with told_of_field("budget"):
        limit = bytes_of(part.budget)
    return Study(
        silos, model, makers, users=part.users, seeds=part.seeds, grid=part.grid, rounds=part.rounds,
        others=part.others, budget=limit,
    )  # fmt: skip


@contextlib.contextmanager
def told_of_field(name: str) -> Iterator[None]:
    """Say of what is wrong in which field of the study it is."""
    try:
        yield
    except ValueError as problem:
        raise WrongField(("study", name), str(problem)) from problem


def compressing(maker: Any, name: str, way: Compression | None) -> Any:
    """An algorithm with compressed messages; sums that are sent once are left as they are."""
    if way is None or name in AS_THEY_ARE:
        return maker

    @functools.wraps(maker)
    def make(*given: Any, **more: Any) -> Any:
        return maker(*given, **more).compressed(way)

    return make


def model_of(config: Config, silos: Silos) -> Model:
    """The model that fits the label."""
    fitting = fitting_model(silos)
    return models.mlp(task=fitting.task) if config.study.model == "mlp" else fitting


def maker_of(name: str, model: Model) -> Any:
    """An algorithm by its name."""
    if model.name == "mlp" and name in FOR_LINEAR:
        others = ", ".join(FOR_NETWORKS)
        raise WrongField(("study", "algorithms"), f"{name} {FOR_LINEAR[name]}: name others ({others}), {OR_LINEAR}")
    if model.name != "mlp" and name in FOR_LAYERS:
        said = f"{name} keeps the last layer in the silo, and a linear model has but one: {OR_NETWORK}"
        raise WrongField(("study", "algorithms"), said)
    return algorithms.evidence if name == "auto" else getattr(algorithms, name)


def note(place: Path, event: str, **facts: Any) -> None:
    """Add a line to the journal, and see it to the disk."""
    line = json.dumps({"event": event, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **facts})
    write_through(place / JOURNAL, f"{line}\n".encode(), "ab")


def journal(place: Path) -> list[dict[str, Any]]:
    """The lines of the journal; one that was cut off in the middle is passed over."""
    found = []
    path = place / JOURNAL
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found
