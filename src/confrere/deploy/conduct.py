"""A study at the hub from the first question to the last: open, run, finish, and go on where it was if it stopped.

run.json         which run of the study this is
opening.json     what sites agreed on, who takes part, and who does not and why
state.safetensors, journal.jsonl     see `journal`
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from confrere.data.intake.messages import Classes, Layout, Summary, Survey
from confrere.data.intake.survey import Plan
from confrere.deploy.desk import NOT_BEGUN, OPENING_BYTES
from confrere.deploy.exchange import Errors, Exchange, Replies, may_pass
from confrere.deploy.hub import Absence, Hub, Stop, never
from confrere.deploy.journal import STATE, Journal, Line
from confrere.deploy.opening import Apart, Opening, common_encoding, common_plan, heard, said
from confrere.deploy.study import Deployed
from confrere.deploy.troubles import apart, in_its_words, words_of
from confrere.deploy.wire import Header, Refused, pack, unpack
from confrere.disk import write_whole

RUN, STUDY = "run.json", "study.toml"
TOGETHER = "the tables"  # what refuses a study in place of a site (whose name has no blank): they do not go together
ASK_AGAIN = 10.0  # seconds between two invitations of sites that are not there yet
FIRST_WORDS = 60.0  # seconds that a site has at least to read its table and to make ready, however short rounds are
MOST_ROWS = 2**31 - 1  # what the mixer counts with
FACTS = dict[str, Any]


class Refusal(RuntimeError):
    """Too few sites take part; the message says who refuses, and why."""


class Conduct:
    """One run of one study, in a folder of the hub's."""

    def __init__(self, study: Deployed, folder: Path, exchange: Exchange, now: Callable[[], float] = time.monotonic):
        self.study, self.folder, self.plainly, self.now = study, folder, exchange, now
        folder.mkdir(parents=True, exist_ok=True)
        self.run = run_in(folder)
        write_whole(folder / STUDY, study.content)
        self.journal = Journal(folder, study.hash, self.run)
        self.opening = Opening.load(folder)
        self.next_invitation = 0.0
        self.asked = 0
        self.base = self.journal.first_sequence() + (1 << 31)  # the numbers of questions before round 1

    def whole(self, progress: Callable[[Line], None] | None = None, stop: Stop = never) -> Line:
        """Open the study, or go on with it, and run it to its end (or until it is stopped)."""
        jax.config.update("jax_enable_x64", self.study.said.study.double)
        if (
            self.opening is None or not (self.folder / STATE).is_file()
        ):  # no round has counted: whoever came by now counts
            self.opening = self.settled()
        self.admitted(self.study.names, FIRST_WORDS)
        self.check_company(set(self.opening.sizes), self.opening.refuses)
        hub = Hub(self.opening.agreed(self.study), self.opening.sizes, self.kept_open, self.journal, self.study.terms)

        def each(line: Line) -> None:
            self.latecomers(hub)
            if progress is not None:
                progress(line)

        if not hub.run(self.study.said.study.rounds, each, stop):
            return self.journal.lines()[-1]
        return hub.finish(stop)

    def settled(self) -> Opening:
        """What sites agree on, unless their tables do not go together."""
        try:
            return self.negotiated()
        except ValueError as problem:
            refuses = problem.refuses if isinstance(problem, Apart) else {TOGETHER: [str(problem)]}
            self.journal.note("refused", refuses=refuses, sites={})
            raise Refusal(str(problem)) from problem

    def check_company(self, there: set[str], refuses: Mapping[str, list[str]]) -> None:
        """Stop if too few take part for any round to count: for now if those who are merely away would be enough."""
        if self.study.are_enough(there):
            return
        why = "; ".join(f"{site}: {', '.join(words)}" for site, words in refuses.items())
        if self.study.are_enough(there | {site for site, words in refuses.items() if all(map(may_pass, words))}):
            raise Absence(why)
        sizes = {} if self.opening is None else dict(self.opening.sizes)
        self.journal.note("refused", refuses=dict(refuses), sites=sizes)
        raise Refusal(why)

    def ask(
        self, kind: str, sites: Mapping[str, FACTS], patience: float = 0.0
    ) -> tuple[dict[str, FACTS], dict[str, list[str]]]:
        """A question before round 1: the facts that sites answer, and why others do not."""
        self.asked += 1
        sequence = self.base + self.asked
        requests = {
            site: pack(Header(kind, self.study.hash, self.run, 0, site, sequence, facts))
            for site, facts in sites.items()
        }
        replies, errors = self.plainly(requests, max(patience, self.study.terms.deadline))
        found: dict[str, FACTS] = {}
        refuses = {site: [words] for site, words in errors.items()}
        for site, content in replies.items():
            try:
                header, _ = unpack(content, OPENING_BYTES)
                if (header.kind, header.silo, header.sequence) != (kind, site, sequence):
                    raise Refused("forged", words_of(header) or "its answer is not to what it was asked")
                if against := header.facts.get("refuses"):
                    every = against if isinstance(against, list) else [against]
                    refuses[site] = [in_its_words(words) for words in every]
                else:
                    found[site] = dict(header.facts) if kind == "propose" else with_rows(header.facts)
            except Refused as problem:
                refuses[site] = [str(problem)]
        return found, refuses

    def negotiated(self) -> Opening:
        """Ask everybody for its columns, and make the encoding of those who answer."""
        proposal = {"study": self.study.content.decode()}
        surveys, refuses = self.ask("propose", dict.fromkeys(self.study.names, proposal), FIRST_WORDS)
        told = {site: read(Survey, facts.get("survey"), site, refuses) for site, facts in surveys.items()}
        told = {site: message for site, message in told.items() if message is not None}
        self.check_company(set(told), refuses)
        plan = common_plan(list(told.values()), self.study)
        answers, more = self.ask("columns", {key: {"plan": said(Plan, plan)} for key in told}, FIRST_WORDS)
        refuses |= more
        kinds = {
            "layout": Layout,
            "everything": Summary,
            "training": Summary,
            **({"classes": Classes} if plan.classes else {}),
        }
        parts = {
            name: [read(kind, facts.get(name), site, refuses) for site, facts in sorted(answers.items())]
            for name, kind in kinds.items()
        }
        lists = {name: [m for m in found if m is not None] for name, found in parts.items()}
        encoding = common_encoding(
            plan, lists.get("classes", []), lists["layout"], lists["everything"], lists["training"], self.study
        )
        sizes = {site: facts["rows"] for site, facts in answers.items() if site not in refuses}
        known = {} if self.opening is None else self.opening.heard_of
        opening = Opening(plan, encoding, sizes, refuses, known | sizes)
        opening.save(self.folder)
        return opening

    def admitted(self, sites: Sequence[str], patience: float = 0.0) -> None:
        """Tell sites to begin; those that refuse, or are not there, take no part for now.

        Who was announced to the others and then does not begin changes their company: they are told, and asked anew.
        """
        assert self.opening is not None
        opening = self.opening
        proposal = {"study": self.study.content.decode()}
        for _ in range(len(self.study.names)):
            there, refuses = self.ask("propose", dict.fromkeys(sites, proposal), patience)
            newcomers = {site: opening.heard_of.get(site, 1) for site in there if site not in opening.sizes}
            company = {s: n for s, n in {**opening.sizes, **newcomers}.items() if s not in refuses}
            facts = {**opening.facts(), "sizes": company}
            ready, more = self.ask("begin", dict.fromkeys(there, facts), patience)
            refuses |= more
            opening.sizes = {s: n for s, n in opening.sizes.items() if s not in refuses}
            opening.sizes |= {site: found["rows"] for site, found in ready.items()}
            opening.heard_of |= opening.sizes
            opening.refuses = {s: why for s, why in (opening.refuses | refuses).items() if s not in opening.sizes}
            if not more:
                break
            sites = list(ready)
        opening.save(self.folder)
        self.journal.note("opened", sites=dict(opening.sizes), refuses=opening.refuses)

    def latecomers(self, hub: Hub) -> None:
        """Now and then, invite the sites that are not there; whoever comes takes part from the next round on."""
        away = [name for name in self.study.names if name not in hub.sizes]
        began = self.now()
        if not away or began < self.next_invitation:
            return
        self.admitted(away)
        assert self.opening is not None
        hub.sizes |= self.opening.sizes
        took = self.now() - began  # a deadline, if one of them lets it pass: that must not be most of the time
        self.next_invitation = began + took + max(ASK_AGAIN, 10 * took)

    def kept_open(
        self, requests: Mapping[str, bytes], deadline: float, enough: int | None = None
    ) -> tuple[Replies, Errors]:
        """An exchange that tells a site that started anew to begin again, and then asks once more."""
        replies, errors = self.plainly(requests, deadline, enough)
        replies, troubles = apart(replies)
        forgot = [site for site, words in troubles.items() if words == NOT_BEGUN]
        if forgot and self.opening is not None:
            there, _ = self.ask("propose", {key: {"study": self.study.content.decode()} for key in forgot})
            ready, _ = self.ask("begin", dict.fromkeys(there, self.opening.facts()))
            again, late = self.plainly({site: requests[site] for site in ready}, deadline)
            again, more = apart(again)
            replies |= again
            troubles = {site: words for site, words in troubles.items() if site not in again} | late | more
        return replies, errors | troubles


def with_rows(facts: Mapping[str, Any]) -> FACTS:
    """Facts that must say how many rows a site has; any other answer is refused, before anybody counts with it."""
    rows = facts.get("rows")
    if not isinstance(rows, int) or isinstance(rows, bool) or not 0 <= rows <= MOST_ROWS:
        raise Refused("unreadable", "it does not say how many rows it has")
    return dict(facts)


def read(kind: Any, plain: Any, site: str, refuses: dict[str, list[str]]) -> Any:
    """What a site said, in its own name; else it takes no part."""
    try:
        message = heard(kind, plain)
        if message.silo != site:
            raise Refused("forged", f"it speaks in the name of {message.silo!r}")
        return message
    except Refused as problem:
        refuses[site] = [str(problem)]
        return None


def run_in(folder: Path) -> str:
    """The name of the run in a folder; a new one if there is none."""
    path = folder / RUN
    if not path.is_file():
        write_whole(path, json.dumps({"run": secrets.token_hex(8)}))
    return json.loads(path.read_text(encoding="utf-8"))["run"]
