"""The memory of every process of a federation over 1,000 tiny rounds and more.

python bench/memory.py [rounds]

It writes memory.md beside itself: a hub and four sites on this machine, over mutual TLS on NVIDIA FLARE.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.memory import Trend, memory  # noqa: E402

WARM = 300


def page(rounds: int, found: list[Trend]) -> str:
    """What was seen."""
    table = "\n".join(f"| {one.process} | {one.megabytes:.1f} | {one.growth:+.2f} |" for one in found)
    return f"""# Memory

{rounds} tiny rounds of federated averaging, a hub and four sites. What every process has of its own in memory (files
that it maps are not counted), looked at once a second, and the slope of the line that fits best after {WARM} rounds.

| process | MB in the end | MB per 1,000 rounds |
|---|--:|--:|
{table}

FLARE keeps a thread for every reply until it cannot be sent again, 12 s here (`RESENDING` in
`deploy/engine/processes.py`): so the hub's job has more memory the quicker rounds follow one another, but not the more
of them there were. With FLARE's own 65 s it grew by 260 MB in the first 1,500 rounds, and stayed there. The process of
`hub start`, whose requests follow the clock and not the rounds, levels off after two minutes.

Written by `python bench/memory.py`.
"""


def main(rounds: int = 1000) -> None:
    """Measure, and write it down."""
    with tempfile.TemporaryDirectory() as folder:
        found = memory(Path(folder), rounds, WARM)
    (HERE / "memory.md").write_text(page(rounds, found))
    print(page(rounds, found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
