"""The table: every method in every distribution, beside what was published.

Three readings of a run. `best`: the best accuracy at any round, on test rows, as the paper reports; it looks at the
test rows to choose, and so flatters every method. `last`: after the last round. `chosen`: at the round that is best on
validation rows, which is what Alice could really have had.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from confrere.reproduce.waffle.cells import Cell, Store, facts, run_cell
from confrere.reproduce.waffle.methods import METHODS, Method
from confrere.reproduce.waffle.published import published
from confrere.reproduce.waffle.setting import Setting, check, silos_of

NEARLY = 0.99  # of the final accuracy: when a method counts as there
Cells = dict[str, dict[str, list[Cell]]]  # distribution -> method -> one cell per seed


def run_table(
    setting: Setting, distributions: Sequence[str], methods: Sequence[str] | Mapping[str, Method],
    seeds: Sequence[int], store: Store, progress: Callable[[int, int], None] | None = None,
) -> Cells:  # fmt: skip
    """All cells of a table; what the store has is not run again, and each new one is stored at once.

    `methods` are names of the benchmark's, or a table of one's own.
    """
    rows = methods if isinstance(methods, Mapping) else {name: METHODS[name] for name in methods}
    settings = [setting._replace(distribution=d, seed=s) for d in distributions for s in seeds]
    for one in settings:
        check(one)
    cells: Cells = {d: {m: [] for m in methods} for d in distributions}
    total = len(settings) * len(methods) * setting.rounds
    done = 0
    for one in settings:
        silos = None
        for method, recipe_for in rows.items():
            recipe = recipe_for(one)
            about = facts(one, method, recipe)
            cell = store.get(about)
            if cell is None:
                silos = silos_of(one) if silos is None else silos
                cell = run_cell(one, recipe, silos, within(progress, done, total))
                store.put(about, cell)
            cells[one.distribution][method].append(cell)
            done += setting.rounds
            if progress is not None:
                progress(done, total)
    return cells


def within(progress: Callable[[int, int], None] | None, before: int, total: int) -> Callable[[int, int], None] | None:
    """The progress of one run as a part of all."""
    return None if progress is None else lambda done, _: progress(before + done, total)


def table_report(setting: Setting, cells: Cells, seeds: Sequence[int]) -> dict[str, Any]:
    """The table as plain words and numbers."""
    rows = {
        d: {m: of_method(setting.data, d, m, found) for m, found in by_method.items()} for d, by_method in cells.items()
    }
    return {"setting": setting_report(setting), "seeds": list(seeds), "cells": rows}


def setting_report(setting: Setting) -> dict[str, Any]:
    """What all cells of a table have in common."""
    what = {
        k: v for k, v in setting.facts().items() if k not in ("distribution", "seed", "batch_rows") and v is not None
    }
    return {**what, "batch": setting.batch}


def of_method(data: str, distribution: str, method: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """One entry of the table: mean and standard deviation over seeds (0 for a single one)."""
    readings: Mapping[str, Callable[[Cell], float]] = {
        "best": best, "last": last, "chosen": chosen, "rounds_to_99": rounds_to_99,
    }  # fmt: skip
    spread = {name: mean_and_std([read(cell) for cell in cells]) for name, read in readings.items()}
    return {**spread, "published": published(data, distribution, method), "seconds": sum(c.seconds for c in cells)}


def mean_and_std(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation over seeds."""
    return {"mean": float(np.mean(values)), "std": float(np.std(values))}


def best(cell: Cell) -> float:
    """The best accuracy after any round."""
    return float(cell.accuracy[1:].max())


def last(cell: Cell) -> float:
    """The accuracy after the last round."""
    return float(cell.accuracy[-1])


def chosen(cell: Cell) -> float:
    """The accuracy after the first round that is best on validation rows."""
    return float(cell.accuracy[1:][np.argmax(cell.validation[1:])])


def rounds_to_99(cell: Cell) -> int:
    """The first round whose accuracy is 99 % of the last one's."""
    return 1 + int(np.argmax(cell.accuracy[1:] >= NEARLY * cell.accuracy[-1]))
