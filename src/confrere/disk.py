"""Files that are there as a whole or not at all, whatever stops the program."""

import os
import threading
from pathlib import Path


def write_through(path: Path, content: bytes, mode: str = "wb", synced: bool = True) -> None:
    """Write (or, with mode "ab", append) to a file, and see it to the disk."""
    with path.open(mode) as file:
        file.write(content)
        file.flush()
        if synced:
            os.fsync(file.fileno())


def write_whole(path: Path, content: str | bytes, synced: bool = True) -> None:
    """Write a file under another name, and give it its own when it is on the disk.

    Not `synced`, it is quicker, and whole whatever becomes of the program, but perhaps not after a power cut.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_whole(folder / "a.txt", "whole")
    >>> [(file.name, file.read_text()) for file in folder.iterdir()]
    [('a.txt', 'whole')]
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        write_through(unfinished, content.encode() if isinstance(content, str) else content, synced=synced)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
