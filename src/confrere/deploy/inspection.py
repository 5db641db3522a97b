"""What the hub looks at before it accepts a reply: size, sender, study, run, request, round, shapes, numbers."""

import sys
from collections import Counter, deque
from typing import Any, NamedTuple

from confrere.core import Tree
from confrere.deploy.parcel import Parcel
from confrere.deploy.wire import Header, Refused, byte_limit, fill, unpack

REMEMBERED = 256  # what answers an older request is late, whether or not it is a copy


class Reply(NamedTuple):
    """A reply that was accepted."""

    tree: Tree
    facts: dict[str, Any]
    bytes: int


class Inspection:
    """The replies to one request after the other; every refusal is counted by site and reason."""

    def __init__(self, study: str, run: str, parcel: Parcel):
        self.study, self.run, self.parcel = study, run, parcel
        self.limit = byte_limit(parcel.on_the_way)
        self.refused: Counter[tuple[str, str]] = Counter()
        self.accepted: set[str] = set()  # sites whose reply to the current request was accepted
        self.answered: dict[str, deque[int]] = {}  # by site, the last requests whose reply was accepted
        self.expected = Header("round", study, run, 0, "", 0)

    def expect(self, kind: str, round: int, sequence: int) -> None:
        """From now on, replies are to this request."""
        self.expected = Header(kind, self.study, self.run, round, "", sequence)
        self.accepted = set()

    def accept(self, sender: str, content: bytes) -> Reply:
        """The reply of a site, whom the engine has identified; or a refusal, counted."""
        try:
            header, arrays = unpack(content, self.limit)
            self.check(sender, header)
            tree = self.parcel.opened(arrays) if header.kind == "round" else fill(arrays, {})
        except Refused as problem:
            self.refused[sender, problem.why] += 1
            raise
        self.accepted.add(sender)
        self.answered.setdefault(sender, deque(maxlen=REMEMBERED)).append(header.sequence)
        return Reply(tree, dict(header.facts), len(content))

    def check(self, sender: str, header: Header) -> None:
        """Whose reply it is, and to what."""
        expected = self.expected
        if header.silo != sender:
            raise Refused("forged", f"site {sender!r} sent a message in the name of {header.silo!r}")
        if header.study != expected.study:
            raise Refused("wrong study", f"it is for study {header.study[:12]}, not {expected.study[:12]}")
        if header.run != expected.run:
            raise Refused("wrong run", f"it is for run {header.run}, not {expected.run}")
        if header.sequence in self.answered.get(sender, ()):
            again = header.sequence == expected.sequence
            raise Refused("duplicate" if again else "replayed", f"request {header.sequence} has been answered already")
        if header.sequence < expected.sequence:
            raise Refused("late", f"it answers request {header.sequence}, but this is request {expected.sequence}")
        if header.sequence > expected.sequence:
            raise Refused("forged", f"it answers request {header.sequence}, which was never made")
        if header.round != expected.round:
            raise Refused("wrong round", f"it is of round {header.round}, not {expected.round}")
        if header.kind != expected.kind:
            raise Refused("not expected", f"it is a reply of the kind {header.kind!r}, not {expected.kind!r}")


def numbers_in(facts: Any) -> dict[str, float]:
    """Metrics that a site sent, if they are numbers; anything else is dropped."""
    if not isinstance(facts, dict):
        return {}
    return {str(name)[:40]: float(value) for name, value in facts.items() if is_number(value)}


def is_number(value: Any) -> bool:
    """Whether something out of JSON is a number that a float can hold.

    >>> [is_number(value) for value in (2, 0.5, True, "2", float("inf"), 10**400)]
    [True, True, False, False, False, False]
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
