"""Facts about the machine that a reader needs to judge the numbers, and none that would name it."""

import os
import platform
from importlib import metadata
from pathlib import Path


def facts() -> dict[str, str]:
    """What to show at the head of the results, in order.

    >>> list(facts())[:2]
    ['processor', 'cores']
    """
    return {
        "processor": _processor(),
        "cores": str(cores()),
        "memory": _memory(),
        "system": f"{platform.system()}, {platform.machine()}",
        "load before the run": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "Python": platform.python_version(),
        **{name: _version(name) for name in ("jax", "jaxlib", "numpy")},
    }


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    lines = _lines("/proc/cpuinfo")
    named = next((line for line in lines if line.startswith("model name")), ": unknown")
    model = named.split(":", 1)[1].strip()
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    vectors = next((name for name in ("avx512f", "avx2") if name in flags), "")
    return f"{model} ({vectors})" if vectors else model


def _memory() -> str:
    total = next((line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), None)
    return f"{int(total.split()[1]) / 2**20:.0f} GiB" if total else "unknown"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
