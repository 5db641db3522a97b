"""A site's own record of what went wrong there: true sentences, which may name files and cells, and never leave it.

troubles.jsonl, in the site's folder, one line each, the last ones only: when, which study, what the hub was told, and
what is true. The hub is told a few fixed words.
"""

import contextlib
import json
import time
from pathlib import Path
from typing import Any

from confrere.disk import write_whole

TROUBLES = "troubles.jsonl"
MOST = 100  # lines
LONGEST = 2000  # characters of a sentence


def on_one_line(problem: BaseException) -> str:
    """What went wrong, in its own words.

    >>> on_one_line(ValueError("row 3:\\n 'x' is no number"))
    "row 3: 'x' is no number"
    """
    return " ".join((str(problem) or type(problem).__name__).split())[:LONGEST]


def note_trouble(folder: Path, study: str, told: str, truth: str) -> None:
    """Add a line; one that says the same as the last takes its place. A full disk, which may be the trouble, is borne.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for _ in range(3):
    ...     note_trouble(folder, "ab" * 32, "its table cannot be read", "patients.csv is not in UTF-8")
    >>> [(line["told"], line["truth"], line["times"]) for line in troubles(folder)]
    [('its table cannot be read', 'patients.csv is not in UTF-8', 3)]
    """
    lines = troubles(folder)
    line = {"study": study, "told": told, "truth": truth}
    same = bool(lines) and line.items() <= lines[-1].items()
    times = lines.pop()["times"] + 1 if same else 1
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    lines = [*lines[1 - MOST :], {"time": now, **line, "times": times}]
    with contextlib.suppress(OSError):
        write_whole(folder / TROUBLES, "".join(json.dumps(one) + "\n" for one in lines))


def troubles(folder: Path) -> list[dict[str, Any]]:
    """What went wrong at a site, oldest first."""
    path = folder / TROUBLES
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
