"""A study's result as files: JSON with everything, Parquet for other programs."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confrere.disk import write_whole
from confrere.study.cell import WHEN, Cell, listed

if TYPE_CHECKING:
    from confrere.study.result import StudyResult

FORMAT = 1
NOT_WRITTEN = {".csv", ".tsv", ".txt", ".xlsx", ".html", ".pdf", ".png", ".svg", ".gz", ".zip", ".pkl", ".toml"}


def save(result: "StudyResult", path: str | os.PathLike[str]) -> None:
    """To a folder (whose name may have dots), a .json file, or (cells only) a .parquet file; no other kind of file."""
    import polars as pl

    path = Path(path)
    if path.suffix == ".json":
        write_json(result, path)
    elif path.suffix == ".parquet":
        result.cells().write_parquet(path)
    elif path.suffix.lower() in NOT_WRITTEN:
        raise ValueError(f"{path.name}: a result is written to a folder, a .json file or a .parquet file")
    else:
        path.mkdir(parents=True, exist_ok=True)
        write_json(result, path / "study.json")
        result.cells().write_parquet(path / "cells.parquet")
        rows = [row for at in WHEN for metric in result.config["metrics"] for row in result.curve_rows(metric, at)]
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path / "curves.parquet")


def write_json(result: "StudyResult", path: Path) -> None:
    """Everything, in one file that appears as a whole."""
    whole = {"format": FORMAT, "config": listed(dict(result.config)), "cells": [c.plain() for c in result.cells_]}
    write_whole(path, json.dumps(whole, allow_nan=False))


def load(path: str | os.PathLike[str]) -> "StudyResult":
    """From a folder or a .json file."""
    from confrere.study.result import StudyResult

    path = Path(path)
    file = path / "study.json" if path.is_dir() else path
    if file.suffix.lower() in {".parquet", *NOT_WRITTEN} or (file.is_file() and file.suffix != ".json"):
        raise ValueError(f"{file.name}: a result is loaded from its folder or its .json file")
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist: give the folder or the .json file that save() wrote")
    try:
        whole: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if whole["format"] != FORMAT:
            raise ValueError(f"its format is {whole['format']}, not {FORMAT}")
        return StudyResult(whole["config"], tuple(Cell.from_plain(c) for c in whole["cells"]))
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{file} is not a study's result: {problem}") from problem
