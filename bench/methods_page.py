"""Write `bench/methods.md` from what `confrere reproduce methods` printed: every method on real silos.

confrere reproduce methods --seeds 10 --store cells --json > bench/methods.json
python bench/methods_page.py bench/methods.json

"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confrere.cli.comparison_tables import every_method_tables
from tables import table

PAGE = Path(__file__).with_name("methods.md")
HEAD = """# Every method on real silos

The groups of Titanic passengers and the four hospitals of heart disease, a linear model, the learning rate of every
method tuned for every user by cross-validation on the user's training rows; half of the user's rows are for testing.
Means over users and splits, the lowest log-loss first. Differences are with `{alone}`, training alone at its best,
split by split, with 95 % intervals that know that all splits share their rows (Nadeau and Bengio): where one has zero
inside, the splits do not tell the method from training alone."""


def page_of(report: dict[str, Any]) -> Iterator[str]:
    """The page, paragraph by paragraph."""
    yield HEAD.format(alone=report["alone"])
    command = f"confrere reproduce methods --seeds {report['seeds']} --store cells --json > bench/methods.json"
    yield f"```text\n{command}\n```"
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    yield f"Written on {report['written']}; {versions}."
    for name, (header, rows) in every_method_tables(report):
        yield f"## {name}"
        yield table(header[0], header[1:], [(method, cells) for method, *cells in rows])


def write(report: Path, page: Path = PAGE) -> None:
    """The page from the report."""
    page.write_text("\n\n".join(page_of(json.loads(report.read_text()))) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
