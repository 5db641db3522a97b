"""At the hub: a job for the studies that are to run, one after the other, and a new one when membership changes.

FLARE fixes who takes part when a job starts: a site whose host was restarted, or that starts late, is connected but not
in the job. So the job is stopped and submitted again; the run goes on from its journal, and sites from their disks.
"""

import contextlib
import io
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confrere.deploy.engine.job import write_job
from confrere.deploy.engine.kits import ADMIN, ALIVE_SECONDS, kit_of
from confrere.deploy.exchange import UNREACHABLE
from confrere.deploy.journal import STATE, Journal, last_line
from confrere.deploy.revoked import revoked_sites
from confrere.deploy.stations import (
    ASKED_AGAIN,
    STOP,
    is_over,
    known_studies,
    stop_study,
    study_folder,
    wanted_study,
    write_pulse,
)
from confrere.deploy.study import Deployed

SETTLED = 8.0  # seconds for which a connected site may be out of reach: its launcher may be at work
GATHERED = 4.0  # seconds without a newcomer after which a job starts without those who are not there
PULSE_SECONDS = 2.0
AGAIN, RARELY = 10.0, 300.0  # seconds before the same is tried again: at first, and at most
RUNNING = ("SUBMITTED", "APPROVED", "DISPATCHED", "RUNNING")
log = logging.getLogger("confrere.supervisor")


class Supervisor:
    """The loop around jobs. `step` is called once a second or so, and never raises."""

    def __init__(self, hub: Path, open_session: Callable[[Path], Any] | None = None, now=time.monotonic):
        self.hub, self.open, self.now = hub.resolve(), open_session or session, now
        self.session: Any = None
        self.job: str | None = None
        self.studies: list[str] = []  # of the job
        self.members: frozenset[str] = frozenset()
        self.revoked = frozenset(revoked_sites(self.hub))  # as far as the engine was told
        self.lost_since: dict[str, float] = {}
        self.there, self.there_since = frozenset[str](), 0.0
        self.again = Patience(now)
        self.answers, self.next_pulse = False, 0.0  # whether the engine does

    def step(self) -> None:
        """Look once, do what is to be done, and say that the hub runs."""
        before = self.answers
        self.answers = False
        try:
            if self.session is None:
                self.session = self.open(self.hub)
            self.look()
        except Exception as problem:  # the server may be starting: try again with a new session
            level = logging.WARNING if self.answers else logging.INFO  # that the engine does not answer is told anyhow
            log.log(level, "the hub cannot go on: %s: %s", type(problem).__name__, problem)
            self.close()
        if self.answers != before or self.now() >= self.next_pulse:
            self.next_pulse = self.now() + PULSE_SECONDS
            with contextlib.suppress(OSError):  # a full disk
                write_pulse(self.hub, self.answers, sorted(self.there), time.time())

    def close(self) -> None:
        """End the session; a job that runs goes on."""
        if self.session is not None:
            with contextlib.suppress(Exception):
                self.session.close()
        self.session = None

    def forget(self) -> None:
        """The engine's process was started anew: whatever it says of jobs before, none runs."""
        self.job = None
        self.close()

    def look(self) -> None:
        """One job at a time: submit, watch, submit again."""
        self.shut_out()
        there = connected(self.session) - self.revoked
        self.answers = True
        if there != self.there:
            self.there, self.there_since = frozenset(there), self.now()
        if self.job is not None and not self.runs():
            self.job = None
        if self.job is not None:
            current = [hash for hash in self.studies if not is_over(study_folder(self.hub, hash))]
            if not current:
                return  # the job is about to end by itself
            if self.should_restart(current[0], there & set(wanted_study(self.hub, current[0]).names)):
                self.end_job()
        if self.job is None:
            self.start_next(there)

    def shut_out(self) -> None:
        """Tell the engine which sites were revoked, and which were let in again."""
        wanted = frozenset(revoked_sites(self.hub))
        for site in wanted - self.revoked:
            self.session.disable_client(site)
        for site in self.revoked - wanted:
            self.session.enable_client(site)
        self.revoked = wanted

    def runs(self) -> bool:
        """Whether the job still does."""
        return str(self.session.get_job_meta(self.job).get("status")) in RUNNING

    def should_restart(self, study: str, there: set[str]) -> bool:
        """Whether a site is connected that is not, or no longer, in the job."""
        if there - self.members and self.gathered(study) and self.again.may_try(there - self.members):
            return True
        line = last_line(study_folder(self.hub, study)) or {}
        lost = {site for site, words in line.get("errors", {}).items() if words.startswith(UNREACHABLE)} & there
        self.lost_since = {site: self.lost_since.get(site, self.now()) for site in lost}
        long = {site for site, since in self.lost_since.items() if self.now() - since > SETTLED}
        return bool(long) and self.again.may_try(long)

    def gathered(self, study: str) -> bool:
        """Whether all sites of a study are there, or nobody new has come for a while."""
        return self.there >= set(wanted_study(self.hub, study).names) or self.now() - self.there_since > GATHERED

    def end_job(self) -> None:
        """Stop the job; the run's state is on the disk."""
        log.info("a site came back: the job is submitted anew")
        with contextlib.suppress(Exception):
            self.session.abort_job(self.job)
        ends = self.now() + 20
        while self.now() < ends and self.runs():
            time.sleep(0.2)
        self.job = None
        self.lost_since.clear()

    def start_next(self, there: set[str]) -> None:
        """A job for the studies that are not over and have sites, oldest first."""
        waiting: list[str] = []
        sites: set[str] = set()
        for hash in known_studies(self.hub):
            folder = study_folder(self.hub, hash)
            if (folder / STOP).exists():
                stop_study(folder)  # whoever was to stop it is gone, or it had not begun
            if is_over(folder) or (folder / STOP).exists():
                continue
            study = readable(self.hub, hash)
            if study is None:
                continue
            here = there & set(study.names)
            if not study.are_enough(here):
                note_absence(folder, study, here)
            elif self.gathered(hash):
                waiting.append(hash)
                sites |= here
        if waiting and self.again.may_try({progress_of(study_folder(self.hub, waiting[0]))}):
            self.submit(waiting, sorted(sites))

    def submit(self, studies: list[str], sites: list[str]) -> None:
        """Submit a job."""
        place = self.hub / "job"
        shutil.rmtree(place, ignore_errors=True)
        self.job = self.session.submit_job(str(write_job(place, studies, sites)))
        self.studies, self.members = studies, frozenset(sites)
        log.info("job %s with %s", self.job, ", ".join(sites))


