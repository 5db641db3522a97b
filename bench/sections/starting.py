"""How long a person waits: from the command to the answer, in fresh processes.

`confrere demo` the first time compiles its programs; later it finds them in the user's cache. Cold is with an empty
cache, warm with the one that the cold run left.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("confrere"))
MOST_S = {"confrere --version": 0.3, "confrere demo, cold": 60.0}


def section(quick: bool) -> str:
    """A table of waits in seconds."""
    repeats, seeds = (3, ("--seeds", "1")) if quick else (21, ())
    waits = {
        "python -c pass": [wait([sys.executable, "-c", "pass"]) for _ in range(repeats)],
        "confrere --version": [wait([COMMAND, "--version"]) for _ in range(repeats)],
        "confrere --help": [wait([COMMAND, "--help"]) for _ in range(repeats)],
        "python -c 'import confrere'": [wait([sys.executable, "-c", "import confrere"]) for _ in range(repeats)],
    }
    cold, warm = demos(1 if quick else 3, seeds)
    waits |= {"confrere demo, cold": cold, "confrere demo, warm": warm}
    lines = ["## Starting", "", " ".join(__doc__.split()), ""]
    lines += ["| command | median, s | range | processes | at most |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(row(what, times) for what, times in waits.items())])


def row(what: str, times: list[float]) -> str:
    """One line of the table."""
    middle, most = statistics.median(times), MOST_S.get(what)
    verdict = "-" if most is None else f"{most:g} s, {'kept' if middle < most else '**missed**'}"
    return f"| `{what}` | {middle:.2f} | {min(times):.2f} to {max(times):.2f} | {len(times)} | {verdict} |"


def demos(repeats: int, options: tuple[str, ...]) -> tuple[list[float], list[float]]:
    """`confrere demo` with an empty cache and again with the one it left, so often."""
    cold, warm = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            command = [COMMAND, "demo", "--quiet", "--out", f"{folder}/report", *options]
            cold.append(wait(command, f"{folder}/compiled"))
            warm.append(wait(command, f"{folder}/compiled"))
    return cold, warm


def wait(command: list[str], cache: str | None = None) -> float:
    """Seconds from the start of a process to its end."""
    environment = dict(os.environ) | ({"JAX_COMPILATION_CACHE_DIR": cache} if cache else {})
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - began
