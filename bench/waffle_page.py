"""Write `bench/waffle.md` from finished cells: the WAFFLE paper's table as far as it has been run.

    python bench/waffle_page.py bench/waffle-cells bench/waffle-why

The cells come from `confrere reproduce waffle --store bench/waffle-cells ...`, and those that ask why some are not what
was published from `bench/waffle_why.py`; each says what it was, when it was run and how long it took.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from confrere.reproduce.waffle.cells import ABOUT, Cell, Store, from_table
from confrere.reproduce.waffle.methods import METHODS
from confrere.reproduce.waffle.penalties import CANDIDATE, WINDOW, choose, entry, penalty_of
from confrere.reproduce.waffle.setting import DISTRIBUTIONS, Setting
from confrere.reproduce.waffle.table import of_method
from tables import table
from waffle_why import QUESTIONS, find

Cells = dict[tuple[str, str], list[Cell]]  # method and distribution -> one cell per seed
PAPERS = {("mnist", "lenet5", 6000, 100), ("cifar10", "dla", 5000, 100)}  # data, model, images of an agent, rounds
PAGE = Path(__file__).with_name("waffle.md")
HEAD = """# The WAFFLE paper's Table 1, run again

Alice's accuracy: best round on test images (as published) / last round / round chosen on validation images; in
brackets the published one, and how far `best` is from it, where model and size are the paper's. Where a cell has
several seeds, these are means, with the standard deviation of `best`. `docs/waffle.md` says what all this means, and
`bench/waffle_page.py` writes this page from the finished cells.

