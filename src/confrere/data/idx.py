"""The IDX files of MNIST and of data sets made in its image: where they are found, and how they are read."""

import gzip
import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confrere.data.fetch import DataNotFound, data_folder, download


class IdxFile(NamedTuple):
    """A file: the SHA-256 of its content, and that of the compressed file as the publisher sends it.

    Others compress the same content anew, so that the content is what is checked.
    """

    name: str
    content: str
    sent: str


class IdxSet(NamedTuple):
    """Four files, their home on the network, and folders where a system may have installed them."""

    folder: str
    url: str
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]  # training images, training labels, test images, test labels
    installed: tuple[str, ...] = ()
    hint: str = ""  # another way to get them


def idx_arrays(files: IdxSet) -> tuple[np.ndarray, ...]:
    """Training images [n, height, width], training labels [n], test images and test labels, all uint8."""
    return tuple(read_idx(content_of(find(files, file), file.content)) for file in files.files)


def find(files: IdxSet, file: IdxFile) -> Path:
    """One file, from wherever it can be had."""
    for folder in (data_folder(files.folder), *map(Path, files.installed)):
        if folder is not None and (folder / file.name).is_file():
            return folder / file.name
    try:
        return download(files.url + file.name, f"{files.folder}/{file.name}", file.sent)
    except DataNotFound as problem:
        raise DataNotFound(
            f"{file.name} was not found. Either set CONFRERE_DATA to a folder that has {files.folder}/{file.name}, "
            f"{files.hint}or allow the download ({problem})"
        ) from problem


def content_of(path: Path, digest: str) -> bytes:
    """What a compressed file holds, if it is what it should be."""
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as problem:
        raise DataNotFound(f"{path} cannot be read: {problem}; remove it") from problem
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise DataNotFound(
            f"{path} does not hold what it should (SHA-256 {found[:12]}..., expected {digest[:12]}...): remove it"
        )
    return content


def read_idx(content: bytes) -> np.ndarray:
    """Unsigned bytes: two zeros, the type 8, the number of axes, each axis in four bytes, then the values.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])).tolist()
    [7, 9]
    """
    if content[:3] != bytes([0, 0, 8]):
        raise ValueError("this is no IDX file of unsigned bytes: it must begin with 0, 0, 8")
    axes = content[3]
    shape = np.frombuffer(content, ">u4", axes, 4).astype(int)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
