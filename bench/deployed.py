"""Four hospitals on this machine: rounds over NVIDIA FLARE, timed by the hub's journal, over quick or slow lines."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.faults import Proxy

from confrere.deploy.conduct import Conduct
from confrere.deploy.desk import Desk
from confrere.deploy.engine.kits import hub_approve, hub_init, site_install, site_request
from confrere.deploy.hub import Hub
from confrere.deploy.journal import read_journal
from confrere.deploy.policy import read_policy
from confrere.deploy.stations import is_over, study_folder, want_study
from confrere.deploy.study import Deployed, study_of

SITES = ("ash", "birch", "cedar", "elm")
ROWS, FEATURES = 40, 4
MODELS = {  # numbers -> what the study says; two classes
    10: 'model = "linear"',
    45_012: 'model = "mlp"\nhidden = [6430]',
    10_004_555: 'model = "mlp"\nhidden = [3159, 3159]',
}
PATIENCE_S = 600
COMMAND = str(Path(sys.executable).with_name("confrere"))


class Pace(NamedTuple):
    """Seconds of every round from one line of the journal to the next, and bytes that all sites sent in one."""

    seconds: list[float]
    bytes: int


def study(numbers: int, rounds: int, compress: str = "") -> Deployed:
    """FedAvg, one step on 8 rows a round."""
    more = f'compress = "{compress}"\n' if compress else ""
    return study_of(
        f'[data]\nlabel = "ill"\n[study]\nsites = {json.dumps(SITES)}\nalgorithm = "fedavg"\n'
        f"options = {{ lr = 0.01, batch = 8, steps = 1 }}\nrounds = {rounds}\n{more}{MODELS[numbers]}\n"
        f"[terms]\ndeadline = 120.0\nmeasure = false\n".encode()
    )


def make_site(place: Path, name: str, seed: int) -> None:
    """A folder with a table and a policy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, FEATURES))
    lines = [",".join([*(f"{v:.4f}" for v in x), "yes" if x.sum() > 0 else "no"]) for x in X]
    place.mkdir(parents=True)
    header = ",".join([*(f"x{k}" for k in range(FEATURES)), "ill"])
    (place / "patients.csv").write_text("\n".join([header, *lines]) + "\n")
    (place / "site.toml").write_text(f'[site]\nname = "{name}"\ndata = "patients.csv"\n')


class Line(Proxy):
    """A wire between a site and the hub that passes so many bytes a second, each way, of every connection."""

    def __init__(self, port: int, speed: float):
        self.speed = speed
        super().__init__(port)

    def pump(self, one: socket.socket, other: socket.socket) -> None:
        free = time.monotonic()
        with contextlib.suppress(OSError), one, other:
            while content := one.recv(1 << 16):
                other.sendall(content)
                free = max(free, time.monotonic()) + len(content) / self.speed
                time.sleep(max(0.0, free - time.monotonic()))


@contextlib.contextmanager
def federation(speed: float | None = None) -> Iterator[Path]:
    """A hub and four sites, each a process of its own, with certificates and mTLS; the folder of all.

    speed: of the lines of the sites, in bytes a second; None: as fast as the machine is.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with socket.socket() as s:
            s.bind(("localhost", 0))
            port = s.getsockname()[1]
        about = hub_init(home / "hub", "localhost", port)
        commands = [["hub", "start", home / "hub"]]
        for seed, name in enumerate(SITES):
            make_site(home / name, name, seed)
            signed = hub_approve(home / "hub", site_request(home / name, name, "hospital", about.project))[1]
            kit = site_install(home / name, name, signed, about.fingerprint)
            if speed is not None:
                file = kit / "startup" / "fed_client.json"
                file.write_text(file.read_text().replace(f"localhost:{port}", f"localhost:{Line(port, speed).port}"))
            commands.append(["site", "start", "--folder", home / name])
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | {"CI": ""}}
        running = [subprocess.Popen([COMMAND, *map(str, words)], **quiet) for words in commands]
        try:
            yield home
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(60)


def pace_of(home: Path, asked: Deployed) -> Pace:
    """Run a study to its end."""
    for name in SITES:
        read_policy(home / name).approve(asked)
    want_study(home / "hub", asked)
    folder = study_folder(home / "hub", asked.hash)
    ends = time.monotonic() + PATIENCE_S
    while not is_over(folder):
        if time.monotonic() > ends:
            raise RuntimeError(f"not finished after {PATIENCE_S} s")
        time.sleep(0.2)
    lines = read_journal(folder)
    if lines[-1]["event"] != "finished":
        raise RuntimeError(f"{lines[-1]}")
    rounds = [line for line in lines if line["event"] == "round"]
    times = [line["time"] for line in rounds]
    return Pace(np.diff(times).tolist(), rounds[-1]["bytes"])


def parts_of(asked: Deployed, rounds: int) -> dict[str, float]:
    """Seconds of the parts of a round without any engine: all in this process, sites one after the other.

    The first round, which compiles, does not count.
    """
    spent = dict.fromkeys(("one site", "hub: disk"), 0.0)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        desks = {}
        for seed, name in enumerate(SITES):
            make_site(home / name, name, seed)
            read_policy(home / name).approve(asked)
            desks[name] = Desk(home / name)

        def timed(what, do):
            def wrapped(*given):
                began = time.perf_counter()
                result = do(*given)
                spent[what] += time.perf_counter() - began
                return result

            return wrapped

        answers = {name: timed("one site", desk.answer) for name, desk in desks.items()}
        run = Conduct(asked, home / "hub", lambda requests, *_: ({s: answers[s](r) for s, r in requests.items()}, {}))
        run.opening = run.negotiated()
        run.admitted(asked.names)
        hub = Hub(run.opening.agreed(asked), run.opening.sizes, run.kept_open, run.journal, asked.terms)
        hub.journal.save = timed("hub: disk", hub.journal.save)
        hub.one_round()
        spent |= dict.fromkeys(spent, 0.0)
        began = time.perf_counter()
        for _ in range(rounds):
            hub.one_round()
        whole = time.perf_counter() - began
    hub_alone = whole - spent["one site"] - spent["hub: disk"]
    return {
        "one site": spent["one site"] / rounds / len(SITES), "hub: pack, check, mix": hub_alone / rounds,
        "hub: disk": spent["hub: disk"] / rounds,
    }  # fmt: skip
