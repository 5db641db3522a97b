"""What can go wrong in a federation of real processes, done to it on purpose, and how long it took to get over it.

Every fault is a function that strikes a victim and returns how to undo it; the federation's journal tells when the hub
noticed and when everybody was back.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from confrere.deploy.engine.kits import kit_of
from confrere.deploy.journal import JOURNAL, parsed
from confrere.deploy.stations import STUDIES
from tests.federation import PATIENCE, Federation
from tests.hospitals import SITES

HUB = "hub"
ROUNDS = ("round", "abandoned")
NOTICED = 30.0  # seconds within which the loss of a process is noticed, or nobody missed it


class Proxy:
    """A wire between a site and the hub that can freeze: nothing passes, and nobody is told."""

    def __init__(self, port: int):
        self.to = port
        self.flows = threading.Event()
        self.flows.set()
        self.socket = socket.create_server(("localhost", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _ = self.socket.accept()
                threading.Thread(target=self.join, args=(inner,), daemon=True).start()

    def join(self, inner: socket.socket) -> None:
        self.flows.wait()
        try:
            outer = socket.create_connection(("localhost", self.to))
        except OSError:
            inner.close()
            return
        for one, other in ((inner, outer), (outer, inner)):
            threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := one.recv(1 << 16):
                self.flows.wait()
                other.sendall(content)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self.flows.set()
        self.socket.close()


class Follower:
    """A journal as it grows."""

    def __init__(self, folder: Path):
        self.path, self.read, self.lines = folder / JOURNAL, 0, list[dict[str, Any]]()

    def look(self) -> list[dict[str, Any]]:
        """All lines so far; those that came since the last look have the moment at which they were seen."""
        if self.path.is_file():
            with self.path.open("rb") as file:
                file.seek(self.read)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self.read += len(whole)
            self.lines += [{**line, "seen": time.monotonic()} for line in parsed(whole)]
        return self.lines


class Outcome(NamedTuple):
    """A fault, and the seconds until it was noticed and until all were back after its cause had ended."""

    kind: str
    victim: str
    detected: float | None
    recovered: float
    lasted: float  # from the fault to the end of its cause
    rounds_missed: int


class Frail(Federation):
    """A federation in which much can go wrong: wires that freeze, small disks, and clocks that jump."""

    def provision(self) -> None:
        super().provision()
        self.proxies = {name: Proxy(self.port) for name in SITES}
        for name, proxy in self.proxies.items():
            file = kit_of(self.sites[name] / "kit", name) / "startup" / "fed_client.json"
            file.write_text(file.read_text().replace(f"localhost:{self.port}", f"localhost:{proxy.port}"))
        self.small = [name for name in (HUB, *SITES) if mounted(self.disk(name))]
        library = compiled_clock(self.hub)
        for name in (HUB, *SITES) if library is not None else ():
            self.clock(name).write_text("0")
            self.more[name] = {"LD_PRELOAD": str(library), "WRONG_BY": str(self.clock(name))}
        self.jumpy = library is not None

    def disk(self, name: str) -> Path:
        """Where the hub or a site keeps what must not be lost."""
        return self.hub / STUDIES if name == HUB else self.sites[name] / "state"

    def clock(self, name: str) -> Path:
        """By how much the clock of a host is wrong."""
        return self.place(name) / "clock"

    def stop(self) -> None:
        super().stop()
        for proxy in self.proxies.values():
            proxy.close()
        for name in self.small:
            subprocess.run(["umount", "-l", self.disk(name)], check=False)


def compiled_clock(folder: Path) -> Path | None:
    """A library that makes a clock jump, if there is a compiler."""
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    done = shutil.which("cc") and subprocess.run(["cc", "-shared", "-fPIC", "-O2", source, "-o", library], check=False)
    return library if done and done.returncode == 0 else None


def mounted(place: Path) -> bool:
    """Whether a small file system of its own could be put in a place; it takes the right to."""
    place.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(place)]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


Undo = Callable[[], None]
Strike = Callable[[Frail, str], Undo]


def nothing() -> None:
    """What ended by itself needs no undoing."""


def kill_job(federation: Frail, victim: str) -> Undo:
    """kill -9 of a job process, at a site or at the hub."""
    kill(federation.job_process(victim))
    return nothing


def kill_engine(federation: Frail, victim: str) -> Undo:
    """kill -9 of the engine's process; `confrere ... start` is still there."""
    kill(federation.engine_process(victim))
    return nothing


