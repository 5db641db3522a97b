"""Flower's deployment engine on this machine: a SuperLink and SuperNodes, each a process of its own.

    python bench/peers/flower_deployed.py NUMBERS ROUNDS [SITES]

The ServerApp sends so many float32 numbers to every node, each sends as many back, and they are averaged. Nodes do
nothing else, and connections are not encrypted: the least that Flower can be asked to do. The last line of the output
is JSON: the seconds of every round, from the first message to the last answer.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
APP = {
    "pyproject.toml": """
[project]
name = "rounds"
version = "1.0.0"
description = "Rounds"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "bench"
[tool.flwr.app.components]
serverapp = "rounds.server:app"
clientapp = "rounds.client:app"
[tool.flwr.app.config]
numbers = 10
rounds = 3
sites = 4
out = ""
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
""",
    "rounds/__init__.py": "",
    "rounds/client.py": """
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    [x] = message.content["arrays"].to_numpy_ndarrays()
    return Message(content=RecordDict({"arrays": ArrayRecord([x + 1])}), reply_to=message)
""",
    "rounds/server.py": """
import json
import time
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    said = context.run_config
    x, seconds = np.zeros(said["numbers"], np.float32), []
    while len(nodes := list(grid.get_node_ids())) < said["sites"]:
        time.sleep(0.2)
    for _ in range(said["rounds"]):
        began = time.perf_counter()
        content = RecordDict({"arrays": ArrayRecord([x])})
        asked = [Message(content=content, message_type="train", dst_node_id=node) for node in nodes]
        replies = list(grid.send_and_receive(asked))
        x = np.mean([reply.content["arrays"].to_numpy_ndarrays()[0] for reply in replies], axis=0)
        seconds.append(time.perf_counter() - began)
    assert np.all(x == said["rounds"])
    Path(said["out"]).write_text(json.dumps(seconds))
""",
}


def main() -> None:
    """Start everything, wait for the rounds, end everything."""
    numbers, rounds, sites = (int(word) for word in (*sys.argv[1:], "4")[:3])
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name, text in APP.items():
            (home / "app" / name).parent.mkdir(parents=True, exist_ok=True)
            (home / "app" / name).write_text(text)
        ports = [free_port() for _ in range(sites + 1)]
        address = f"127.0.0.1:{ports[0]}"
        (home / "home").mkdir()
        (home / "home" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{address}"\ninsecure = true\n'
        )
        env = os.environ | {
            "FLWR_HOME": str(home / "home"), "FLWR_TELEMETRY_ENABLED": "0", "PATH": f"{BIN}:{os.environ['PATH']}",
        }  # fmt: skip
        own = ("--disable-runtime-dependency-installation", "--insecure", "--host", "127.0.0.1", "--port")
        link = ["flower-superlink", *own, ports[0]]
        nodes = [["flower-supernode", *own[1:], port, "--superlink", address] for port in ports[1:]]
        running = [started(link, env, home / "link.log")]
        try:
            wait_for(ports[0])
            running += [started(node, env, home / f"node{k}.log") for k, node in enumerate(nodes)]
            print(json.dumps(seconds_of(home, env, numbers, rounds, sites)))
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(30)


def seconds_of(home: Path, env: dict[str, str], numbers: int, rounds: int, sites: int, patience: float = 900) -> list:
    """Run the app, and read what it wrote."""
    out = home / "seconds.json"
    said = f'numbers={numbers} rounds={rounds} sites={sites} out="{out}"'
    done = subprocess.run(
        [BIN / "flwr", "run", home / "app", "here", "--run-config", said], env=env, capture_output=True, text=True
    )
    ends = time.monotonic() + patience
    while not out.is_file() and done.returncode == 0 and time.monotonic() < ends:
        time.sleep(0.2)
    if not out.is_file():
        logs = "\n".join(path.read_text()[-1000:] for path in home.glob("*.log"))
        raise SystemExit(f"{done.stdout}\n{done.stderr}\n{logs}")
    return json.loads(out.read_text())


def started(command: list, env: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """A process that writes to a log."""
    with log.open("wb") as output:
        return subprocess.Popen([BIN / command[0], *map(str, command[1:])], env=env, stdout=output, stderr=output)


def wait_for(port: int, patience: float = 60) -> None:
    """Until somebody listens there."""
    ends = time.monotonic() + patience
    while time.monotonic() < ends:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"nobody listens at port {port}")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    main()
