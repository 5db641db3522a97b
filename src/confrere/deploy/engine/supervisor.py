"""At the hub: a job for the studies that are to run, one after the other, and a new one when membership changes.

FLARE fixes who takes part when a job starts: a site whose host was restarted, or that starts late, is connected but not
in the job. So the job is stopped and submitted again; the run goes on from its journal, and sites from their disks.
"""

import contextlib
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confrere.deploy.engine.job import write_job
from confrere.deploy.engine.kits import ADMIN, ALIVE_SECONDS, kit_of
from confrere.deploy.journal import read_journal
from confrere.deploy.revoked import revoked_sites
from confrere.deploy.stations import STOP, is_over, known_studies, study_folder, wanted_study

UNREACHABLE = "it cannot be reached"
SETTLED = 6.0  # seconds for which a connected site may be out of reach: its launcher may be at work
AGAIN = 60.0  # seconds before a job is submitted anew for the sake of the same sites
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
        self.retried: dict[str, float] = {}

    def step(self) -> None:
        """Look once, and do what is to be done."""
        try:
            if self.session is None:
                self.session = self.open(self.hub)
            self.look()
        except Exception as problem:  # the server may be starting: try again with a new session
            log.warning("the engine does not answer: %s: %s", type(problem).__name__, problem)
            self.close()

    def close(self) -> None:
        """End the session; a job that runs goes on."""
        if self.session is not None:
            with contextlib.suppress(Exception):
                self.session.close()
        self.session = None

    def look(self) -> None:
        """One job at a time: submit, watch, submit again."""
        self.shut_out()
        there = connected(self.session) - self.revoked
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
        if there - self.members and self.may_retry(there - self.members):
            return True
        lines = read_journal(study_folder(self.hub, study))
        errors = lines[-1].get("errors", {}) if lines else {}
        lost = {site for site, words in errors.items() if words.startswith(UNREACHABLE) and site in there}
        self.lost_since = {site: self.lost_since.get(site, self.now()) for site in lost}
        long = {site for site, since in self.lost_since.items() if self.now() - since > SETTLED}
        return bool(long) and self.may_retry(long)

    def may_retry(self, sites: set[str]) -> bool:
        """Not for the same sites again and again."""
        fresh = {site for site in sites if self.now() - self.retried.get(site, -AGAIN) >= AGAIN}
        self.retried |= dict.fromkeys(fresh, self.now())
        return bool(fresh)

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
            here = there & set(wanted_study(self.hub, hash).names)
            if here and not is_over(folder) and not (folder / STOP).exists():
                waiting.append(hash)
                sites |= here
        if waiting:
            self.submit(waiting, sorted(sites))

    def submit(self, studies: list[str], sites: list[str]) -> None:
        """Submit a job."""
        place = self.hub / "job"
        shutil.rmtree(place, ignore_errors=True)
        self.job = self.session.submit_job(str(write_job(place, studies, sites)))
        self.studies, self.members = studies, frozenset(sites)
        log.info("job %s with %s", self.job, ", ".join(sites))


def session(hub: Path) -> Any:
    """A session with the engine, as its administrator."""
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    return new_secure_session(ADMIN, str(kit_of(hub / "kits", ADMIN)), timeout=10.0)


def connected(session: Any) -> set[str]:
    """The sites from which something was heard of late."""
    now = time.time()
    clients = session.get_system_info().client_info
    return {c.name for c in clients if c.last_connect_time is None or now - c.last_connect_time < ALIVE_SECONDS}
