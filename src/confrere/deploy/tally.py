"""What a site answered for a study, over all its runs: on its own disk, so that no hub can have it counted anew.

tally-STUDY.json, in the site's state folder, replaced as a whole with every answer; a power cut may cost the last ones.

A hub or a site that stopped in the middle of a round, or a round that too few answered, makes the hub ask for the same
round again. The site answers, since nobody can tell these from a hub that wants more; but no more such repeats in all
than it allows rounds, or `REPEATS` if that is more. So a study has at most twice `max_rounds` answers of a site's.
"""

import json
from typing import NamedTuple

from confrere.deploy.policy import Policy
from confrere.deploy.wire import Header, Refused
from confrere.disk import write_whole

NAME = "tally-{}.json"
REPEATS = 20
ASKED = ("round", "final")


class Tally(NamedTuple):
    """How many rounds were answered, how often one once more, which was the last, and the bytes of all of it."""

    rounds: int = 0
    repeats: int = 0
    last: str = ""
    bytes: int = 0

    def after(self, header: Header, size: int) -> "Tally":
        """What it is after an answer; of `size` bytes, with its request.

        >>> asked = Header("round", "ab" * 32, "cd" * 8, 1, "north", 1)
        >>> Tally().after(asked, 100).after(asked, 100)
        Tally(rounds=1, repeats=1, last='cdcdcdcdcdcdcdcd round 1', bytes=200)
        """
        total, this = self.bytes + size, f"{header.run} {header.kind} {header.round}"
        if header.kind not in ASKED:
            return self._replace(bytes=total)
        if this == self.last:
            return Tally(self.rounds, self.repeats + 1, this, total)
        return Tally(self.rounds + 1, self.repeats, this, total)

    def check(self, header: Header, policy: Policy) -> None:
        """Refuse what is more than the site allows; the end of a run comes after its last round."""
        allowed = policy.said.policy
        if self.rounds > allowed.max_rounds + (header.kind == "final"):
            raise Refused("not expected", "the rounds of this study are more than this site allows")
        if self.repeats > max(REPEATS, allowed.max_rounds):
            raise Refused("not expected", "the repeated rounds of this study are more than this site allows")
        if self.bytes > allowed.max_bytes:
            raise Refused("not expected", "the bytes of this study are more than this site allows")


def tally_of(policy: Policy, study: str) -> Tally:
    """What was answered so far, as far as the disk knows."""
    path = policy.state / NAME.format(study[:16])
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    return Tally(**json.loads(known)) if known else Tally()


def keep_tally(policy: Policy, study: str, tally: Tally) -> None:
    """Keep it, before the answer leaves."""
    policy.state.mkdir(parents=True, exist_ok=True)
    write_whole(policy.state / NAME.format(study[:16]), json.dumps(tally._asdict()), synced=False)
