"""Tables of the study of `auto` for the terminal, written so that they can be pasted into a Markdown page."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from confrere.cli.common import console


def show_study(report: dict[str, Any]) -> None:
    """All tables of the study."""
    seeds = report["seeds"]
    show_policies(f"Policies on the reserved cells, {seeds} seeds", report["policies"])
    print(f"chosen: {report['chosen']}; the criterion picks, on these cells: {report['criterion_picks']}\n")
    show_policies(f"Policies on the confirmation cells, {seeds} seeds", report["confirmed"])
    show_cells("Confirmation, cell by cell", report["cells"]["confirmation"])
    show_cells("Where it still loses: log-loss regret above .010, all cells", report["lost"])
    show_cells("Least squares (mean square instead of log-loss)", report["cells"]["amounts"], amounts=True)
    show_rejection("All other silos flipped", report["all_flipped"])
    show_rejection("One silo flipped", report["one_flipped"])


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One table, as wide as it needs to be: no number is cut."""
    table = Table(box=box.MARKDOWN)
    for i, name in enumerate(header):
        table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    print(title)
    console(width=1000).print(table)


def show_policies(title: str, policies: Sequence[dict[str, Any]]) -> None:
    """Regret against the best fixed candidate, and change against the first policy."""
    header = ("policy", "regret", "worst", "accuracy regret", "worst", "change", "best", "worst", "in the cell")
    rows = []
    for p in policies:
        loss, accuracy, change = p["log_loss_regret"], p["accuracy_regret"], p["change"]
        numbers = (loss["mean"], loss["worst"], accuracy["mean"], accuracy["worst"])
        changes = (change["mean"], change["best"], change["worst"])
        cell = change["worst_cell"] if change["worst"] > 0 else ""
        rows.append((p["policy"], *map(signed, numbers), *map(signed, changes), cell))
    show(title, header, rows)


def show_cells(title: str, cells: Sequence[dict[str, Any]], amounts: bool = False) -> None:
    """The chosen policy in every cell, and what it would be with both local candidates."""
    header = ["cell", "best candidate", "mean square" if amounts else "log-loss", "regret", "local", "pool"]
    header += ["with both local"] if amounts else ["with both local", "accuracy", "accuracy regret"]
    rows = []
    for c in cells:
        fixed = [f"{c[name]:.4f}" for name in ("local", "pool")]
        both = f"{signed(c['with_local'])} ± {c['with_local_error']:.4f}"
        row = [c["cell"], c["best"], f"{c['log_loss']:.4f}", signed(c["regret"]), *fixed, both]
        rows.append(row if amounts else [*row, f"{c['accuracy']:.4f}", signed(c["accuracy_regret"])])
    show(title, header, rows)


def show_rejection(title: str, cells: Sequence[dict[str, Any]]) -> None:
    """What becomes of silos whose labels are the wrong way round."""
    header = (
        "cell",
        "log-loss above ridge Local",
        "relevance of the first silo",
        "highest of all seeds",
        "of the others",
    )
    rows = []
    for c in cells:
        others = "" if c["others_relevance"] is None else f"{c['others_relevance']:.3f}"
        numbers = (f"{c['relevance']:.3f}", f"{c['highest_relevance']:.3f}", others)
        rows.append((c["cell"], signed(c["above_local"]), *numbers))
    show(title, header, rows)


def signed(number: float) -> str:
    """Four decimals with a sign."""
    return f"{number:+.4f}"
