"""`--processes`: a run shared by several processes, which meet through JAX's own distributed runtime.

On one machine the first process starts the others and waits for them. On several machines every process is started by
whoever starts programs there (a shell, Slurm, Kubernetes), with its number and the address of the first.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

Number = Annotated[int, typer.Option("--processes", min=1, help="Share the run over so many processes.")]
Process = Annotated[
    int | None,
    typer.Option(min=0, help="Which of them this one is, from 0, where each is started by hand.", show_default=False),
]
Meet = Annotated[
    str | None, typer.Option(help="HOST:PORT of process 0, where each is started by hand.", show_default=False)
]
PATIENCE_S = 300  # for processes that start late


@contextlib.contextmanager
def shared_by(count: int, process: int | None, meet: str | None, command: Sequence[str]) -> Iterator[bool]:
    """Meet the other processes, having started them unless each was started by hand; True for the first of all.

    `command` is what the others are started with, by this very program.
    """
    check(count, process, meet)
    if count == 1:
        yield True
        return
    others: list[subprocess.Popen[bytes]] = []
    if meet is None:
        meet, process = f"localhost:{free_port()}", 0
        others = [started(command, count, k, meet) for k in range(1, count)]
    try:
        join(meet, count, process or 0)
        yield process == 0
        leave()
        for number, other in enumerate(others, 1):
            if other.wait() != 0:
                raise ValueError(f"process {number} of {count} failed; what it said stands above")
    finally:
        for other in others:
            other.kill()
            other.wait()


def check(count: int, process: int | None, meet: str | None) -> None:
    """Refuse words that do not fit together."""
    if (process is None) != (meet is None):
        raise typer.BadParameter("--process and --meet go together: a number from 0, and HOST:PORT of process 0")
    if process is not None and process >= count:
        raise typer.BadParameter(f"--process counts from 0: of {count} processes the last is {count - 1}")


def join(meet: str, count: int, process: int) -> None:
    """Meet the others."""
    import jax

    from confrere.study.sharing import told_by_all

    try:
        with printed_aside():
            jax.distributed.initialize(meet, count, process, initialization_timeout=PATIENCE_S)
            told_by_all("")
    except RuntimeError as problem:
        raise ValueError(f"the {count} processes did not meet at {meet}: {problem}") from problem


@contextlib.contextmanager
def printed_aside() -> Iterator[None]:
    """What libraries print when processes meet goes to standard error: standard output is for the answer."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def leave() -> None:
    """Part from the others: none of them ends before all have done so."""
    import jax

    jax.distributed.shutdown()


def started(command: Sequence[str], count: int, process: int, meet: str) -> "subprocess.Popen[bytes]":
    """Another process of this program, which says nothing unless it fails."""
    words = [*command, "--processes", str(count), "--process", str(process), "--meet", meet, "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-c", "from confrere.cli import main; main()", *words], stdout=subprocess.DEVNULL
    )


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]
