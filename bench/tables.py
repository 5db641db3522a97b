"""Tables of the pages, in Markdown."""

from collections.abc import Sequence


def table(corner: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A Markdown table."""
    lines = [f"| {corner} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    return "\n".join([*lines, *(f"| `{name}` | {' | '.join(found)} |" for name, found in rows)])
