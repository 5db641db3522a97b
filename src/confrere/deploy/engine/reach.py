"""Whether a site is connected to its hub: by what its engine's process writes, and by the hub's port.

FLARE has no file or call that says so outside its own process. The lines that are looked for are those of FLARE 2.9.
"""

import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

TRYING, CONNECTED, REFUSED = "trying", "connected", "refused"
REGISTERED = b"Successfully registered client"
NOT_LET_IN = b"registration rejected", b"Failed to send heartbeat"
LINE = re.compile(rb"Connection \[(CN\d+) (.*)\] is (created|closed):? PID: (\d+)")
REMEMBERED = 12.0  # seconds for which a refusal counts: it is said every five
LOOK = 2.0  # seconds between two attempts to open the hub's port


class Reach:
    """What a site's log says from now on."""

    def __init__(self, log: Path, hub: tuple[str, int], now: Callable[[], float] = time.monotonic):
        self.log, self.hub, self.now = log, hub, now
        self.read = log.stat().st_size if log.is_file() else 0
        self.process, self.registered, self.line = 0, False, b""  # the line: of the connection that is open, its number
        self.refused_at, self.port_open, self.next_look = -REMEMBERED, False, 0.0

    def started(self, process: int) -> None:
        """The engine's process was started anew: it has to register again."""
        self.process, self.registered, self.line = process, False, b""

    def state(self) -> str:
        """One of trying, connected and refused."""
        for line in self.new_lines():
            self.hear(line)
        if self.now() >= self.next_look:
            self.port_open = is_open(*self.hub)
            self.next_look = self.now() + LOOK
        if self.now() - self.refused_at < REMEMBERED and self.port_open:
            return REFUSED
        return CONNECTED if self.registered and self.line and self.port_open else TRYING

    def new_lines(self) -> list[bytes]:
        """Whole lines that were written since the last time."""
        if not self.log.is_file():
            return []
        with self.log.open("rb") as file:
            self.read = min(self.read, file.seek(0, 2))  # somebody may have emptied it
            file.seek(self.read)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self.read += len(whole)
        return whole.splitlines()

    def hear(self, line: bytes) -> None:
        """What one line says."""
        if REGISTERED in line:
            self.registered, self.refused_at = True, -REMEMBERED
        elif any(words in line for words in NOT_LET_IN):
            self.refused_at = self.now()
        elif (found := LINE.search(line)) and int(found[4]) == self.process:  # and not of a job's process
            if found[3] == b"created" and found[2].endswith(b"=> %b:%d" % (self.hub[0].encode(), self.hub[1])):
                self.line = found[1]
            elif found[3] == b"closed" and found[1] == self.line:
                self.line = b""


def check_free(host: str, port: int, hub: Path, seconds: float = 5.0) -> None:
    """Refuse a port that another program has; one that has just ended is waited for."""
    address = "127.0.0.1" if host in ("localhost", "127.0.0.1") else ""
    ends = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
                return
            except OSError as problem:
                if time.monotonic() >= ends:
                    why = (problem.strerror or "it cannot be used").lower()
                    raise ValueError(
                        f"the hub cannot listen on port {port} ({why}): end the program that has it; another port "
                        f"needs another hub (confrere hub init), for the sites of {hub} know this one"
                    ) from problem
        time.sleep(0.2)


def is_open(host: str, port: int, seconds: float = 2.0) -> bool:
    """Whether somebody listens there."""
    try:
        with socket.create_connection((host, port), seconds):
            return True
    except OSError:
        return False


def hub_of(kit: Path) -> tuple[str, int]:
    """The host and the port of the hub that signed a site's kit."""
    settings = json.loads((kit / "startup" / "fed_client.json").read_text(encoding="utf-8"))
    host, _, port = settings["servers"][0]["service"]["target"].rpartition(":")
    return host, int(port)
