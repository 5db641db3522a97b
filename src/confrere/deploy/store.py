"""A site's private states on its own disk: keyed by study and round, whole or not at all, and few of them.

What a site is after round r is kept beside what it was before, until the hub has said that round r counted: the state
that a round starts from is the one after the last round that the hub acknowledges. So a round that is asked for again,
because the hub or the site stopped in the middle, is computed from where it was, and none is applied twice.
"""

import re
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Tree
from confrere.deploy.wire import Header, Refused, fill, pack, unpack
from confrere.disk import write_whole

KEPT = 3  # the last acknowledged round, the one after it, and one more in case the hub goes back to its last checkpoint
NAME = "round-{:08d}.safetensors"
NAMES = re.compile(r"round-(\d{8})\.safetensors")
SAFE = re.compile(r"[0-9a-f]{8,64}")


class Kept(NamedTuple):
    """A state, the round after which it was kept and the request that it answered."""

    round: int
    sequence: int
    private: Tree


class Store:
    """The states of one run of one study."""

    def __init__(self, folder: Path, study: str, run: str, silo: str):
        if not (SAFE.fullmatch(study) and SAFE.fullmatch(run)):
            raise ValueError(f"a study and a run are named by hexadecimal digits, not {study!r} and {run!r}")
        self.place = folder / f"{study[:16]}-{run}"
        self.study, self.run, self.silo = study, run, silo

    def rounds(self) -> list[int]:
        """The rounds after which a state is kept, in order."""
        found = self.place.iterdir() if self.place.is_dir() else ()
        return sorted(int(match[1]) for file in found if (match := NAMES.fullmatch(file.name)))

    def save(self, kept: Kept, needed: int) -> None:
        """Keep a state, and of the older ones the last few and the one that is still needed."""
        self.place.mkdir(parents=True, exist_ok=True)
        header = Header("private", self.study, self.run, kept.round, self.silo, kept.sequence)
        write_whole(self.place / NAME.format(kept.round), pack(header, kept.private))
        for old in self.rounds()[:-KEPT]:
            if old != needed:
                (self.place / NAME.format(old)).unlink(missing_ok=True)

    def load(self, round: int, spec: Tree) -> Kept:
        """The state after a round."""
        path = self.place / NAME.format(round)
        if not path.is_file():
            raise FileNotFoundError(
                f"site {self.silo!r} has no state of round {round}, which the hub counted: restore {self.place} from a "
                "backup, or begin a new run"
            )
        content = path.read_bytes()
        try:
            header, arrays = unpack(content, len(content))
            if (header.study, header.run, header.round, header.silo) != (self.study, self.run, round, self.silo):
                raise Refused("wrong run", "it is of another study, run, round or silo")
            return Kept(round, header.sequence, jax.tree.map(jnp.asarray, fill(arrays, spec)))
        except Refused as problem:
            raise ValueError(f"{path} cannot be used: {problem}") from problem

    def last_sequence(self) -> int:
        """The last request that was answered before the process started, as far as the disk knows."""
        files = [self.place / NAME.format(round) for round in self.rounds()]
        return max((unpack(content, len(content))[0].sequence for content in map(Path.read_bytes, files)), default=0)
