"""The hub's folder: who it is, and the studies that were asked for.

hub.json                 the project, its host and port, and the fingerprint of its certificate authority
lock, pulse.json         held while the hub runs; when its engine last answered, and which sites were connected
studies/HASH/            a study and its run (see `conduct`); a file `stop` in it stops it
ca/, kits/, requests/    certificates (see `engine.kits`)
"""

import contextlib
import fcntl
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confrere.deploy.conduct import STUDY
from confrere.deploy.journal import Journal, Line, last_line, read_journal
from confrere.deploy.named import the_one
from confrere.deploy.store import SAFE
from confrere.deploy.study import Deployed, study_of
from confrere.disk import write_whole

HUB_FILE, STUDIES, STOP, LOCK, PULSE = "hub.json", "studies", "stop", "lock", "pulse.json"
ASKED_AGAIN = "asked again"
OVER = ("finished", "stopped", "refused", "given up", "failed")
STALE = 60.0  # seconds: the engine is asked about twice a second, and waited for no longer than this


class HubFile(NamedTuple):
    """What the hub is."""

    project: str
    host: str
    port: int
    fingerprint: str


def read_hub(hub: Path) -> HubFile:
    """The hub in a folder."""
    path = hub / HUB_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{hub} holds no hub: `confrere hub init {hub}` makes one")
    return HubFile(**json.loads(path.read_text(encoding="utf-8")))


def study_folder(hub: Path, hash: str) -> Path:
    """The folder of a study."""
    if not SAFE.fullmatch(hash):
        raise ValueError(f"a study is named by its hash, not {hash!r}")
    return hub / STUDIES / hash


def want_study(hub: Path, study: Deployed) -> Path:
    """Ask for a study: it is run as soon as the hub comes to it, or goes on where it stopped."""
    folder = study_folder(hub, study.hash)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / STUDY, study.content)
    (folder / STOP).unlink(missing_ok=True)
    if is_over(folder):
        Journal(folder, study.hash, "").note(ASKED_AGAIN)
    return folder


def wanted_study(hub: Path, hash: str) -> Deployed:
    """A study that was asked for."""
    path = study_folder(hub, hash) / STUDY
    if not path.is_file():
        raise FileNotFoundError(f"the hub knows no study {hash[:12]}")
    study = study_of(path.read_bytes(), path)
    if study.hash != hash:
        raise ValueError(f"{path} is not the study whose hash it is named after")
    return study


def known_studies(hub: Path) -> list[str]:
    """The hashes of all studies, oldest first."""
    place = hub / STUDIES
    folders = [f for f in place.iterdir() if (f / STUDY).is_file()] if place.is_dir() else []
    return [folder.name for folder in sorted(folders, key=lambda f: (f / STUDY).stat().st_mtime)]


def find_study(hub: Path, beginning: str) -> str:
    """The one study whose hash begins so."""
    return the_one(beginning, known_studies(hub), "at the hub")


def stop_study(folder: Path) -> str:
    """Stop a study: what it then is. One that runs is `stopping`: whoever runs it ends after the round."""
    if is_over(folder):
        return str((last_line(folder) or {})["event"])
    (folder / STOP).touch()
    try:
        with alone_in(folder, 0.0):
            return stopped(folder)
    except BlockingIOError:
        return "stopping"


def stopped(folder: Path) -> str:
    """Note that a study that nobody runs is stopped; one that was finished, and asked for again, is finished again."""
    if not is_over(folder):
        stands = [line for line in read_journal(folder) if line["event"] in ("finished", "round")]
        before = stands[-1] if stands and stands[-1]["event"] == "finished" else {"event": "stopped"}
        Journal(folder, folder.name, "").note(**{key: value for key, value in before.items() if key != "time"})
    return str((last_line(folder) or {})["event"])


@contextlib.contextmanager
def alone_in(folder: Path, seconds: float = 60.0) -> Iterator[None]:
    """Be the only one to run what is in a folder; another one, whose end may be near, is waited for."""
    ends = time.monotonic() + seconds
    with (folder / LOCK).open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as problem:
                if time.monotonic() >= ends:
                    raise BlockingIOError(problem.errno, f"another process runs the study in {folder}") from problem
                time.sleep(0.1)
        yield  # the lock ends with the file, however this process ends


def is_held(folder: Path) -> bool:
    """Whether somebody runs what is in a folder."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # for a moment, and beside others who look
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def write_pulse(hub: Path, answers: bool, connected: list[str], now: float) -> None:
    """Say that the hub runs, whether its engine answers, and which sites are connected."""
    write_whole(hub / PULSE, json.dumps({"time": now, "answers": answers, "connected": connected}), synced=False)


def read_pulse(hub: Path) -> dict[str, Any]:
    """What the hub said last."""
    try:
        return json.loads((hub / PULSE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"time": 0.0, "answers": False, "connected": []}


def trouble_of(hub: Path, now: float | None = None) -> str | None:
    """Why the hub takes nothing up at present, and what to do; None: it runs."""
    if not is_held(hub):
        return f"the hub does not run; start it (confrere hub start {hub}), and all that is not over goes on"
    pulse = read_pulse(hub)
    if not pulse["answers"] or abs((time.time() if now is None else now) - pulse["time"]) > STALE:
        return f"the hub's engine does not answer (it may be starting); {hub / 'server.log'} says more"
    return None


def connected_sites(hub: Path) -> list[str]:
    """The sites that are connected, as far as the hub knows; none while it does not run."""
    return [] if trouble_of(hub) else list(read_pulse(hub)["connected"])


def is_over(folder: Path) -> bool:
    """Whether there is nothing to do for a study until somebody asks again."""
    line = last_line(folder)
    return line is not None and line["event"] in OVER


def standing(folder: Path) -> dict[str, Any]:
    """Where a study stands, for people and programs; `asked_again`: it was over, and the hub has yet to come to it."""
    every = read_journal(folder)
    lines = [line for line in every if line["event"] != ASKED_AGAIN]
    rounds = [line for line in lines if line["event"] == "round"]
    opened: Line = next((line for line in reversed(lines) if line["event"] in ("opened", "refused")), {})
    refused = sum(len(line.get("refused", ())) for line in lines if isinstance(line.get("refused"), list))
    return {
        "study": folder.name, "event": lines[-1]["event"] if lines else "waiting",
        "asked_again": bool(every) and every[-1]["event"] == ASKED_AGAIN,
        "stopping": (folder / STOP).exists() and not is_over(folder),
        "round": rounds[-1]["round"] if rounds else 0, "sites": sorted(opened.get("sites", {})),
        "refuses": opened.get("refuses", {}), "refused": refused,
        "abandoned": sum(line["event"] == "abandoned" for line in lines), "last": lines[-1] if lines else None,
    }  # fmt: skip
