"""Cells: one method in one setting, run once. Finished ones are kept, so that a table can grow in several goes.

A cell is a Parquet file, named by a hash of all that determines it: one line per round with the accuracy on Alice's
test and validation rows, her training loss and the weight of every agent. What it was is written in the file, too.
"""

import hashlib
import io
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from confrere._version import __version__
from confrere.data.silos import Silos
from confrere.disk import write_whole
from confrere.history import row_for
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.reproduce.waffle.methods import ALONE
from confrere.reproduce.waffle.setting import ALICE, Setting, model_of
from confrere.simulate import simulate
from confrere.study.store import fingerprint

FORMAT = 1
ABOUT = "confrere"  # the key under which a file says what it holds
WEIGHT = "weight_"


class Cell(NamedTuple):
    """A finished run: rounds 0..R (0: before training)."""

    accuracy: np.ndarray  # [R + 1] on Alice's test rows
    validation: np.ndarray  # [R + 1]
    loss: np.ndarray  # [R + 1] of training
    weights: np.ndarray | None  # [R, n] as they counted for Alice's model; None where there are none
    seconds: float


def facts(setting: Setting, method: str, recipe: Recipe) -> dict[str, Any]:
    """All that determines a cell."""
    numbers = {name: float(value) for name, value in recipe.hyper.items()}
    static = {name: values_of(value) if callable(value) else value for name, value in recipe.static.items()}
    return {
        "format": FORMAT, "setting": setting.facts(), "method": method, "algorithm": recipe.name, "static": static,
        "numbers": numbers,
    }  # fmt: skip


def values_of(schedule: Callable[[Any], Any]) -> list[float]:
    """What a function of the progress gives: a name does not say what it does."""
    return [float(schedule(t)) for t in np.linspace(0, 1, 101)]


def run_cell(
    setting: Setting, recipe: Recipe, silos: Silos, progress: Callable[[int, int], None] | None = None,
    model: Model | None = None,
) -> Cell:  # fmt: skip
    """Run one recipe in one setting; `model` in place of the setting's own."""
    alone = recipe.name in ALONE
    began = time.perf_counter()
    history = simulate(
        recipe, model or model_of(setting), silos.only([ALICE]) if alone else silos, setting.rounds, setting.seed,
        user=ALICE, metrics=["accuracy"], record=["weights"], progress=progress,
    )  # fmt: skip
    shares = None if alone else history.shares
    weights = None if shares is None else row_for(shares, ALICE, history.per_silo)
    seconds = time.perf_counter() - began
    loss = np.asarray(history.loss)
    return Cell(history.metrics["accuracy"], history.validation["accuracy"], loss, weights, seconds)


class Store:
    """Finished cells in a folder; without a folder, nowhere."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def path(self, about: dict[str, Any]) -> Path | None:
        """Where a cell is kept."""
        return None if self.folder is None else self.folder / f"{fingerprint(about)}.parquet"

    def get(self, about: dict[str, Any]) -> Cell | None:
        """A finished cell, or None; one that cannot be read is computed again."""
        path = self.path(about)
        if path is None or not path.is_file():
            return None
        try:
            table, said = pl.read_parquet(path), json.loads(pl.read_parquet_metadata(path)[ABOUT])
            if said["checksum"] != checksum(table):
                raise ValueError("its checksum is wrong")
            return from_table(table, said)
        except (OSError, ValueError, KeyError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
            warnings.warn(f"{path} is damaged ({problem}): this cell is computed again", stacklevel=2)
            return None

    def put(self, about: dict[str, Any], cell: Cell) -> None:
        """Keep a finished cell: whole, or not at all."""
        path = self.path(about)
        if path is None:
            return
        table, buffer = to_table(cell), io.BytesIO()
        said = {
            **about, "version": __version__, "seconds": cell.seconds, "date": time.strftime("%Y-%m-%d"),
            "checksum": checksum(table),
        }  # fmt: skip
        table.write_parquet(buffer, metadata={ABOUT: json.dumps(said, default=repr)})
        write_whole(path, buffer.getvalue())


def checksum(table: pl.DataFrame) -> str:
    """A hash of what a table holds."""
    columns = b"".join(name.encode() + table[name].to_numpy().tobytes() for name in table.columns)
    return hashlib.sha256(columns).hexdigest()


def to_table(cell: Cell) -> pl.DataFrame:
    """One line per round."""
    columns = {
        "round": np.arange(len(cell.accuracy)), "accuracy": cell.accuracy, "validation": cell.validation,
        "loss": cell.loss,
    }  # fmt: skip
    for i, weights in enumerate([] if cell.weights is None else cell.weights.T):
        columns[f"{WEIGHT}{i}"] = np.concatenate([[np.nan], weights])
    return pl.DataFrame(columns)


def from_table(table: pl.DataFrame, about: dict[str, Any]) -> Cell:
    """A cell as it was written."""
    names = [name for name in table.columns if name.startswith(WEIGHT)]
    weights = table.select(names).to_numpy()[1:] if names else None
    accuracy, validation, loss = (table[name].to_numpy() for name in ("accuracy", "validation", "loss"))
    return Cell(accuracy, validation, loss, weights, float(about["seconds"]))
