"""CIFAR-10: coloured images of ten kinds of things, 32 x 32; 50,000 for training and 10,000 for test.

Reference: A. Krizhevsky, Learning multiple layers of features from tiny images (2009). No formal licence: research use
with citation.

Two forms are read: the authors' binary archive with all images, and a smaller one with the first of the five training
batches, whose images lie row by row in one lossless picture of 100 x 100 images.
"""

import functools
import tarfile
from pathlib import Path

import numpy as np

from confrere.data.fetch import DataNotFound, check_file, data_folder, download
from confrere.data.images import Images, image_silos
from confrere.data.silos import Silos
from confrere.data.source import Split

ARCHIVE = "cifar-10-binary.tar.gz"
URL = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
SHA256 = {
    ARCHIVE: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "data_batch_1.webp": "33ee1170f92bf498b555fd84884f47b0fd5cf861cd8906ba0494510ca02d8860",
    "test_batch.webp": "1925251749113162ebc2866d7e46840a66fa4573713aa743599fd9d0370e7362",
    "labels.npz": "100457827cb30b2869dbdce3761c5279714820de9a8c6fa4d0dcc7cbc3037527",
}
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
SIDE = 32
Labelled = tuple[np.ndarray, np.ndarray]  # images [n, 32, 32, 3] and labels [n], bytes


def cifar10(distribution: str | Split = "A", agents: int = 10, rows: int = 1000, seed: int = 0) -> Silos:
    """Coloured images dealt out to agents; the arguments are those of `mnist`.

    The paper has 10 agents with 5000 rows each, which takes all images; the default is what the first batch of the
    training images has. Rows are pixels row by row, each with its three colours, normalised colour by colour.

    Taken from CONFRERE_DATA/cifar10, which has the authors' archive cifar-10-binary.tar.gz or data_batch_1.webp,
    test_batch.webp and labels.npz (10,000 training images); else the archive is downloaded. All sums are checked.
    """
    return image_silos(things(), distribution, agents, rows, seed)


@functools.cache
def things() -> Images:
    """CIFAR-10, read once."""
    folder = data_folder("cifar10")
    if folder is not None and (folder / ARCHIVE).is_file():
        train, test = from_archive(check_file(folder / ARCHIVE, SHA256[ARCHIVE]))
    elif folder is not None and (folder / "data_batch_1.webp").is_file():
        train, test = from_pictures(folder)
    else:
        train, test = from_archive(archive())
    colours = ("red", "green", "blue")
    return Images("CIFAR-10", train[0], train[1], test[0], test[1], MEAN, STD, NAMES, colours)


def archive() -> Path:
    """The authors' archive, downloaded."""
    try:
        return download(URL, f"cifar10/{ARCHIVE}", SHA256[ARCHIVE])
    except DataNotFound as problem:
        raise DataNotFound(
            f"CIFAR-10 was not found. Either set CONFRERE_DATA to a folder that has cifar10/{ARCHIVE}, or allow the "
            f"download ({problem})"
        ) from problem


def from_archive(path: Path) -> tuple[Labelled, Labelled]:
    """All images, from the archive of binary records."""
    with tarfile.open(path) as tar:
        content = {Path(member.name).name: member for member in tar.getmembers() if member.isfile()}

        def records(name: str) -> Labelled:
            file = tar.extractfile(content[name])
            return from_records(file.read() if file is not None else b"")

        batches = [records(f"data_batch_{i}.bin") for i in range(1, 6)]
        test = records("test_batch.bin")
    images, labels = zip(*batches, strict=True)
    return (np.concatenate(images), np.concatenate(labels)), test


def from_records(content: bytes) -> Labelled:
    """Records of a label and 3 x 32 x 32 bytes, colour by colour."""
    table = np.frombuffer(content, np.uint8).reshape(-1, 1 + 3 * SIDE * SIDE)
    images = table[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), table[:, 0].copy()


def from_pictures(folder: Path) -> tuple[Labelled, Labelled]:
    """The first training batch and the test images, each from one picture."""
    with np.load(check_file(folder / "labels.npz", SHA256["labels.npz"])) as labels:
        train_y, test_y = labels["train"], labels["test"]
    train, test = (from_picture(check_file(folder / name, SHA256[name])) for name in list(SHA256)[1:3])
    return (train, train_y[: len(train)].copy()), (test, test_y)


def from_picture(path: Path) -> np.ndarray:
    """The images of one picture, row by row."""
    try:
        from PIL import Image
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "this data set needs Pillow, which is not installed: pip install 'confrere[data]'", name=problem.name
        ) from problem
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    down, across = pixels.shape[0] // SIDE, pixels.shape[1] // SIDE
    grid = pixels.reshape(down, SIDE, across, SIDE, 3).transpose(0, 2, 1, 3, 4)
    return grid.reshape(-1, SIDE, SIDE, 3)
