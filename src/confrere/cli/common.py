"""What commands share: the compilation cache, a progress bar, errors for people."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import typer

if TYPE_CHECKING:
    from rich.console import Console

DATA_NOT_FOUND = 3


def start_jax(double: bool = False) -> None:
    """Use all cores, and keep compiled programs in the user's cache, so that a second run starts fast.

    With `double`, numbers have double precision.
    """
    import jax

    if double:
        jax.config.update("jax_enable_x64", True)

    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)

    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        jax.config.update("jax_compilation_cache_dir", str(Path(platformdirs.user_cache_dir("confrere")) / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@contextlib.contextmanager
def for_people() -> Iterator[None]:
    """Turn what a user can mend into a message and an exit code, without a traceback."""
    try:
        yield
    except FileNotFoundError as problem:  # tables, rows, study.toml, models and runs; folders to write into are made
        complain(problem)
        raise typer.Exit(DATA_NOT_FOUND) from problem
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has gone: nothing to say
        raise typer.Exit(1) from None
    except (ValueError, KeyError, OSError) as problem:
        complain(problem)
        raise typer.Exit(1) from problem


def complain(problem: BaseException) -> None:
    """Say on standard error what went wrong."""
    text: Any = problem.args[0] if isinstance(problem, KeyError) and problem.args else problem
    if isinstance(problem, OSError) and problem.filename is not None:
        text = f"{problem.filename}: {(problem.strerror or 'it cannot be used').lower()}"
    print(f"confrere: {text}", file=sys.stderr)


def console(width: int | None = None) -> "Console":
    """Standard output for tables; names of silos, columns and files are shown as they are, brackets and colons too."""
    from rich.console import Console

    return Console(width=width, markup=False, emoji=False)


@contextlib.contextmanager
def progress_bar(text: str, hidden: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, as a function of (done, total); None if hidden, or where no bar can move."""
    from rich.console import Console

    screen = Console(stderr=True)
    if hidden or not screen.is_interactive:  # else an empty line would be left in a file or a pipe
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def status(text: str, hidden: bool) -> Iterator[None]:
    """A sign of life on standard error while something takes a while."""
    if hidden:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def print_json(value: Any) -> None:
    """One JSON object on standard output."""
    print(json.dumps(value))
