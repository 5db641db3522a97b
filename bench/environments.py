"""One virtual environment per peer, with pinned versions, made once and kept.

The peers do not agree on their dependencies (FedJAX needs a jax of 2024), so each has an environment of its
own under `.bench/` at the root of the repository, or in the folder that the variable `BENCH_ENVS` names. A
stamp file holds the pins: an environment whose stamp matches is used as it is, any other is made anew. What
does not install is left out of the comparison, and the reason is shown in the results.

    python bench/environments.py [NAME ...]      makes them all, or those named
"""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

PINS: dict[str, tuple[str, ...]] = {
    "numpy": ("numpy==2.4.6",),
    "torch": ("torch==2.13.0", "numpy==2.4.6"),
    "flower": ("flwr[simulation]==1.41.0", "ray==2.55.1", "numpy==2.4.6"),
    # Task C wants torch in Flower's clients.
    "flower_torch": ("flwr[simulation]==1.41.0", "ray==2.55.1", "torch==2.13.0", "numpy==2.4.6"),
    # FedJAX calls functions that later versions of jax have removed; the others are of the same months.
    "fedjax": (
        "fedjax==0.0.17",
        "jax==0.4.25",
        "jaxlib==0.4.25",
        "dm-haiku==0.0.12",
        "optax==0.2.2",
        "chex==0.1.86",
        "numpy==1.26.4",
        "scipy==1.12.0",
    ),
    # Its wheel brings CHOLMOD along; scikit-sparse wants the system's SuiteSparse.
    "cholmod": ("cvxopt==1.3.3", "numpy==2.4.6"),
    "pfl": ("pfl==0.6.0", "torch==2.13.0", "numpy==2.4.6"),
}

STAMP = "pins.txt"


class Environment(NamedTuple):
    """Where a peer's interpreter is, or why there is none."""

    python: Path | None
    reason: str = ""


def folder() -> Path:
    """The folder that holds the environments."""
    default = Path(__file__).resolve().parents[1] / ".bench"
    return Path(os.environ.get("BENCH_ENVS", default)).resolve()


def prepare(name: str) -> Environment:
    """Make the environment `name`, or find it ready from an earlier run."""
    home = folder() / name
    python = home / "bin" / "python"
    stamp = home / STAMP
    if python.exists() and stamp.exists() and stamp.read_text() == _stamp(name):
        return Environment(python)
    shutil.rmtree(home, ignore_errors=True)
    print(f"making the environment of {name}: {' '.join(PINS[name])}", file=sys.stderr, flush=True)
    for command in (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PINS[name]],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return Environment(None, "did not install: " + last_words(done.stderr or done.stdout))
    stamp.write_text(_stamp(name))
    return Environment(python)


def last_words(output: str, lines: int = 2, width: int = 160) -> str:
    """The last lines of a program's complaint, on one line, without addresses or paths of this machine."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    said = [line.strip() for line in plain.splitlines() if not line.startswith("WARNING")]
    kept = [line for line in said if line.strip("^~ ")][-lines:]
    words = " / ".join(textwrap.shorten(line, width) for line in kept) or "no message"
    words = re.sub(r"\b(?:https?|file)://\S+", "<address>", words)
    return re.sub(r"(?<![\w.<])/(?:[\w.+@-]+/)+", "", words)


def _stamp(name: str) -> str:
    return "\n".join(PINS[name]) + "\n"


def main() -> None:
    """Make the environments named on the command line, or all of them."""
    for name in sys.argv[1:] or PINS:
        environment = prepare(name)
        print(f"{name}: {'ready' if environment.python else environment.reason}", flush=True)


if __name__ == "__main__":
    main()
