"""Where data files come from: a folder of the user's, an installed package, or a download that is checked.

`CONFRERE_DATA` names a folder with one folder per data set. What is downloaded is kept in the user's cache and its
SHA-256 (and the MD5, where that is what the publisher gives) is checked at every use.
"""

import hashlib
import http.client
import importlib.metadata
import os
import urllib.error
import urllib.request
from pathlib import Path

import platformdirs


class DataNotFound(FileNotFoundError):
    """A data set could not be had; the message says what was tried and what to do."""


def data_folder(name: str) -> Path | None:
    """The folder `CONFRERE_DATA/name`, if there is one."""
    root = os.environ.get("CONFRERE_DATA")
    folder = Path(root) / name if root else None
    return folder if folder is not None and folder.is_dir() else None


def file_in_package(package: str, path: str) -> Path | None:
    """A file inside an installed package, found without importing it."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.as_posix() == path:
            place = Path(str(file.locate()))
            return place if place.is_file() else None
    return None


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def md5(path: Path) -> str:
    """The MD5 of a file: no protection, but what older publishers give."""
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def check_file(path: Path, digest: str, older: str | None = None) -> Path:
    """The path itself, if its content is what it should be: its SHA-256, and its MD5 if that is given as `older`."""
    if older is not None and md5(path) != older:
        raise DataNotFound(
            f"{path} is not the expected file (MD5 {md5(path)[:12]}..., expected {older[:12]}...): remove it"
        )
    found = sha256(path)
    if found != digest:
        raise DataNotFound(
            f"{path} is not the expected file (SHA-256 {found[:12]}..., expected {digest[:12]}...): remove it"
        )
    return path


def download(url: str, name: str, digest: str, older: str | None = None) -> Path:
    """The file behind a URL, from the cache if it is there; checked, and written whole or not at all."""
    place = Path(platformdirs.user_cache_dir("confrere")) / "data" / name
    if place.is_file():
        return check_file(place, digest, older)
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(place.suffix + f".{os.getpid()}.part")
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            partial.write_bytes(answer.read())
        if sha256(partial) != digest or older not in (None, md5(partial)):
            raise DataNotFound(f"what {url} sent is not the expected file (SHA-256 {sha256(partial)[:12]}...)")
        partial.replace(place)
    except DataNotFound:
        raise
    except (urllib.error.URLError, http.client.HTTPException, OSError) as problem:
        raise DataNotFound(f"could not download {url}: {problem}") from problem
    finally:
        partial.unlink(missing_ok=True)
    return place
