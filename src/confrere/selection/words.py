"""A selection in words and as a table."""

import io
import math
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from confrere.selection.selection import Selection

TITLES = {
    "ndoye": "Transfer loss",
    "influence": "Influence",
    "gradients": "Mean weight",
    "discrepancy": "Discrepancy",
}
WIDTH = 100


def signed(value: float) -> str:
    """A difference with its sign, a zero without.

    >>> signed(0.01234), signed(-0.5), signed(0.0)
    ('+0.0123', '-0.5000', '0.0000')
    """
    return f"{value:+.4f}" if round(value, 4) else "0.0000"


def between(low: float, high: float) -> str:
    """An interval, or that there is none.

    >>> between(-0.01, 0.02), between(math.nan, math.nan)
    ('-0.0100 to +0.0200', 'no interval')
    """
    return f"{signed(low)} to {signed(high)}" if math.isfinite(low) and math.isfinite(high) else "no interval"


def size_of(count: int) -> str:
    """Bytes for people.

    >>> size_of(84), size_of(20_480)
    ('84 B', '20.5 kB')
    """
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB"


def table_of(selection: "Selection") -> Table:
    """Silos from best to worst, those without a score last; names are shown as they are, brackets too."""
    better = "lower" if selection.lower_is_better else "higher"
    user = selection.names[selection.user]
    table = Table(
        title=Text(f"Whom {user} might learn with, by {selection.method} ({better} is better)"),
        caption=Text(
            f"{selection.unit}. 95 % intervals: {selection.resampled}. Bytes have none. Chosen: {selection.rule}."
        ),
    )
    score = TITLES.get(selection.method, "Score")
    for title, justify in (("Silo", "left"), (score, "right"), ("95 % interval", "right"), ("Takes part", "left"),
                           ("Sent", "right"), ("Received", "right")):  # fmt: skip
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    up, down = selection.bytes_up, selection.bytes_down
    for name in (*selection.ranking, *selection.silent):
        i = selection.names.index(name)
        known = name not in selection.silent
        value = signed(float(selection.scores[i])) if known else "no score"
        reach = between(float(selection.low[i]), float(selection.high[i])) if known else ""
        table.add_row(Text(name), value, reach, part_of(selection, name), size_of(int(up[i])), size_of(int(down[i])))
    return table


def part_of(selection: "Selection", name: str) -> str:
    """Whether a silo takes part, by how much, and who decided."""
    share = float(selection.prior[selection.names.index(name)])
    said = "no" if share == 0 else "yes" if share == 1 else f"{share:.2f}"
    return f"{said} (by hand)" if name in selection.overridden else said


def plain_text(selection: "Selection") -> str:
    """The table and the reasons, as text."""
    page = io.StringIO()
    Console(file=page, width=WIDTH, markup=False, emoji=False, color_system=None).print(table_of(selection))
    reasons = [f"{name}: {selection.reasons[name]}" for name in (*selection.ranking, *selection.silent)]
    return "\n".join([page.getvalue().rstrip(), *reasons])
