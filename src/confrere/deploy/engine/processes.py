"""The engine's processes: started, and started again when they end, until they are told to stop."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from confrere.deploy.engine import HUB, SITE

PAUSE = 1.0  # seconds before a process that ended is started again
# FLARE keeps every reply that came, and a thread with it, for as long as its sender may send it again: 65 s by default,
# which is thousands of threads where rounds are quick, and gigabytes where models are large.
RESENDING = {"NVFLARE_STREAMING_RETRY_TIMEOUT": "10", "NVFLARE_STREAMING_RETRY_WAIT": "2"}  # seconds
# FLARE puts whatever comes together, up to 4 GiB, before we see it. Six messages of 10 million numbers of 64 bits fit
# into this; more must be allowed by the same variable at the hub and at sites.
LARGEST = {"NVFLARE_STREAMING_MAX_BLOB_SIZE": str(512 << 20)}  # bytes
MODULES = {
    "server": "nvflare.private.fed.app.server.server_train", "client": "nvflare.private.fed.app.client.client_train"
}  # fmt: skip


class Resident:
    """A process that is there as long as this one is."""

    def __init__(self, command: list[str], env: dict[str, str], folder: Path, log: Path):
        self.command, self.env, self.folder, self.log = command, env, folder, log
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0

    def keep(self) -> bool:
        """Start the process if it is not there; whether it had to be."""
        if self.process is not None and self.process.poll() is None:
            return False
        if time.monotonic() - self.started < PAUSE:
            return False
        self.started = time.monotonic()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env=self.env, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent, start_new_session=True,
            )  # fmt: skip
        return True

    def stop(self, seconds: float = 10.0) -> None:
        """End it and all that it started."""
        if self.process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(seconds)
            except (ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
                continue
        self.process = None


def end_with_parent() -> None:
    """Linux: when the parent dies, however it dies, so does this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def server(kit: Path, hub: Path) -> Resident:
    """The engine's process at the hub."""
    return Resident(command("server", kit, "org=hub"), environment(HUB, hub), kit, hub / "server.log")


def client(kit: Path, site: Path, organisation: str) -> Resident:
    """The engine's process at a site."""
    about = f"uid={kit.name}", f"org={organisation}"
    return Resident(command("client", kit, *about), environment(SITE, site), kit, site / "client.log")


def command(kind: str, kit: Path, *about: str) -> list[str]:
    """As the start-up folder's own script has it."""
    settings = ["--set", "secure_train=true", *about, "config_folder="]
    return [sys.executable, "-u", "-m", MODULES[kind], "-m", str(kit), "-s", f"fed_{kind}.json", *settings]


def environment(name: str, folder: Path) -> dict[str, str]:
    """What job processes are told: the folder of this hub or site."""
    (folder / "cache").mkdir(exist_ok=True)
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return {"MALLOC_ARENA_MAX": "4", **RESENDING, **LARGEST, **cache, **os.environ, name: str(folder.resolve())}