`waffle` is not the paper's to the letter: with networks its corrections are tempered and bounded, both ours, and both
found on seed 1 while looking at B and B*; other seeds there were run afterwards, with nothing changed.
`waffle_untempered` is the reading without either, and was run on B only.
"""
WHY = "python bench/waffle_why.py bench/waffle-why"
ASKED = """Best round on test images / last round / round chosen on validation images. What each was is in
`bench/waffle_why.py`; a run that is in the table above already is not repeated here."""


class Run(NamedTuple):
    """A finished cell with what it says of itself."""

    about: dict[str, Any]
    cell: Cell


def read(folder: Path) -> list[Run]:
    """All cells of a folder."""
    found = []
    for path in sorted(folder.glob("*.parquet")):
        about = json.loads(pl.read_parquet_metadata(path)[ABOUT])
        found.append(Run(about, from_table(pl.read_parquet(path), about)))
    return found


def group_of(run: Run) -> tuple[Any, ...]:
    """What the cells of one table have in common."""
    setting = run.about["setting"]
    names = ("data", "model", "agents", "rows", "rounds", "lr", "width", "batch_rows")
    return tuple(setting.get(name) for name in names)


def section(group: tuple[Any, ...], runs: Sequence[Run]) -> str:
    """One table, with the command that makes it."""
    data, model, agents, rows, rounds, lr, _, _ = group
    cells: Cells = defaultdict(list)
    refuse_doubles(runs)
    for run in runs:
        cells[run.about["method"], run.about["setting"]["distribution"]].append(run.cell)
    methods = [name for name in METHODS if any(key[0] == name for key in cells)]
    dates = sorted({run.about["date"] for run in runs})
    minutes = sum(run.cell.seconds for run in runs) / 60
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    said = f"{when}, {minutes:.0f} minutes in all on two cores beside other work; {how_many(cells)}."
    commands = commands_for(group, cells, methods)
    title = f"## {data}, {model}, {agents} agents x {rows} images, {rounds} rounds, learning rate {lr:g}"
    published = data if (data, model, rows, rounds) in PAPERS else ""
    return "\n\n".join([title, "```text\n" + "\n".join(commands) + "\n```", said, *tables(published, cells, methods)])


def how_many(cells: Cells) -> str:
    """How many seeds the cells have."""
    few, *more = sorted({len(found) for found in cells.values()})
    said = "one seed" if few == 1 else f"{few} seeds"
    return said + (f", {' or '.join(map(str, more))} where a spread is given" if more else "")


def commands_for(group: tuple[Any, ...], cells: Cells, methods: Sequence[str]) -> list[str]:
    """What makes a table: the seeds that all cells have, then those that some have beyond."""
    few = min(map(len, cells.values()))
    which = [d for d in DISTRIBUTIONS if any(key[1] == d for key in cells)]
    rows = [(d, few, methods) for d in (["all"] if len(which) == len(DISTRIBUTIONS) else which)]
    for d in which:
        for seeds in sorted({len(found) for key, found in cells.items() if key[1] == d and len(found) > few}):
            rows.append((d, seeds, [m for m in methods if len(cells.get((m, d), ())) == seeds]))
    return [command(group, d, seeds, f"--methods {','.join(names)}") for d, seeds, names in rows]


def command(group: tuple[Any, ...], distribution: str, seeds: int, what: str) -> str:
    """What makes the cells of a table."""
    data, model, agents, rows, rounds, lr, width, batch = group
    more = ("" if width is None else f" --width {width}") + ("" if batch is None else f" --batch {batch}")
    return (
        f"confrere reproduce waffle --data {data} --distribution '{distribution}' --model {model} --agents {agents} "
        f"--rows {rows} --rounds {rounds} --lr {lr:g} --seeds {seeds}{more} {what} --store bench/waffle-cells"
    )


def refuse_doubles(runs: Sequence[Run]) -> None:
    """Two cells of one method, distribution and seed were made with other numbers, and must not be averaged."""
    seen: set[tuple[Any, ...]] = set()
    for run in runs:
        which = run.about["method"], run.about["setting"]["distribution"], run.about["setting"]["seed"]
        if which in seen:
            raise ValueError(f"there are two cells of {', '.join(map(str, which))}: remove the one that is out of date")
        seen.add(which)


def tables(data: str, cells: Cells, methods: Sequence[str]) -> Iterable[str]:
    """Accuracy, and rounds to 99 % of the last accuracy."""
    shown = [d for d in DISTRIBUTIONS if any(key[1] == d for key in cells)]
    stars = [d.replace("*", r"\*") for d in shown]
    yield table("", stars, [(m, [accuracy(data, d, m, cells.get((m, d))) for d in shown]) for m in methods])
    yield "Rounds until the accuracy is 99 % of the last one:"
    yield table("", stars, [(m, [nearly(data, d, m, cells.get((m, d))) for d in shown]) for m in methods])


def accuracy(data: str, distribution: str, method: str, cells: Sequence[Cell] | None) -> str:
    """Three readings, and the published number."""
    if not cells:
        return ""
    entry = of_method(data, distribution, method, cells)
    best, last, chosen = (100 * entry[name]["mean"] for name in ("best", "last", "chosen"))
    said = entry["published"]
    beside = "" if said is None else f" [{100 * said:.2f}, {best - 100 * said:+.2f}]"
    spread = "" if len(cells) == 1 else f" ± {100 * entry['best']['std']:.2f}"
    return f"{best:.2f}{spread} / {last:.2f} / {chosen:.2f}{beside}"


def nearly(data: str, distribution: str, method: str, cells: Sequence[Cell] | None) -> str:
    """The mean over seeds of the first round that is nearly there."""
    return "" if not cells else f"{of_method(data, distribution, method, cells)['rounds_to_99']['mean']:.0f}"


def penalties(group: tuple[Any, ...], runs: Sequence[Run]) -> str:
    """Weight Erosion with several penalties: when the others have gone, and Alice's accuracy on validation images."""
    found: dict[float, dict[str, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        about = run.about["setting"]
        found[penalty_of(run.about["method"], Setting(**about))][about["distribution"]].append(run.cell)
    shown = [d for d in DISTRIBUTIONS if any(d in row for row in found.values())]
    rows = [(f"{penalty:g}", [candidate(found[penalty].get(d)) for d in shown]) for penalty in sorted(found)]
    complete = {penalty: row for penalty, row in found.items() if len(row) == len(shown)}
    chosen = choose(complete)
    low, high = (f"{100 * share:.0f}" for share in WINDOW)
    verdict = (
        f"No complete row has all of them between {low} and {high} %."
        if chosen is None
        else f"The best mean accuracy among the complete rows that fade at {low} to {high} % everywhere: {chosen:g}."
    )
    tried = ",".join(f"{penalty:g}" for penalty in sorted(found))
    commands = [command(group, one, 1, f"--penalties {tried}") for one in shown]
    title = f"## Weight Erosion's penalty, {group[4]} rounds of {group[3]} images"
    said = (
        "Penalty p_d times the rounds: share of the rounds after which the others' weights are zero, and accuracy on "
        "Alice's validation images at the best round there."
    )
    parts = [title, "```text\n" + "\n".join(commands) + "\n```", said]
    return "\n\n".join([*parts, table("", [d.replace("*", r"\*") for d in shown], rows), verdict])


def candidate(cells: Sequence[Cell] | None) -> str:
    """When the others have gone, and the accuracy."""
    if not cells:
        return ""
    found = entry(cells)
    when = "never" if found["faded"] is None else f"{100 * found['faded']:.0f} %"
    return f"{when} / {100 * (found['validation'] or 0):.2f}"


def reasons(folder: Path) -> str:
    """Runs that differ from the table in one thing."""
    store, parts = Store(folder), ["## One thing changed at a time", f"```text\n{WHY}\n```", ASKED]
    for question, variations in QUESTIONS.items():
        found = {name: find(store, question, name) for name in variations}
        rows = [(name, [accuracy("", "", "", [cell])]) for name, cell in found.items() if cell is not None]
        if not rows:
            continue
        rounds = next(iter(variations.values())).setting.rounds
        parts += [f"**{question}**, {rounds} rounds, seed 1 unless it says otherwise:", table("", ["accuracy"], rows)]
    return "\n\n".join(parts)


def write(folder: Path, why: Path, page: Path = PAGE) -> None:
    """The page from all cells of a folder, the largest models first; runs of penalties have a table of their own."""
    groups: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    tried: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in read(folder):
        (tried if run.about["method"].startswith(CANDIDATE) else groups)[group_of(run)].append(run)
    for group in tried:
        tried[group] += [run for run in groups[group] if run.about["method"] == "weight_erosion"]
    whole = [group for group in groups if group not in tried or len(groups[group]) > len(DISTRIBUTIONS)]
    order = sorted(whole, key=lambda group: (str(group[0]) != "mnist", -group[3] * group[4], -group[5]))
    sections = [section(group, groups[group]) for group in order]
    sections += [penalties(group, tried[group]) for group in sorted(tried, key=lambda group: -group[4])]
    page.write_text("\n\n".join([HEAD.rstrip(), *sections, reasons(why)]) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
