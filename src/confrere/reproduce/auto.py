"""The study behind `auto`: which purely local candidates it averages, decided on data sets kept for that choice.

The choice followed a criterion that was written down before any confirmation cell was run (`chosen_by_criterion`):

    of the policies that on no reserved cell are worse than the four borrowing candidates by more than .010 log-loss,
    the one with the smallest mean log-loss regret, every data set counting the same; of those within .0005 of it, the
    one that comes first in the order of POLICIES from the simplest to the most elaborate.

CHOSEN is what came out, with 20 seeds, and what `auto` does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from confrere.reproduce import auto_confirmation as later
from confrere.reproduce.auto_cells import Cell, reserved
from confrere.reproduce.auto_policies import POLICIES, Policy, Row, by_family, row_of
from confrere.reproduce.auto_runs import ALL, Outcome, run_cell

HARM = 0.010
TIE = 0.0005
CHOSEN = "present: no local candidate"
WITH_LOCAL = 1  # the policy with both local candidates, always
NOTICEABLE = 0.010  # log-loss regret from which a cell counts as lost
QUICK = {
    "reserved": ("weather/het/40", "weather/flip/40"),
    "confirmation": ("simulated/big/20", "simulated/iid/20"),
    "amounts": ("linear/iid/20",),
    "all_flipped": ("simulated/all/60",),
    "one_flipped": ("simulated/one/60",),
}


def chosen_by_criterion(rows: Sequence[Row], policies: Sequence[Policy] = POLICIES) -> Policy:
    """The policy that the criterion picks from a table of reserved cells."""
    regret = by_family(rows, np.array([row.regret()[:, 0] for row in rows]))
    harm = np.array([row.change() for row in rows]).max(axis=0)
    best = regret[harm <= HARM].min()
    return policies[int(np.flatnonzero((harm <= HARM) & (regret <= best + TIE))[0])]


def policy_table(rows: Sequence[Row], policies: Sequence[Policy] = POLICIES) -> list[dict[str, Any]]:
    """Regrets and changes of every policy over some cells."""
    regret, change = np.array([row.regret() for row in rows]), np.array([row.change() for row in rows])
    mean, mean_change = by_family(rows, regret), by_family(rows, change)
    return [
        {
            "policy": policy.name,
            "log_loss_regret": {"mean": float(mean[p, 0]), "worst": float(regret[:, p, 0].max()),
                                "worst_cell": rows[int(regret[:, p, 0].argmax())].name},
            "accuracy_regret": {"mean": float(mean[p, 1]), "worst": float(regret[:, p, 1].max())},
            "change": {"mean": float(mean_change[p]), "worst": float(change[:, p].max()),
                       "worst_cell": rows[int(change[:, p].argmax())].name, "best": float(change[:, p].min())},
        }
        for p, policy in enumerate(policies)
    ]  # fmt: skip


def cell_table(rows: Sequence[Row], chosen: int) -> list[dict[str, Any]]:
    """Cell by cell: the chosen policy beside fixed candidates, and the change if both local ones always took part."""
    table = []
    for row in rows:
        log_loss, accuracy = row.policies[chosen]
        regret = row.regret()[chosen]
        table.append({
            "cell": row.name, "best": ALL[int(row.fixed[:, 0].argmin())], "log_loss": float(log_loss),
            "accuracy": float(accuracy), "regret": float(regret[0]), "accuracy_regret": float(regret[1]),
            "local": float(row.fixed[ALL.index("local"), 0]), "pool": float(row.fixed[ALL.index("pool"), 0]),
            "with_local": float(row.change()[WITH_LOCAL]), "with_local_error": float(row.error[WITH_LOCAL]),
        })  # fmt: skip
    return table


def rejection(outcome: Outcome, chosen: Policy) -> dict[str, Any]:
    """With labels the wrong way round: relevance of the first silo, and how far the answer is from ridge Local."""
    row = row_of(outcome, [chosen])
    relevance = outcome.seen.relevance
    return {
        "cell": outcome.cell.name,
        "above_local": float(row.policies[0, 0] - row.fixed[ALL.index("local"), 0]),
        "relevance": float(relevance[:, 0].mean()),
        "highest_relevance": float(relevance[:, 0].max()),
        "others_relevance": float(relevance[:, 1:].mean()) if relevance.shape[1] > 1 else None,
    }


def study(seeds: int = 20, quick: bool = False, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """The whole study as one JSON object; `quick` takes a few cells only."""
    parts: dict[str, list[Cell]] = {
        "reserved": reserved(), "confirmation": later.confirmation(), "amounts": later.amounts(),
        "all_flipped": later.all_flipped(), "one_flipped": later.one_flipped(),
    }  # fmt: skip
    if quick:
        parts = {part: [cell for cell in cells if cell.name in QUICK[part]] for part, cells in parts.items()}
    done, total = 0, sum(len(cells) for cells in parts.values())
    found: dict[str, list[Outcome]] = {}
    for part, cells in parts.items():
        found[part] = []
        for cell in cells:
            found[part].append(run_cell(cell, range(seeds)))
            done += 1
            if progress is not None:
                progress(done, total)
    return report(found, seeds, quick)


def report(found: dict[str, list[Outcome]], seeds: int, quick: bool) -> dict[str, Any]:
    """The tables from the outcomes of all parts."""
    rows = {part: [row_of(outcome) for outcome in found[part]] for part in ("reserved", "confirmation", "amounts")}
    index = next(p for p, policy in enumerate(POLICIES) if policy.name == CHOSEN)
    tables = {part: cell_table(rows[part], index) for part in rows}
    lost = [row for part in ("reserved", "confirmation") for row in tables[part] if row["regret"] > NOTICEABLE]
    return {
        "seeds": seeds,
        "quick": quick,
        "chosen": CHOSEN,
        "criterion_picks": chosen_by_criterion(rows["reserved"]).name,
        "policies": policy_table(rows["reserved"]),
        "confirmed": policy_table(rows["confirmation"]),
        "cells": tables,
        "lost": sorted(lost, key=lambda row: -row["regret"]),
        "all_flipped": [rejection(outcome, POLICIES[index]) for outcome in found["all_flipped"]],
        "one_flipped": [rejection(outcome, POLICIES[index]) for outcome in found["one_flipped"]],
    }
