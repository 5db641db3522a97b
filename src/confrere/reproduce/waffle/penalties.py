"""Weight Erosion's distance penalty, chosen on validation rows.

The appendix with the paper's penalties is lost. The authors' earlier report wants all others' weights at zero at about
two thirds of the rounds. So candidates are p_d = penalty / R, which erodes as much over a whole run whatever its length
R; among those with which the others have gone within `WINDOW` of the rounds in every distribution, the one with the
best accuracy on Alice's validation rows, at her best round there, in the mean over distributions and seeds. Her test
rows are not looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from confrere.reproduce.waffle.cells import Cell, Store
from confrere.reproduce.waffle.methods import Method, own_penalty, weight_erosion
from confrere.reproduce.waffle.setting import ALICE, Setting
from confrere.reproduce.waffle.table import run_table, setting_report

WINDOW = (2 / 3 - 0.1, 2 / 3 + 0.1)  # near two thirds of the rounds
CANDIDATE = "weight_erosion "
Tried = Mapping[float, Mapping[str, Sequence[Cell]]]  # penalty -> distribution -> one cell per seed


def run_penalties(
    setting: Setting, distributions: Sequence[str], penalties: Sequence[float], seeds: Sequence[int], store: Store,
    progress: Callable[[int, int], None] | None = None,
) -> dict[float, dict[str, list[Cell]]]:  # fmt: skip
    """Weight Erosion with every penalty in every distribution; what the store has is not run again."""
    if min(penalties, default=-1) < 0:
        raise ValueError(f"penalties must be numbers of 0 or more, not {list(penalties)}")
    names = {penalty: name_of(setting, penalty) for penalty in penalties}
    methods: dict[str, Method] = {name: lambda s, c=c: weight_erosion(s, c) for c, name in names.items()}
    cells = run_table(setting, distributions, methods, seeds, store, progress)
    return {c: {d: cells[d][name] for d in distributions} for c, name in names.items()}


def name_of(setting: Setting, penalty: float) -> str:
    """How a candidate's cells are called: the table's own penalty is the table's own method."""
    return "weight_erosion" if penalty == own_penalty(setting) else f"{CANDIDATE}{penalty:g}/R"


def penalty_of(name: str, setting: Setting) -> float:
    """The penalty of cells that are called so."""
    return own_penalty(setting) if name == "weight_erosion" else float(name.removeprefix(CANDIDATE).removesuffix("/R"))


def faded(cell: Cell) -> float:
    """The share of the rounds after which the others' weights are 0 for good; infinite if they are not at the end."""
    if cell.weights is None:
        raise ValueError("this run has no weights")
    others = np.delete(cell.weights, ALICE, axis=1).sum(axis=1)
    rounds = len(others)
    heard = int(np.flatnonzero(others).max(initial=-1)) + 1
    return heard / rounds if heard < rounds else float("inf")


def validated(cell: Cell) -> float:
    """The accuracy on Alice's validation rows, at the best round there."""
    return float(cell.validation[1:].max())


def choose(tried: Tried) -> float | None:
    """The penalty with the best mean accuracy on validation rows among those that let the others fade in time.

    Of equals the one whose others fade nearest to two thirds; None if no penalty does.
    """
    low, high = WINDOW
    in_time = {
        penalty: by_distribution
        for penalty, by_distribution in tried.items()
        if all(low <= faded(cell) <= high for cells in by_distribution.values() for cell in cells)
    }

    def merit(penalty: float) -> tuple[float, float]:
        cells = [cell for found in in_time[penalty].values() for cell in found]
        accuracy, when = (float(np.mean([read(cell) for cell in cells])) for read in (validated, faded))
        return round(accuracy, 9), -abs(when - 2 / 3)

    return max(in_time, key=merit, default=None)


def penalties_report(setting: Setting, tried: Tried, seeds: Sequence[int]) -> dict[str, Any]:
    """What was tried and what was chosen, as plain words and numbers; faded is None where it does not happen."""
    candidates = {
        f"{penalty:g}": {d: entry(cells) for d, cells in by_distribution.items()}
        for penalty, by_distribution in tried.items()
    }
    return {
        "setting": setting_report(setting), "seeds": list(seeds), "window": list(WINDOW), "candidates": candidates,
        "chosen": choose(tried),
    }  # fmt: skip


def entry(cells: Sequence[Cell]) -> dict[str, float | None]:
    """One candidate in one distribution: means over seeds."""
    when = float(np.mean([faded(cell) for cell in cells]))
    return {"faded": when if np.isfinite(when) else None, "validation": float(np.mean([validated(c) for c in cells]))}
