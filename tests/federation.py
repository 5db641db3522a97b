"""A real federation on this machine: a hub and four sites, each a process of its own, with certificates and mTLS."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from confrere.deploy.engine.kits import hub_approve, hub_init, site_install, site_request
from confrere.deploy.engine.supervisor import connected, session
from confrere.deploy.journal import read_journal
from confrere.deploy.policy import read_policy
from confrere.deploy.stations import is_over, standing, study_folder, want_study
from confrere.deploy.study import Deployed
from tests.hospitals import make_sites
from tests.meeting import free_port

PROGRAM = [sys.executable, "-c", "from confrere.cli import main; main()"]
PATIENCE = 300.0


class Federation:
    """Folders and processes."""

    def __init__(self, folder: Path):
        self.hub, self.port = folder / "hub", free_port()
        self.sites = make_sites(folder / "sites", "max_rounds = 100000\n")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.more: dict[str, dict[str, str]] = {}  # the environment that some processes have beside the usual one

    def provision(self) -> None:
        """Request, approve and install, as four hospitals do."""
        about = hub_init(self.hub, "localhost", self.port)

        def join(name: str) -> None:
            signed = hub_approve(self.hub, site_request(self.sites[name], name, f"{name}_clinic", about.project))[1]
            site_install(self.sites[name], name, signed, about.fingerprint)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(join, self.sites))

    def start(self, *names: str) -> None:
        """Start the hub ("hub") or sites."""
        for name in names:
            words = ["hub", "start", self.hub] if name == "hub" else ["site", "start", "--folder", self.sites[name]]
            place = self.place(name)
            with (place / "start.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [*PROGRAM, *map(str, words)],
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "CI": "", **self.more.get(name, {})},
                )

    def stop(self) -> None:
        """End all that was started."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()

    def place(self, name: str) -> Path:
        """The folder of the hub or of a site."""
        return self.hub if name == "hub" else self.sites[name]

    def approve(self, study: Deployed) -> None:
        for place in self.sites.values():
            read_policy(place).approve(study)

    def folder(self, study: Deployed) -> Path:
        return study_folder(self.hub, study.hash)

    def run(self, *studies: Deployed) -> list[dict[str, Any]]:
        """Ask for studies, and wait until they are over; where they stand then."""
        for study in studies:
            want_study(self.hub, study)
        for study in studies:
            self.wait(lambda study=study: is_over(self.folder(study)))
        return [standing(self.folder(study)) for study in studies]

    def wait(self, until) -> None:
        ends = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < ends, self.logs()
            time.sleep(0.1)

    def wait_for_round(self, study: Deployed, number: int) -> None:
        self.wait(lambda: any(line.get("round", 0) >= number for line in self.lines(study) if line["event"] == "round"))

    def lines(self, study: Deployed) -> list[dict[str, Any]]:
        return read_journal(self.folder(study))

    def logs(self) -> str:
        texts = [path.read_text(errors="replace")[-1500:] for path in self.hub.glob("*.log")]
        return "\n".join(texts)

    def connected(self) -> set[str]:
        """The sites that the hub's engine hears of; none while it starts."""
        try:
            admin = session(self.hub)
        except Exception:
            return set()
        try:
            return connected(admin)
        finally:
            admin.close()

    def server_log(self) -> str:
        """What the engine wrote at the hub."""
        return (self.hub / "server.log").read_text(errors="replace")

    def model(self, name: str, study: Deployed) -> dict[str, np.ndarray] | None:
        """The finished model at a site, in the precision in which it was made."""
        found = sorted((self.sites[name] / "state").glob(f"{study.hash[:16]}-*/model/model.safetensors"))
        return load_file(found[-1]) if found else None

    def job_process(self, name: str) -> int | None:
        """The process of the job at the hub or at a site."""
        return self.process(name, b"runner_process" if name == "hub" else b"worker_process")

    def engine_process(self, name: str) -> int | None:
        """The engine's own process at the hub or at a site, whose child the job's is."""
        return self.process(name, b"server_train" if name == "hub" else b"client_train")

    def process(self, name: str, module: bytes) -> int | None:
        """The newest process of a module in a folder."""
        mark = f"{self.place(name)}/kit".encode()
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(module in word for word in words) and any(mark in word for word in words):
                found.append(int(place.name))
        return max(found, default=None)

    def kill_job(self, name: str) -> None:
        """kill -9 the job process of a site."""
        pid = self.job_process(name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
