"""Write `bench/waffle.md` from finished cells: the WAFFLE paper's table as far as it has been run.

    python bench/waffle_page.py bench/waffle-cells

The cells come from `confrere reproduce waffle --store bench/waffle-cells ...`; each says what it was, when it was run
and how long it took.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from confrere.reproduce.waffle.cells import ABOUT, Cell, from_table
from confrere.reproduce.waffle.methods import METHODS
from confrere.reproduce.waffle.setting import DISTRIBUTIONS
from confrere.reproduce.waffle.table import of_method
from tables import table

PAPERS = {("mnist", "lenet5", 6000, 100), ("cifar10", "dla", 5000, 100)}  # data, model, images of an agent, rounds
PAGE = Path(__file__).with_name("waffle.md")
HEAD = """# The WAFFLE paper's Table 1, run again

Alice's accuracy: best round on test images (as published) / last round / round chosen on validation images; in
brackets the published one, and how far `best` is from it, where model and size are the paper's. Where a cell has
several seeds, these are means, with the standard deviation of `best`. `docs/waffle.md` says what all this means, and
`bench/waffle_page.py` writes this page from the finished cells.

`waffle` is not the paper's to the letter: with networks its corrections are tempered and bounded, both ours, and both
found on seed 1 while looking at B and B*. `waffle_untempered` is the reading without either, and was run on B only.
"""


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
    return tuple(setting[name] for name in ("data", "model", "agents", "rows", "rounds", "lr", "width"))


def section(group: tuple[Any, ...], runs: Sequence[Run]) -> str:
    """One table, with the command that makes it."""
    data, model, agents, rows, rounds, lr, width = group
    cells: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    refuse_doubles(runs)
    for run in runs:
        cells[run.about["method"], run.about["setting"]["distribution"]].append(run.cell)
    seeds = [len(found) for found in cells.values()]
    methods = [name for name in METHODS if any(key[0] == name for key in cells)]
    which = [d for d in DISTRIBUTIONS if any(key[1] == d for key in cells)]
    wide = "" if width is None else f" --width {width}"
    commands = [
        f"confrere reproduce waffle --data {data} --distribution '{one}' --model {model} --agents {agents} "
        f"--rows {rows} --rounds {rounds} --lr {lr:g} --seeds {min(seeds)}{wide} "
        f"--methods {','.join(methods)} --store bench/waffle-cells"
        for one in (["all"] if len(which) == len(DISTRIBUTIONS) else which)
    ]
    dates = sorted({run.about["date"] for run in runs})
    minutes = sum(run.cell.seconds for run in runs) / 60
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    many = f"{max(seeds)} seeds" if min(seeds) == max(seeds) > 1 else "one seed"
    more = f", {max(seeds)} where a spread is given" if min(seeds) < max(seeds) else ""
    said = f"{when}, {minutes:.0f} minutes in all on two cores beside other work; {many}{more}."
    title = f"## {data}, {model}, {agents} agents x {rows} images, {rounds} rounds, learning rate {lr:g}"
    published = data if (data, model, rows, rounds) in PAPERS else ""
    return "\n\n".join([title, "```text\n" + "\n".join(commands) + "\n```", said, *tables(published, cells, methods)])


def refuse_doubles(runs: Sequence[Run]) -> None:
    """Two cells of one method, distribution and seed were made with other numbers, and must not be averaged."""
    seen: set[tuple[Any, ...]] = set()
    for run in runs:
        which = run.about["method"], run.about["setting"]["distribution"], run.about["setting"]["seed"]
        if which in seen:
            raise ValueError(f"there are two cells of {', '.join(map(str, which))}: remove the one that is out of date")
        seen.add(which)


def tables(data: str, cells: dict[tuple[str, str], list[Cell]], methods: Sequence[str]) -> Iterable[str]:
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


def write(folder: Path, page: Path = PAGE) -> None:
    """The page from all cells of a folder, the largest models first."""
    groups: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
    for run in read(folder):
        groups[group_of(run)].append(run)
    order = sorted(groups, key=lambda group: (str(group[0]) != "mnist", -group[3] * group[4], -group[5]))
    page.write_text("\n\n".join([HEAD.rstrip(), *(section(group, groups[group]) for group in order)]) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
