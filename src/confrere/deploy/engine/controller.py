"""The hub's half of a job: it conducts the studies that the job names, over FLARE's auxiliary messages."""

import logging
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from confrere.deploy.conduct import Conduct, Refusal
from confrere.deploy.engine import HUB
from confrere.deploy.engine.orphans import end_with_parent
from confrere.deploy.exchange import TIMEOUT, UNREACHABLE, Errors, Pending, Replies, gathered
from confrere.deploy.hub import Abandoned, Absence, Stop
from confrere.deploy.journal import Journal
from confrere.deploy.revoked import revoked_sites, without_revoked
from confrere.deploy.stations import STOP, alone_in, study_folder, wanted_study
from confrere.deploy.store import SAFE

TOPIC, HELLO, CONTENT = "confrere.request", "confrere.hello", "content"
READY_SECONDS = 30.0
log = logging.getLogger("confrere.hub")


class FlareExchange:
    """Requests to sites' job processes, one thread each; FLARE knows who answers by its certificate."""

    def __init__(self, engine: Any, threads: int = 128):
        self.engine = engine
        self.pool = ThreadPoolExecutor(threads)
        self.asked: Pending = {}

    def __call__(
        self, requests: Mapping[str, bytes], deadline: float, enough: int | None = None
    ) -> tuple[Replies, Errors]:
        return gathered(self.ask, self.pool, requests, deadline, enough, self.asked)

    def ask(self, site: str, request: bytes, deadline: float, topic: str = TOPIC) -> bytes:
        """Ask one site, and wait."""
        message = Shareable()
        message[CONTENT] = request
        with self.engine.new_context() as context:
            reply = self.engine.send_aux_request([site], topic, message, deadline, context, optional=True).get(site)
        code = None if reply is None else reply.get_return_code()
        if code == ReturnCode.OK:
            return reply.get(CONTENT, b"")
        raise ConnectionError(TIMEOUT if code == ReturnCode.TIMEOUT else f"{UNREACHABLE} ({code})")

    def ready(self, sites: set[str], seconds: float, stop: Stop) -> set[str]:
        """Wait until the job processes of these sites are there; those that are in the end."""
        ends = time.monotonic() + seconds
        there: set[str] = set()
        while True:
            here = {client.name for client in self.engine.get_clients()} & sites
            found, _ = gathered(
                lambda site, request, limit: self.ask(site, request, limit, HELLO), self.pool,
                dict.fromkeys(here - there, b""), 2.0,
            )  # fmt: skip
            there |= set(found)
            if here <= there or time.monotonic() > ends or stop():
                return there
            time.sleep(0.1)


class HubController(Controller):
    """`studies`: the hashes of the studies to be run, one after the other; all else is in the hub's own folder."""

    def __init__(self, studies: list[str]):
        super().__init__(task_check_period=1.0)
        self.studies = [hash for hash in studies if isinstance(hash, str) and SAFE.fullmatch(hash)]

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is to be done."""

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is to be done."""

    def process_result_of_unknown_task(
        self, client: Any, task_name: str, client_task_id: str, result: Any, fl_ctx: FLContext
    ) -> None:
        """There are no tasks."""

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """All studies of the job."""
        end_with_parent()
        hub = Path(os.environ[HUB])
        exchange = FlareExchange(fl_ctx.get_engine())
        for hash in self.studies:
            folder = study_folder(hub, hash)

            def stop(folder: Path = folder) -> str | None:
                return "interrupted" if abort_signal.triggered else "stopped" if (folder / STOP).exists() else None

            if not stop():
                conduct_one(hub, hash, exchange, stop)


def conduct_one(hub: Path, hash: str, exchange: FlareExchange, stop: Stop) -> None:
    """One study, whatever becomes of it: what went wrong is in its journal."""
    folder = study_folder(hub, hash)
    journal, allowed = Journal(folder, hash, ""), without_revoked(exchange, lambda: revoked_sites(hub))
    try:
        study = wanted_study(hub, hash)
        exchange.ready(set(study.names), READY_SECONDS, stop)
        with alone_in(folder):
            Conduct(study, folder, allowed).whole(stop=stop)
    except Refusal:
        log.info("too few sites take part in %s", hash)
    except Absence as problem:  # the supervisor tries again
        note_if_possible(journal, "waiting", str(problem))
    except OSError as problem:  # a full disk, which may be emptied
        log.exception("study %s cannot be kept", hash)
        note_if_possible(journal, "waiting", f"the hub's files: {problem.strerror}")
    except Abandoned as problem:
        if stop() != "interrupted":
            note_if_possible(journal, "given up", str(problem))
    except Exception as problem:
        log.exception("study %s failed", hash)
        if stop() != "interrupted":
            note_if_possible(journal, "failed", f"{type(problem).__name__}: {problem}")


def note_if_possible(journal: Journal, event: str, why: str) -> None:
    """A last line, unless the disk is what went wrong."""
    try:
        journal.note(event, why=why)
    except OSError:
        log.exception("the journal cannot be written")
