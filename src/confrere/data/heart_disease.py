"""Heart disease in four hospitals: real silos, with real differences between them.

Source: R. Detrano, A. Janosi, W. Steinbrunn, M. Pfisterer, UCI Machine Learning Repository, data set 45 (1988),
CC BY 4.0. 920 patients and 13 columns; the label is whether a disease was found (`num` above 0). A cholesterol or a
blood pressure of 0 is a value that was not taken: all of Switzerland's cholesterol, and 49 of the V.A.'s.
"""

from pathlib import Path
from typing import Literal

from confrere.data.fetch import DataNotFound, check_file, data_folder, download
from confrere.data.silos import Silos

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
COLUMNS = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal",
    "num",
)  # fmt: skip
FILES = {  # hospital: file, SHA-256, MD5
    "cleveland": (
        "processed.cleveland.data",
        "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
        "2d91a8ff69cfd9616aa47b59d6f843db",
    ),
    "hungary": (
        "processed.hungarian.data",
        "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
        "22e96bee155b5973568101c93b3705f6",
    ),
    "switzerland": (
        "processed.switzerland.data",
        "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
        "9a87f7577310b3917730d06ba9349e20",
    ),
    "va": (
        "processed.va.data",
        "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
        "4249d03ca7711e84f4444768c9426170",
    ),
}


def heart_disease(scale: Literal["shared", "silo"] | None = "shared", min_level: int = 1) -> Silos:
    """Four hospitals (Cleveland, Hungary, Switzerland, the V.A. of Long Beach), all rows for training.

    The files are taken from CONFRERE_DATA/heart_disease, else downloaded from UCI; their sums are checked. The codes
    of chest pain, electrocardiogram, slope and thallium scan are categories; `scale` and `min_level` are those of
    `Silos.from_table`.

    >>> import confrere as cf
    >>> silos = cf.data.heart_disease()
    >>> silos.names, silos.sizes()
    (('cleveland', 'hungary', 'switzerland', 'va'), (303, 294, 123, 200))
    >>> silos.label_names, len(silos.feature_names)
    (('absent', 'present'), 32)
    """
    import polars as pl

    from confrere.data.intake import from_frames, make_options
    from confrere.data.intake.read import parse_csv

    options = make_options(
        "disease",
        categorical=("cp", "restecg", "slope", "thal"),
        missing={"chol": [0], "trestbps": [0]},
        scale=scale,
        min_level=min_level,
    )
    found = pl.when(pl.col("num") == "0").then(pl.lit("absent")).otherwise(pl.lit("present")).alias("disease")
    header = ",".join(COLUMNS).encode() + b"\n"
    frames = {
        hospital: parse_csv(header + hospital_file(hospital).read_bytes(), ",", hospital)
        .with_columns(found)
        .drop("num")
        for hospital in FILES
    }
    return from_frames(frames, options, "UCI heart disease, four hospitals")


def hospital_file(hospital: str) -> Path:
    """The file of one hospital, from wherever it can be had."""
    name, digest, older = FILES[hospital]
    folder = data_folder("heart_disease")
    if folder is not None and (folder / name).is_file():
        return check_file(folder / name, digest, older)
    try:
        return download(URL + name, f"heart_disease/{name}", digest, older)
    except DataNotFound as problem:
        raise DataNotFound(
            f"the heart disease file of {hospital} was not found. Either set CONFRERE_DATA to a folder that has "
            f"heart_disease/{name}, or allow the download ({problem})"
        ) from problem
