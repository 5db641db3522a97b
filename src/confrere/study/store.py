"""The store: finished cells in a folder, each under a hash of all that determines it.

A cell is one JSON file with a checksum, written under another name first and renamed when it is whole. What cannot be
read, or is not what its checksum says, is computed again.
"""

import functools
import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confrere.disk import write_whole
from confrere.study.cell import Cell


def fingerprint(facts: Mapping[str, Any]) -> str:
    """A hash of facts: words, numbers and lists of them."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=named).encode()).hexdigest()


def named(thing: Any) -> str:
    """What stands for a thing that JSON does not know: a function's name, else how it is written.

    What functions do is hashed elsewhere (see `written`): a name alone tells no two local functions apart.
    """
    if not callable(thing):
        return repr(thing)
    function = thing.func if isinstance(thing, functools.partial) else thing
    known = function if hasattr(function, "__qualname__") else type(function)
    return f"{known.__module__}.{known.__qualname__}"


class Store:
    """Cells in a folder; without a folder, nowhere."""

    def __init__(self, folder: str | os.PathLike[str] | None):
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, key: str) -> Path | None:
        """Where a cell is kept."""
        return None if self.folder is None else self.folder / f"{key}.json"

    def get(self, key: str) -> Cell | None:
        """A finished cell, or None. A damaged one is reported."""
        path = self.path(key)
        if path is None or not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["checksum"] != fingerprint(found["cell"]):
                raise ValueError("its checksum is wrong")
            return Cell.from_plain(found["cell"])
        except (OSError, ValueError, KeyError, TypeError) as problem:
            warnings.warn(f"{path} is damaged ({problem}): this cell is computed again", stacklevel=2)
            return None

    def put(self, key: str, cell: Cell) -> None:
        """Keep a cell: the file is there as a whole or not at all."""
        path = self.path(key)
        if path is None:
            return
        plain = cell.plain()
        text = json.dumps({"checksum": fingerprint(plain), "cell": plain})
        write_whole(path, text)
