"""A federation struck by faults at random, measured: when each was noticed, and how long it took to get over it.

python bench/faults.py [faults] [seed] [seconds]

It writes faults.json and faults.md beside itself. The campaign is that of tests/test_deploy_faults.py: a hub and four
sites on this machine, each with processes of its own, over mutual TLS on NVIDIA FLARE.
"""

import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.campaign import Told, campaign  # noqa: E402


@dataclass
class Row:
    """All faults of one kind."""

    kind: str
    found: list[dict[str, Any]]

    def seconds(self, name: str) -> str:
        """Median and largest of what was measured."""
        known = [one[name] for one in self.found if one[name] is not None]
        some = f", {len(known)} of {len(self.found)}" if len(known) < len(self.found) else ""
        return f"{median(known):.1f} ({max(known):.1f}){some}" if known else "-"

    def cells(self) -> str:
        """A line of the table."""
        missed = median(one["rounds_missed"] for one in self.found)
        return (
            f"| {self.kind} | {len(self.found)} | {self.seconds('lasted')} | {self.seconds('detected')} "
            f"| {self.seconds('recovered')} | {missed:g} |"
        )


def measured(told: Told) -> dict[str, Any]:
    """Plain values."""
    return {**told._asdict(), "outcomes": [one._asdict() for one in told.outcomes], "load": os.getloadavg()[2]}


def page(found: dict[str, Any]) -> str:
    """What the values say."""
    kinds = sorted({one["kind"] for one in found["outcomes"]})
    rows = [Row(kind, [one for one in found["outcomes"] if one["kind"] == kind]) for kind in kinds]
    table = "\n".join(row.cells() for row in rows)
    return f"""# Faults

{len(found["outcomes"])} faults, drawn at random, struck one federation while it ran {found["rounds"]} rounds
of SCAFFOLD in float64: a hub and four sites on one machine of two processors, with mutual TLS over NVIDIA FLARE
(load {found["load"]:.1f}). A round's deadline was 6 s. Seconds, median (largest):

- *lasted*: from the fault to the end of its cause; 0 for a process that was killed and that ours start again.
- *noticed*: from the fault until the journal shows that a site did not answer, or that the hub went on from its state;
  "-" if nobody noticed, because no round was missed; how many were, if not all.
- *back*: from the end of the cause until a round has all four sites again.

| fault | count | lasted | noticed | back | rounds without somebody (median) |
|---|--:|--:|--:|--:|--:|
{table}

Rounds applied twice: {found["twice"]}. Private states on the disk of a site: {found["states_kept"]} at most.
Every finished model differs from the simulator's, when that replays who took part in which round, by
{found["difference"]:.1e} at most.

A process that is killed while it works on a request costs that round its deadline: nobody tells the hub that no answer
will come. A clock an hour ahead changes nothing while connections stay; a new one is refused at an hour at which the
certificate is not valid. Written by `python bench/faults.py`.
"""


def main(faults: int = 50, seed: int = 1, seconds: float = math.inf) -> None:
    """Measure, and write it down."""
    with tempfile.TemporaryDirectory() as folder:
        told = campaign(Path(folder), faults, seed, seconds, say=lambda outcome: print(outcome, flush=True))
    found = measured(told)
    (HERE / "faults.json").write_text(json.dumps(found, indent=1) + "\n")
    (HERE / "faults.md").write_text(page(found))
    print(page(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
