"""What jobs and runs leave on a disk does not pile up: the newest few folders are kept, and the one that is in use.

A finished model is somebody's to keep or to remove: its folder stays, however many there are.
"""

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

JOBS, RUNS = 5, 20
JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # as FLARE names jobs, and nothing else in a kit
RUN = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8,64}")  # as `store` names runs
log = logging.getLogger("confrere.site")


def keep_newest(
    place: Path, names: re.Pattern[str], most: int, in_use: str, spared: Callable[[Path], bool] = lambda _: False
) -> list[str]:
    """Remove the oldest folders with such names but for the newest, the one in use and those spared; which they were.

    >>> import os, tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> for number in range(4):
    ...     (place / f"{number:016d}-{number:08d}").mkdir()
    ...     os.utime(place / f"{number:016d}-{number:08d}", (number, number))
    >>> keep_newest(place, RUN, 2, in_use=f"{0:016d}-{0:08d}")
    ['0000000000000001-00000001']
    """
    found = [folder for folder in place.iterdir() if names.fullmatch(folder.name) and folder.is_dir()]
    found = [folder for folder in found if not spared(folder)]
    found.sort(key=lambda folder: folder.stat().st_mtime)
    old = [folder for folder in found[: max(0, len(found) - most)] if folder.name != in_use]
    for folder in old:
        shutil.rmtree(folder, ignore_errors=True)
    if old:
        names_of = ", ".join(folder.name for folder in old)
        log.info("removed from %s, of which the newest %d folders are kept: %s", place, most, names_of)
    return [folder.name for folder in old]
