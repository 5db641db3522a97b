"""The hub: it asks sites, checks what arrived, lets the mixer do its part, and keeps what came of it.

In each round those who do not answer in time, or whose answer is refused, are inactive; the mixer sees zeros in their
place, as in the simulator. If too few are left the round is abandoned: nothing changes, and it is tried again. The
state is on the disk before a round is over, so that a hub that was stopped at any moment goes on where it was.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Mixed, Tree
from confrere.deploy.agreed import Agreed, mixer_step, zeros
from confrere.deploy.chronicle import Chronicle
from confrere.deploy.exchange import TIMEOUT, Errors, Exchange, may_pass
from confrere.deploy.inspection import Inspection, Reply, numbers_in
from confrere.deploy.journal import Held, Journal, Line
from confrere.deploy.wire import Header, Refused, pack_for_many

LAST_WORDS = 60.0  # seconds that a site has at least to finish
MOST_SKIPPED = 16  # rounds for which a site that let a deadline pass is not asked, at most


class Terms(NamedTuple):
    """When a round is over, and when it counts."""

    deadline: float = 60.0  # seconds
    goal: int | None = None  # so many answers are enough; None: wait for all
    minimum: float = 0.5  # share of the sites that may take part, below which a round is abandoned
    attempts: int = 20  # so often in a row a round may be abandoned before the run is given up
    pause: float = 1.0  # seconds before a round is tried again
    measure: bool = False  # whether sites are asked in every round for the metrics that they allow


USUAL = Terms()
Stop = Callable[[], str | None]


def never() -> None:
    """A run goes on to its end."""


class Abandoned(RuntimeError):
    """A round missed its minimum too often; the run can be resumed when more sites are there."""


class Absence(Abandoned):
    """The same, for reasons that may pass by themselves: the run goes on as soon as they have."""


class Hub:
    """One run of one study. `sizes`: the number of training rows of every site that takes part."""

    def __init__(
        self,
        agreed: Agreed,
        sizes: Mapping[str, int],
        exchange: Exchange,
        journal: Journal,
        terms: Terms = USUAL,
        sleep: Callable[[float], Any] = time.sleep,
    ):
        self.agreed, self.sizes, self.exchange, self.journal, self.terms = agreed, dict(sizes), exchange, journal, terms
        self.sleep = sleep
        start = agreed.start()
        self.sequence = journal.first_sequence()
        kept = journal.load((start.inbox, start.mix))
        self.held = kept or Held(start.inbox, start.mix, 1, dict.fromkeys(agreed.names, 0))
        parcel = agreed.parcel()
        self.blank = zeros(parcel.spec)
        self.inspection = Inspection(journal.study, journal.run, parcel)
        self.suspects: dict[str, tuple[int, int]] = {}  # site -> rounds to skip, and rounds skipped last time
        journal.note("begun" if kept is None else "resumed", round=self.held.round, sites=dict(self.sizes))

    def run(self, rounds: int, progress: Callable[[Line], None] | None = None, stop: Stop = never) -> bool:
        """All rounds that are still to come; False if `stop` gave a word for the journal before the last one."""
        failures = 0
        while self.held.round <= rounds:
            if word := stop():
                self.journal.note(word, round=self.held.round)
                return False
            line = self.one_round()
            if progress is not None:
                progress(line)
            failures = failures + 1 if line["event"] == "abandoned" else 0
            if failures >= self.terms.attempts:
                kind = Absence if all(map(may_pass, line["errors"].values())) and not line["refused"] else Abandoned
                raise kind(f"round {self.held.round} was abandoned {failures} times in a row: {line['why']}")
            if failures:
                self.sleep(self.terms.pause)
        return True

    def one_round(self) -> Line:
        """Ask, check, mix and keep; or abandon the round and change nothing."""
        began = time.monotonic()
        asked = self.asked()
        replies, errors, refused = self.ask("round", asked)
        facts = self.told(replies, errors, refused, began)
        wanted = max(1, math.ceil(self.terms.minimum * sum(self.may_take_part())))
        if len(replies) < wanted:
            why = f"{len(replies)} of {len(asked)} answered, fewer than {wanted}"
            return self.noted_if_possible(
                self.journal.line("abandoned", round=self.held.round, why=why, hash=self.held.digest, **facts)
            )
        try:
            return self.mix(replies, facts)
        except OSError as problem:  # a full disk: the state in memory and on the disk is the one before
            facts |= {"why": f"the hub could not keep the round: {problem}", "hash": self.held.digest}
            return self.noted_if_possible(self.journal.line("abandoned", round=self.held.round, **facts))

    def noted_if_possible(self, line: Line) -> Line:
        """A line about a full disk, which may itself find no place there."""
        with contextlib.suppress(OSError):
            self.journal.write(line)
        return line

    def may_take_part(self) -> np.ndarray:
        """Who could send a message [n]."""
        listens = np.array([name == self.agreed.listener for name in self.agreed.names])
        return self.agreed.active(self.sizes) & ~listens

    def asked(self) -> list[str]:
        """Who is asked in this round: all who may take part, but for those who let deadlines pass of late."""
        able = [name for name, yes in zip(self.agreed.names, self.may_take_part(), strict=True) if yes]
        waiting = {name: left for name, (left, _) in self.suspects.items() if left > 0}
        chosen = [name for name in able if name not in waiting]
        for name, left in waiting.items():
            self.suspects[name] = (left - 1, self.suspects[name][1])
        return chosen or able

    def ask(self, kind: str, sites: list[str]) -> tuple[dict[str, Reply], Errors, list[dict[str, str]]]:
        """Send everybody its inbox; what comes back and is accepted, what went wrong, and what was refused."""
        self.sequence += 1
        self.inspection.expect(kind, self.held.round, self.sequence)
        requests = self.requests(kind, sites)
        goal = self.terms.goal if kind == "round" else None
        arrived, errors = self.exchange(requests, self.patience(kind), goal)
        replies: dict[str, Reply] = {}
        refused: list[dict[str, str]] = []
        for site, content in arrived.items():
            try:
                replies[site] = self.inspection.accept(site, content)
            except Refused as problem:
                refused.append({"site": site, "why": problem.why, "said": str(problem)})
        self.suspect(replies, errors)
        return replies, errors, refused

    def requests(self, kind: str, sites: list[str]) -> dict[str, bytes]:
        """What sites are sent; an inbox that is the same for many is put into bytes once."""
        groups: dict[tuple[int, ...], tuple[Tree, list[Header]]] = {}
        lines = self.journal.lines() if kind == "final" else []
        for site in sites:
            inbox = self.agreed.sent_to(self.held.inbox, self.agreed.names.index(site))
            same = tuple(map(id, jax.tree.leaves(inbox)))
            groups.setdefault(same, (inbox, []))[1].append(self.header(kind, site, lines))
        made = [pack_for_many(headers, inbox) for inbox, headers in groups.values()]
        return {site: request for part in made for site, request in part.items()}

    def header(self, kind: str, site: str, lines: list[Line]) -> Header:
        """What a request says beside its arrays; the last one tells of the rounds, from the journal's lines."""
        held, journal = self.held, self.journal
        facts: dict[str, Any] = {"counted": held.counted.get(site, 0), "measure": self.terms.measure}
        if kind == "final":
            names, per_silo = self.agreed.names, self.agreed.algorithm.mixer.per_silo
            facts["chronicle"] = Chronicle.of(lines, names, names.index(site), per_silo).told()
        return Header(kind, journal.study, journal.run, held.round, site, self.sequence, facts)

    def patience(self, kind: str) -> float:
        """Seconds for an answer: at the end a site measures and writes its model, however short rounds are."""
        return self.terms.deadline if kind == "round" else max(self.terms.deadline, LAST_WORDS)

    def suspect(self, replies: Mapping[str, Reply], errors: Errors) -> None:
        """Remember who let the deadline pass, and ask them more and more rarely until they answer."""
        for site in replies:
            self.suspects.pop(site, None)
        for site, said in errors.items():
            if said == TIMEOUT and self.terms.goal is None:
                skipped = min(MOST_SKIPPED, 2 * self.suspects.get(site, (0, 0))[1] or 1)
                self.suspects[site] = (skipped, skipped)

    def told(self, replies: Mapping[str, Reply], errors: Errors, refused: list[dict[str, str]], began: float) -> Line:
        """What the journal says about a round."""
        metrics = {site: numbers_in(reply.facts.get("metrics")) for site, reply in replies.items()}
        return {
            "answered": sorted(replies), "errors": dict(errors), "refused": refused,
            "metrics": {site: found for site, found in metrics.items() if found},
            "bytes": sum(reply.bytes for reply in replies.values()), "seconds": round(time.monotonic() - began, 4),
        }  # fmt: skip

    def mix(self, replies: Mapping[str, Reply], facts: Line) -> Line:
        """The mixer's part, and the new state: on the disk first, then in memory."""
        agreed, held = self.agreed, self.held
        names = agreed.names
        messages = [self.tree_of(name, replies) for name in names]
        here = np.array([name in replies for name in names])
        sizes = np.array([self.sizes.get(name, 0) for name in names], np.int32)
        inbox, mix, mixed = mixer_step(
            agreed.static, agreed.hyper, messages, held.mix, jnp.int32(held.round), here, sizes, agreed.key
        )
        counted = {name: held.round if name in replies else held.counted.get(name, 0) for name in names}
        after = Held(inbox, mix, held.round + 1, counted)
        weights = weights_of(mixed, here)
        line = self.journal.line("round", round=held.round, hash=after.digest, weights=weights, **facts)
        self.journal.save(after, line)
        self.held = after
        return line

    def tree_of(self, name: str, replies: Mapping[str, Reply]) -> Tree:
        """A site's message, or zeros."""
        return replies[name].tree if name in replies else jax.tree.map(np.asarray, self.blank)

    def finish(self, stop: Stop = never) -> Line:
        """Send those for whom a model is made what belongs to their finished model, and note what they measured.

        Who is away for a reason that may pass is waited for: a minute, or the deadline of a round if that is longer.
        """
        user, began = self.agreed.user, time.monotonic()
        whom = [user] if user is not None else [name for name in self.agreed.names if name in self.sizes]
        replies, errors, refused = self.ask("final", whom)
        for _ in range(self.terms.attempts):
            away = [site for site, words in errors.items() if may_pass(words)]
            if not away or time.monotonic() - began > self.patience("final"):
                break
            if word := stop():
                return self.journal.note(word, round=self.held.round)
            self.sleep(self.terms.pause)
            more, late, wrong = self.ask("final", away)
            replies, refused = replies | more, refused + wrong
            errors = {site: words for site, words in errors.items() if site not in away} | late
        return self.journal.note("finished", round=self.held.round - 1, hash=self.held.digest,
                                 **self.told(replies, errors, refused, began))  # fmt: skip


def weights_of(mixed: Mixed, here: np.ndarray) -> list[list[float]] | None:
    """The raw weights [r, n] as the rule gave them, rounded for reading; 0 for who was not `here` [n].

    >>> import numpy as np
    >>> weights_of(Mixed(None, np.array([135.0]), np.array([[90.0, 60.0, 45.0]])), np.array([True, False, True]))
    [[90.0, 0.0, 45.0]]
    """
    if mixed.weights is None:
        return None
    some = (np.asarray(mixed.mass) > 0)[:, None]
    counted = np.where(here & some, np.asarray(mixed.weights, float), 0)
    return [[float(f"{value:.6g}") for value in row] for row in counted]
