"""Messages as bytes: safetensors with a header that says whose they are, and all the reasons to refuse one.

A message is a safetensors file in memory: arrays by the path of their leaf, and in its metadata the study (by its
hash), the run, the round, the silo, a sequence number that the hub gives to every request and that a reply repeats, and
facts in JSON. Nothing is ever unpickled. What is too large is refused before it is looked at.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import jax
import numpy as np

from confrere.core import Tree

FORMAT = "confrere-1"
HEADER_BYTES = 1 << 22  # what the names and the facts of a message may take; a study is among them
SLACK = 1 << 16  # beside its arrays a message has names, shapes and facts
NUMBERS = ("round", "sequence")
Why = Literal[
    "too large", "unreadable", "forged", "wrong study", "wrong run", "replayed", "duplicate", "late", "wrong round",
    "wrong shape", "not finite", "not expected",
]  # fmt: skip


class Refused(ValueError):
    """A message that is not accepted; `why` is one of a few words, to be counted by."""

    def __init__(self, why: Why, said: str):
        super().__init__(said)
        self.why = why


@dataclass(frozen=True)
class Header:
    """Whose message this is, and what about."""

    kind: str
    study: str
    run: str
    round: int
    silo: str
    sequence: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def pack(header: Header, tree: Tree = None) -> bytes:
    """A message as bytes.

    >>> import numpy as np
    >>> header = Header("round", "ab" * 32, "r1", 3, "north", 7, {"counted": 2})
    >>> read, arrays = unpack(pack(header, {"x": np.zeros(2)}), 10_000)
    >>> read == header, {name: array.tolist() for name, array in arrays.items()}
    (True, {"['x']": [0.0, 0.0]})
    """
    from safetensors.numpy import save

    return save(named_arrays(tree), metadata=metadata_of(header))


def metadata_of(header: Header) -> dict[str, str]:
    """A header as the metadata of a safetensors file."""
    return {
        "format": FORMAT, "kind": header.kind, "study": header.study, "run": header.run, "silo": header.silo,
        "round": str(header.round), "sequence": str(header.sequence),
        "facts": json.dumps(dict(header.facts), allow_nan=False),
    }  # fmt: skip


def pack_for_many(headers: Iterable[Header], tree: Tree) -> dict[str, bytes]:
    """The same arrays for several silos: they are put into bytes once.

    >>> import numpy as np
    >>> headers = [Header("round", "ab" * 32, "r1", 3, silo, 7) for silo in ("north", "south")]
    >>> made = pack_for_many(headers, {"x": np.ones(3)})
    >>> [(unpack(made[h.silo], 10_000)[0] == h, len(made[h.silo]) == len(pack(h, {"x": np.ones(3)}))) for h in headers]
    [(True, True), (True, True)]
    """
    from safetensors.numpy import save

    bare = save(named_arrays(tree))
    length = int.from_bytes(bare[:8], "little")
    entries, data = json.loads(bare[8 : 8 + length]), memoryview(bare)[8 + length :]
    made: dict[str, bytes] = {}
    for header in headers:
        text = json.dumps({"__metadata__": metadata_of(header), **entries}, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)  # as safetensors aligns arrays
        made[header.silo] = b"".join((len(text).to_bytes(8, "little"), text, data))
    return made


def named_arrays(tree: Tree) -> dict[str, np.ndarray]:
    """The leaves of a tree by their paths."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf, order="C") for path, leaf in leaves}


def unpack(content: Any, limit: int) -> tuple[Header, dict[str, np.ndarray]]:
    """The header and the arrays of a message of at most `limit` bytes; anything else is refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    check_bytes(content)
    if len(content) > limit:
        raise Refused("too large", f"the message has {len(content):,} bytes, more than the {limit:,} that are allowed")
    header = read_header(content)
    try:
        return header, load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as problem:
        raise Refused("unreadable", f"the message is no safetensors: {problem}") from problem


def check_bytes(content: Any) -> None:
    """Refuse what an engine may bring in place of bytes."""
    if not isinstance(content, bytes):
        raise Refused("unreadable", f"a message must be bytes, not {type(content).__name__}")


def read_header(content: Any) -> Header:
    """The header of a message."""
    check_bytes(content)
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(HEADER_BYTES, len(content) - 8):
        raise Refused("unreadable", "the message has no header, or one that is too long")
    try:
        said = json.loads(content[8 : 8 + length])["__metadata__"]
        if said["format"] != FORMAT:
            raise Refused("unreadable", f"the message has the format {said['format']!r}, not {FORMAT!r}")
        round, sequence = (number_in(said[name]) for name in NUMBERS)
        facts = json.loads(said["facts"])
        if not isinstance(facts, dict):
            raise ValueError("the facts are no table")
        return Header(said["kind"], said["study"], said["run"], round, said["silo"], sequence, facts)
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        if isinstance(problem, Refused):
            raise
        raise Refused("unreadable", f"the message has no header that can be read: {problem}") from problem


def number_in(text: str) -> int:
    """A whole number of few digits, 0 or more."""
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19):
        raise ValueError(f"{text!r} is no number")
    return int(text)


def fill(arrays: Mapping[str, np.ndarray], spec: Tree) -> Tree:
    """The arrays of a message as a tree of the shapes and types that are expected, or a refusal that names the part."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(spec)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    unknown, lacking = sorted(set(arrays) - set(names)), sorted(set(names) - set(arrays))
    if unknown or lacking:
        said = f"it has {', '.join(unknown)} in excess" if unknown else f"it lacks {', '.join(lacking)}"
        raise Refused("wrong shape", f"the message has other parts than it should: {said}")
    for name, (_, wanted) in zip(names, leaves, strict=True):
        found = arrays[name]
        if found.shape != tuple(wanted.shape) or found.dtype != wanted.dtype:
            raise Refused(
                "wrong shape",
                f"{name} has the shape {found.shape} and the type {found.dtype}, "
                f"not {tuple(wanted.shape)} and {wanted.dtype}",
            )
    return jax.tree.unflatten(structure, [arrays[name] for name in names])


def check_finite(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse numbers that are none."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            count = int((~np.isfinite(array)).sum())
            raise Refused("not finite", f"{count} of {array.size} numbers of {name} are not finite")


def byte_limit(spec: Tree) -> int:
    """How many bytes a message with a tree of these shapes may have."""
    return SLACK + sum(int(np.prod(a.shape)) * np.dtype(a.dtype).itemsize for a in jax.tree.leaves(spec))
