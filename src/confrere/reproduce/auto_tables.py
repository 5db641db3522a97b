"""Tables for the study of `auto`: features, label and group of every row, before they are dealt out to silos.

Images are reduced to 20 principal components, fitted on images that are in no silo and in no test set. A group is what
rows are dealt out by: a digit, a class, a weather station's latitude.
"""

import csv
import gzip
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confrere.data.bundled import bundled
from confrere.data.fetch import DataNotFound, data_folder

COMPONENTS = 20
STEP = 3  # hours ahead that the weather is to be told
BANDS = 6


class Table(NamedTuple):
    """Rows of one data set."""

    X: np.ndarray  # [n, d]
    y: np.ndarray  # [n]
    group: np.ndarray  # [n]


def folder_of(name: str, file: str) -> Path:
    """The folder CONFRERE_DATA/name, or what to do."""
    folder = data_folder(name)
    if folder is None or not (folder / file).is_file():
        raise DataNotFound(f"this study needs {name}/{file}: set CONFRERE_DATA to a folder that has it")
    return folder


def components(fitted_on: np.ndarray, count: int = COMPONENTS) -> tuple[np.ndarray, np.ndarray]:
    """Mean and leading principal directions [d, count], each scaled to unit variance."""
    mean = fitted_on.mean(axis=0)
    centred = fitted_on - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = slice(-1, -count - 1, -1)
    return mean, vectors[:, kept] / np.sqrt(values[kept])


@cache
def wine() -> Table:
    """178 wines of three cultivars, 13 chemical measurements; the group is the cultivar, and so is the label."""
    bunch = bundled("load_wine")
    return Table(np.asarray(bunch.data, np.float64), np.asarray(bunch.target), np.zeros(len(bunch.target), int))


@cache
def digits() -> Table:
    """1797 digits of 8 x 8 pixels; label and group are the digit."""
    bunch = bundled("load_digits")
    return Table(np.asarray(bunch.data, np.float64), np.asarray(bunch.target), np.asarray(bunch.target))


@cache
def breast_cancer() -> Table:
    """569 breast masses, 30 features; label and group: malignant (0) or benign (1)."""
    bunch = bundled("load_breast_cancer")
    return Table(np.asarray(bunch.data, np.float64), np.asarray(bunch.target), np.asarray(bunch.target))


@cache
def diabetes() -> Table:
    """442 patients, 10 features; the label is the progression in standard units, the group whether above the median."""
    bunch = bundled("load_diabetes")
    y = np.asarray(bunch.target, np.float64)
    return Table(np.asarray(bunch.data, np.float64), (y - y.mean()) / y.std(), (y > np.median(y)).astype(int))


@cache
def mnist() -> Table:
    """20,000 training digits in 20 components fitted on the 10,000 test digits; label and group: the digit."""
    folder = folder_of("mnist", "train-images-idx3-ubyte.gz")
    images = lambda part, n: idx(folder / f"{part}-images-idx3-ubyte.gz", 16, n * 784).reshape(n, 784) / 255.0  # noqa: E731
    mean, directions = components(images("t10k", 10_000))
    label = idx(folder / "train-labels-idx1-ubyte.gz", 8, 20_000).astype(int)
    return Table((images("train", 20_000) - mean) @ directions, label, label)


def idx(path: Path, header: int, count: int) -> np.ndarray:
    """The first numbers of an IDX file."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(header + count), np.uint8, count, header)


@cache
def cifar10() -> Table:
    """10,000 photographs, halved in size, in 20 components fitted on 10,000 test ones; label and group: the class."""
    folder = folder_of("cifar10", "labels.npz")
    mean, directions = components(pictures(folder / "test_batch.webp"))
    label = np.load(folder / "labels.npz")["train"][:10_000].astype(int)
    return Table((pictures(folder / "data_batch_1.webp") - mean) @ directions, label, label)


def pictures(path: Path) -> np.ndarray:
    """10,000 pictures of 32 x 32 from one sheet, averaged to 16 x 16: [10000, 768]."""
    try:
        from PIL import Image
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "reading pictures needs Pillow: pip install 'confrere[data]'", name="PIL"
        ) from problem
    with Image.open(path) as sheet:
        pixels = np.asarray(sheet.convert("RGB"), np.float32)
    halved = pixels.reshape(1600, 2, 1600, 2, 3).mean(axis=(1, 3))
    return halved.reshape(100, 16, 100, 16, 3).transpose(0, 2, 1, 3, 4).reshape(10_000, 768) / 255.0


@cache
def weather() -> Table:
    """Hourly temperatures of Finnish stations: will it be warmer in three hours? The group is the station.

    Features: the temperature, its changes over the last 1, 2, 3 and 6 hours, the hour of the day (sine, cosine).
    Stations are numbered from south to north. Source: Finnish Meteorological Institute, CC BY 4.0.
    """
    with (folder_of("fmi_weather", "FMI_data.csv") / "FMI_data.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[tuple[float, str], list[tuple[np.datetime64, float]]] = {}
    for row in rows:
        place = (float(row["Latitude"]), row["name"])
        found.setdefault(place, []).append((np.datetime64(row["Timestamp"]), float(row["temp"])))
    whole = [np.array(sorted(series)) for _, series in sorted(found.items()) if len(series) == 96]
    tables = [station_rows(series[:, 1].astype(float), series[:, 0].astype("datetime64[h]")) for series in whole]
    X, y = (np.concatenate(part) for part in zip(*tables, strict=True))
    return Table(X, y, np.repeat(np.arange(len(tables)), [len(y) for _, y in tables]))


def station_rows(temperature: np.ndarray, hours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of one station's series of 96 hours."""
    now = np.arange(6, len(temperature) - STEP)
    changes = [temperature[now] - temperature[now - back] for back in (1, 2, 3, 6)]
    angle = (hours[now].astype(int) % 24) * (2 * np.pi / 24)
    X = np.column_stack([temperature[now], *changes, np.sin(angle), np.cos(angle)])
    return X, (temperature[now + STEP] > temperature[now]).astype(int)


@cache
def weather_bands() -> Table:
    """The same, grouped into six bands of latitude with as many stations each."""
    table = weather()
    return table._replace(group=table.group * BANDS // (table.group.max() + 1))
