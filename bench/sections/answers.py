"""How long an answer takes: `personalise` for every silo in turn, once everything is compiled.

Cold is the first call of a process, with compilation; warm is every later one, for any silo of the same tables.
"""

import statistics
import time

import confrere as cf
from confrere.data.fetch import DataNotFound

MOST_S = 0.5


def section(quick: bool) -> str:
    """A table of seconds per user."""
    lines = ["## One answer", "", " ".join(__doc__.split()), ""]
    lines += ["| data | silos | cold, s | warm, median, s | range | at most |", "|---|---|---|---|---|---|"]
    for name in ("titanic", "heart_disease"):
        try:
            silos = getattr(cf.data, name)()
        except DataNotFound as error:
            lines.append(f"| {name} | - | skipped: {str(error).splitlines()[0]} | - | - | - |")
            continue
        lines.append(row(name, silos, 1 if quick else 9))
    return "\n".join(lines)


def row(name: str, silos: cf.Silos, repeats: int) -> str:
    """One line of the table."""
    cold = seconds(silos, silos.names[0])
    warm = [seconds(silos, user) for _ in range(repeats) for user in silos.names]
    middle = statistics.median(warm)
    verdict = f"{MOST_S} s, {'kept' if middle < MOST_S else '**missed**'}"
    return f"| {name} | {len(silos)} | {cold:.2f} | {middle:.3f} | {min(warm):.3f} to {max(warm):.3f} | {verdict} |"


def seconds(silos: cf.Silos, user: str) -> float:
    """From silos to a model, shares, relevance and words."""
    began = time.perf_counter()
    assert cf.personalise(silos, user).reason
    return time.perf_counter() - began