class Patience:
    """What was tried in vain is tried again, more and more rarely."""

    def __init__(self, now: Callable[[], float]):
        self.now = now
        self.tried: dict[str, tuple[float, float]] = {}  # when, and how long to wait from then on

    def may_try(self, things: set[str]) -> bool:
        """Whether it is time to try any of these again; if so, it counts as tried."""
        now = self.now()
        self.tried = {thing: (at, wait) for thing, (at, wait) in self.tried.items() if now - at < 2 * RARELY}
        due = {thing for thing in things if thing not in self.tried or now >= sum(self.tried[thing])}
        for thing in due:
            self.tried[thing] = (now, min(RARELY, 2 * self.tried[thing][1]) if thing in self.tried else AGAIN)
        return bool(due)


def readable(hub: Path, hash: str) -> Deployed | None:
    """A study that was asked for; one whose file is damaged has failed, until it is asked for again."""
    try:
        return wanted_study(hub, hash)
    except ValueError as problem:
        Journal(study_folder(hub, hash), hash, "").note("failed", why=f"its file cannot be read: {problem}")
        return None


def progress_of(folder: Path) -> str:
    """A study and how far it is: another one after every round, and when it is asked for again."""
    line, state = last_line(folder), folder / STATE
    asked = line["time"] if line is not None and line["event"] == ASKED_AGAIN else 0
    return f"{folder.name} {state.stat().st_mtime_ns if state.is_file() else 0} {asked}"


def note_absence(folder: Path, study: Deployed, here: set[str]) -> None:
    """Say once in the journal for whom is waited."""
    line = last_line(folder)
    away = ", ".join(sorted(set(study.names) - here))
    why = f"not connected, but needed for the minimum of sites: {away}"
    if line is None or line.get("why") != why:
        Journal(folder, study.hash, "").note("waiting", why=why)


def session(hub: Path) -> Any:
    """A session with the engine, as its administrator; what the engine has to say of it is not for standard output."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before the engine is imported
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    with contextlib.redirect_stdout(io.StringIO()):
        return new_secure_session(ADMIN, str(kit_of(hub / "kits", ADMIN)), timeout=10.0)


def connected(session: Any) -> set[str]:
    """The sites from which something was heard of late."""
    now = time.time()
    clients = session.get_system_info().client_info
    return {c.name for c in clients if c.last_connect_time is None or now - c.last_connect_time < ALIVE_SECONDS}
