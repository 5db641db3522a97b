"""The hub's memory: a checkpoint that is replaced as a whole after every round, and a journal of what happened.

state.safetensors    what the mixer is and what sites receive next, with the round to come, the last round of every
                     site that counted, and the last line of the journal, in case it did not reach the disk
journal.jsonl        one line per event: begun, round, abandoned, resumed, finished ...
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Inbox, Tree
from confrere.deploy.wire import Header, Refused, fill, named_arrays, pack, unpack
from confrere.disk import write_through, write_whole

STATE, JOURNAL = "state.safetensors", "journal.jsonl"
EPOCH = 1 << 32  # requests of one start of the hub; no start uses a number of an earlier one
TAIL = 1 << 14  # bytes at the end of a journal in which its last line is looked for first
Line = dict[str, Any]


class Held(NamedTuple):
    """All that the hub needs to go on: what sites receive next, the mixer's state, the round to come, who counted."""

    inbox: Inbox
    mix: Tree
    round: int
    counted: Mapping[str, int]

    @property
    def digest(self) -> str:
        """The hash of the models and of all that the mixer remembers."""
        found = hashlib.sha256()
        for name, array in named_arrays((self.inbox, self.mix)).items():
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(array.reshape(-1).view(np.uint8).data)
        return found.hexdigest()


class Journal:
    """The folder of one run at the hub."""

    def __init__(self, folder: Path, study: str, run: str, clock: Callable[[], float] = time.time):
        self.folder, self.study, self.run, self.clock = folder, study, run, clock
        folder.mkdir(parents=True, exist_ok=True)

    def note(self, event: str, **facts: Any) -> Line:
        """Add a line, and see it to the disk."""
        line = self.line(event, **facts)
        self.write(line)
        return line

    def line(self, event: str, **facts: Any) -> Line:
        """A line that is not written yet."""
        return {"event": event, "time": round(self.clock(), 3), **facts}

    def write(self, line: Line) -> None:
        """Write a line, on a line of its own even if the last one was cut off in the middle."""
        whole = tail(self.folder, 1) in (b"", b"\n")
        write_through(self.folder / JOURNAL, (b"" if whole else b"\n") + json.dumps(line).encode() + b"\n", "ab")

    def lines(self) -> list[Line]:
        """All lines; one that was cut off in the middle is passed over."""
        return read_journal(self.folder)

    def first_sequence(self) -> int:
        """The number before the first request of this start of the hub: above all that were ever given."""
        starts = sum(line["event"] in ("begun", "resumed") for line in self.lines())
        return starts * EPOCH

    def save(self, held: Held, line: Line) -> None:
        """The state after a round and the line about it: if the first reaches the disk, so will the second."""
        facts = {"counted": dict(held.counted), "line": line}
        header = Header("hub", self.study, self.run, held.round, "hub", 0, facts)
        write_whole(self.folder / STATE, pack(header, (held.inbox, held.mix)))
        self.write(line)

    def load(self, spec: tuple[Inbox, Tree]) -> Held | None:
        """The state after the last round that was saved, or None before the first."""
        path = self.folder / STATE
        if not path.is_file():
            return None
        content = path.read_bytes()
        try:
            header, arrays = unpack(content, len(content))
            if (header.study, header.run) != (self.study, self.run):
                raise Refused("wrong run", "it is of another study or run")
            inbox, mix = jax.tree.map(jnp.asarray, fill(arrays, spec))
        except Refused as problem:
            raise ValueError(f"{path} cannot be used: {problem}") from problem
        last = header.facts["line"]
        if last not in self.lines():
            self.write(last)
        return Held(inbox, mix, header.round, header.facts["counted"])


def read_journal(folder: Path) -> list[Line]:
    """The lines of a journal."""
    path = folder / JOURNAL
    return parsed(path.read_bytes()) if path.is_file() else []


def last_line(folder: Path) -> Line | None:
    """The last line of a journal, however long the journal is."""
    size = TAIL
    while True:
        content = tail(folder, size)
        found = parsed(content if len(content) < size else content.partition(b"\n")[2])
        if found or len(content) < size:
            return found[-1] if found else None
        size *= 4


def tail(folder: Path, size: int) -> bytes:
    """The last bytes of a journal: all of it if it has fewer."""
    path = folder / JOURNAL
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read()


def parsed(content: bytes) -> list[Line]:
    """Lines that are whole."""
    found = []
    for line in content.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
