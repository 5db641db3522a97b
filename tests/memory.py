"""The memory of every process of a federation, round by round."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confrere.deploy.stations import is_over, want_study
from confrere.deploy.study import Deployed, study_of
from tests.faults import Follower
from tests.federation import Federation
from tests.hospitals import SITES, study


class Trend(NamedTuple):
    """A process: its memory in the end, and how much it would grow over 1,000 rounds, in MB."""

    process: str
    megabytes: float
    growth: float


def tiny_study(rounds: int) -> Deployed:
    """Rounds of next to nothing: what grows with their number shows."""
    text = study("fedavg", "lr = 0.1, batch = 8").content.decode().replace("rounds = 10", f"rounds = {rounds}")
    return study_of(text.encode())


def processes_of(federation: Federation) -> dict[str, int]:
    """All of them, by name."""
    found = {}
    for name in ("hub", *SITES):
        parts = {
            "start": federation.processes[name].pid, "engine": federation.engine_process(name),
            "job": federation.job_process(name),
        }  # fmt: skip
        found |= {f"{name} {part}": pid for part, pid in parts.items() if pid is not None}
    return found


def resident(pid: int) -> float:
    """Megabytes of its own that a process has in memory: files that it maps are not counted."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def memory(folder: Path, rounds: int, warm: int, every: float = 1.0) -> list[Trend]:
    """Run a tiny study, look at every process now and then, and fit a line to what was seen after `warm` rounds."""
    federation = Federation(folder)
    federation.provision()
    asked = tiny_study(rounds)
    seen: dict[str, list[tuple[int, float]]] = {}
    try:
        federation.start("hub", *SITES)
        federation.approve(asked)
        want_study(federation.hub, asked)
        follower = Follower(federation.folder(asked))
        federation.wait(lambda: any(line["event"] == "round" for line in follower.look()))
        pids = processes_of(federation)
        while not is_over(federation.folder(asked)):
            at = follower.look()[-1].get("round", 0)
            for name, pid in pids.items():
                seen.setdefault(name, []).append((at, resident(pid)))
            time.sleep(every)
    finally:
        federation.stop()
    return [trend(name, [one for one in found if one[0] > warm]) for name, found in seen.items()]


def trend(name: str, found: list[tuple[int, float]]) -> Trend:
    """The line that fits best."""
    at, megabytes = np.array(found).T
    return Trend(name, float(megabytes[-1]), 1000 * float(np.polyfit(at, megabytes, 1)[0]))
