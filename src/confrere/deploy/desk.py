"""A site's reception: every request of the hub comes here, and nothing leaves but what is said here.

What goes wrong is told to the hub in a few fixed words; the details, which may name rows or paths, stay at the site: in
its log, and in its `logbook` for its operator.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

from confrere.core import Tree
from confrere.data.intake.messages import Classes, Layout, Summary, Survey
from confrere.data.intake.survey import Plan
from confrere.deploy.exchange import DISK
from confrere.deploy.finished import has_model, keep_model
from confrere.deploy.logbook import note_trouble, on_one_line
from confrere.deploy.measures import measures
from confrere.deploy.opening import Opening, heard, said
from confrere.deploy.policy import POLICY, Policy, company, objections, read_policy
from confrere.deploy.rows import Mistake, OwnRows
from confrere.deploy.site import Site, own_block
from confrere.deploy.store import Store
from confrere.deploy.study import Deployed, study_of
from confrere.deploy.tally import keep_tally, tally_of
from confrere.deploy.tidying import RUN, RUNS, keep_newest
from confrere.deploy.wire import HEADER_BYTES, Header, Refused, pack, read_header, unpack

NOT_BEGUN = "not begun"
WITHDRAWN = "its operator has withdrawn the approval"
OPENING_BYTES = HEADER_BYTES + 8  # messages before round 1 are all header
MOST_WORDS = 300  # characters of what a site says of its troubles, and of one objection
log = logging.getLogger("confrere.site")


class Desk:
    """One site. Its policy is read anew for every request that opens something, so that a change counts at once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.lock = threading.Lock()
        self.study: Deployed | None = None
        self.rows: OwnRows | None = None
        self.site: Site | None = None
        self.run = ""
        self.keep: Callable[[Tree, Mapping[str, Any]], Any] = lambda model, facts: None

    def answer(self, request: bytes) -> bytes:
        """The reply to any request: an answer, or what went wrong in a few words."""
        header = Header("", "", "", 0, "", 0)
        try:
            header = read_header(request)
            policy = self.policy()
            with self.lock:
                reply = self.handled(policy, header, request)
                return self.counted(policy, header, request, reply)
        except Refused as problem:
            return complaint(header, problem.why, str(problem))
        except Mistake as problem:
            return self.trouble(header, str(problem), problem.truth)
        except FileNotFoundError as problem:
            return self.trouble(header, "a file that it needs is gone; its log says which", on_one_line(problem))
        except OSError as problem:
            return self.trouble(header, f"{DISK}: {problem.strerror}", on_one_line(problem))
        except Exception as problem:
            log.exception("an error")
            return self.trouble(header, "an error of its own; its log says more", on_one_line(problem))

    def policy(self) -> Policy:
        """What the site allows, as its file says now."""
        try:
            return read_policy(self.folder)
        except ValueError as problem:
            raise Mistake(f"its {POLICY} has a mistake", self.folder / POLICY) from problem

    def trouble(self, header: Header, told: str, truth: str) -> bytes:
        """Something is wrong here: tell the hub in a few words, and the operator what is true, on one line."""
        log.error("the hub was told: %s. What is true: %s", told, truth)
        note_trouble(self.folder, header.study, told, truth)
        return complaint(header, "trouble", told)

    def handled(self, policy: Policy, header: Header, request: bytes) -> bytes:
        """The answer to a request that can be read."""
        if header.kind in ("round", "final"):
            return self.trained(policy, header, request)
        unpack(request, OPENING_BYTES)
        if header.silo != policy.name:
            raise Refused("forged", f"this is site {policy.name!r}, but the request is for {header.silo!r}")
        steps = {"propose": self.propose, "columns": self.columns, "begin": self.begin}
        if header.kind not in steps:
            raise Refused("not expected", f"there is no request of the kind {header.kind!r}")
        return pack(answering(header, policy.name, steps[header.kind](policy, header)))

    def counted(self, policy: Policy, header: Header, request: bytes, reply: bytes) -> bytes:
        """The reply, if what was answered for this study is still within what the site allows."""
        if self.site is None:
            return reply
        study = self.site.store.study
        tally = tally_of(policy, study).after(header, len(request) + len(reply))
        tally.check(header, policy)
        keep_tally(policy, study, tally)
        return reply

    def propose(self, policy: Policy, header: Header) -> dict[str, Any]:
        """A study is proposed: keep it for the operator, and say what speaks against it or which columns there are."""
        content = str(header.facts.get("study", "")).encode()
        if hashlib.sha256(content).hexdigest() != header.study:
            raise Refused("forged", "the study is not the one whose hash it claims to have")
        try:
            study = study_of(content)
        except ValueError as problem:
            raise Refused("unreadable", f"it is no study: {problem}") from problem
        policy.propose(study)
        found = objections(policy, study)
        if found:
            return {"refuses": [words[:MOST_WORDS] for words in found]}
        jax.config.update("jax_enable_x64", study.said.study.double)
        self.study, self.rows, self.site, self.run = study, OwnRows(study, policy.name, policy.data), None, header.run
        return {"survey": said(Survey, self.rows.survey())}

    def opened(self, header: Header) -> tuple[Deployed, OwnRows]:
        """The study that is being opened."""
        if self.study is None or self.rows is None or (self.study.hash, self.run) != (header.study, header.run):
            raise Refused("not expected", NOT_BEGUN)
        return self.study, self.rows

    def columns(self, policy: Policy, header: Header) -> dict[str, Any]:
        """What was agreed on columns: say classes, levels, gaps and sums."""
        _, rows = self.opened(header)
        if header.study not in policy.approved():
            raise Refused("not expected", WITHDRAWN)
        plan = heard(Plan, header.facts.get("plan"))
        classes = rows.classes(plan)
        everything, training = rows.summaries(plan)
        return {
            "classes": None if classes is None else said(Classes, classes), "layout": said(Layout, rows.layout(plan)),
            "everything": said(Summary, everything), "training": said(Summary, training),
            "rows": int((rows.part == 0).sum()),
        }  # fmt: skip

    def begin(self, policy: Policy, header: Header) -> dict[str, Any]:
        """The encoding is there, and who takes part: make ready, or say what speaks against it."""
        study, rows = self.opened(header)
        found = objections(policy, study)
        opening = Opening.heard(header.facts)
        count = int((rows.part == 0).sum())
        found += company(policy, count, opening.sizes)
        if found:
            return {"refuses": [words[:MOST_WORDS] for words in found]}
        agreed = opening.agreed(study)
        silo = rows.encoded(opening.plan, opening.encoding)
        place, classes = agreed.names.index(policy.name), opening.encoding.label_names is not None
        own = own_block(*silo.rows("train"), place, classes)
        store = Store(policy.state, study.hash, header.run, policy.name)
        store.place.mkdir(parents=True, exist_ok=True)
        keep_newest(policy.state, RUN, RUNS, in_use=store.place.name, spared=has_model)
        measure = measures(policy, agreed.static.model, own, silo.rows("test"))
        self.site = Site(policy.name, agreed, own, store, measure)
        self.keep = lambda model, facts: keep_model(store.place, study, opening, rows, silo, model, facts)
        return {"rows": count, "test": int((rows.part != 0).sum())}

    def trained(self, policy: Policy, header: Header, request: bytes) -> bytes:
        """A round, or the end."""
        if self.site is None or (self.site.store.study, self.site.store.run) != (header.study, header.run):
            raise Refused("not expected", NOT_BEGUN)
        if header.round > policy.said.policy.max_rounds + 1:
            raise Refused("not expected", f"round {header.round} is beyond what this site allows")
        if header.study not in policy.approved():
            raise Refused("not expected", WITHDRAWN)
        tally_of(policy, header.study).after(header, len(request)).check(header, policy)  # before any work is done
        reply = self.site.answer(request)
        if header.kind == "final":
            self.keep(self.site.model, header.facts)
        return reply


def answering(header: Header, name: str, facts: Mapping[str, Any]) -> Header:
    """The header of an answer."""
    return Header(header.kind, header.study, header.run, header.round, name, header.sequence, facts)


def complaint(header: Header, why: str, words: str) -> bytes:
    """A reply that says that something went wrong."""
    return pack(Header("error", header.study, header.run, header.round, header.silo, header.sequence,
                       {"why": why, "said": words[:MOST_WORDS]}))  # fmt: skip