def kill_host(federation: Frail, victim: str) -> Undo:
    """kill -9 of all processes of a host; somebody starts it again."""
    pids = [federation.processes[victim].pid, federation.engine_process(victim), federation.job_process(victim)]
    for pid in pids:
        kill(pid)
    federation.processes[victim].wait()
    return lambda: federation.start(victim)


def kill(pid: int | None) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def freeze_network(federation: Frail, victim: str) -> Undo:
    """Nothing passes between a site and the hub, and no connection is closed."""
    federation.proxies[victim].flows.clear()
    return federation.proxies[victim].flows.set


def stop_job(federation: Frail, victim: str) -> Undo:
    """A site that is slow beyond any deadline: its job process does not move."""
    pid = federation.job_process(victim)
    if pid is None:
        return nothing
    os.kill(pid, signal.SIGSTOP)

    def go_on() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    return go_on


def fill_disk(federation: Frail, victim: str) -> Undo:
    """The file system of a site's states, or of the hub's studies, has no byte left."""
    place = federation.disk(victim) / "ballast"
    with contextlib.suppress(OSError), place.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4096):
            pass
    return place.unlink


def jump_clock(federation: Frail, victim: str) -> Undo:
    """The machine's clock is an hour ahead, and then right again."""
    federation.clock(victim).write_text("3600")
    return lambda: (federation.clock(victim).write_text("0"), None)[1]


def run_fault(federation: Frail, follower: Follower, kind: str, strike: Strike, victim: str, lasts: float) -> Outcome:
    """Strike, wait, undo, and wait until a round has everybody."""
    seen = len(follower.look())
    began = time.monotonic()
    undo = strike(federation, victim)
    if undo is nothing:
        wait_for(lambda: noticed(follower, seen, victim), NOTICED)
        ended, since = began, len(follower.lines)
    else:
        look_for(follower, lasts)
        undo()
        ended, since = time.monotonic(), len(follower.look())
    back = wait_for(lambda: whole_again(follower, since), PATIENCE)
    assert back is not None, f"{kind} of {victim}: {follower.lines[-3:]} {federation.logs()}"
    found = noticed(follower, seen, victim)
    missed = sum(line["event"] in ROUNDS and not has_everybody(line) for line in follower.lines[seen:])
    detected, recovered = None if found is None else found - began, max(0.0, back - ended)
    return Outcome(kind, victim, detected, recovered, ended - began, missed)


def look_for(follower: Follower, seconds: float) -> None:
    """Let time pass with an eye on the journal."""
    wait_for(lambda: follower.look() and None, seconds)


def whole_again(follower: Follower, since: int) -> float | None:
    """When a round had everybody, or the study was finished."""
    lines = follower.look()
    finished = lines[-1]["seen"] if lines and lines[-1]["event"] == "finished" else None
    return next((line["seen"] for line in lines[since:] if has_everybody(line)), finished)


def has_everybody(line: dict[str, Any]) -> bool:
    return line["event"] in ("round", "finished") and len(line["answered"]) == len(SITES)


def noticed(follower: Follower, seen: int, victim: str) -> float | None:
    """When the journal first showed that something was wrong with the victim."""
    for line in follower.look()[seen:]:
        absent = line["event"] in ("round", "abandoned") and victim != HUB and victim not in line["answered"]
        if absent or (victim == HUB and line["event"] in ("resumed", "interrupted", "abandoned", "waiting")):
            return line["seen"]
    return None


def wait_for(what: Callable[[], float | None], seconds: float) -> float | None:
    """What there is as soon as there is something, or None after so many seconds."""
    ends = time.monotonic() + seconds
    while (found := what()) is None and time.monotonic() < ends:
        time.sleep(0.05)
    return found
