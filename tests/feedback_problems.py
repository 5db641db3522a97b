"""Hospitals whose records are known to be alike, and mistakes that are planted in the first."""

from collections.abc import Callable

import numpy as np
import polars as pl

import confrere as cf

ROWS = 80


def table(seed: int, hospitals: int = 3, rows: int = ROWS) -> dict[str, np.ndarray]:
    """Columns of patients of hospitals that do not differ, the first hospital's rows first."""
    rng = np.random.default_rng(seed)
    count = hospitals * rows
    return {
        "age": rng.integers(18, 90, count).astype(float), "temp": rng.normal(37, 0.7, count).round(1),
        "chol": rng.lognormal(5.4, 0.2, count).round(), "crp": rng.lognormal(1, 1.2, count).round(1),
        "sbp": rng.normal(130, 18, count).round(), "weight": rng.normal(75, 14, count).round(1),
        "visits": rng.poisson(1.5, count).astype(float),
        "x": np.where(rng.random(count) < 0.2, np.nan, rng.normal(size=count).round(2)),
    }  # fmt: skip


def silos_of(columns: dict[str, np.ndarray], seed: int = 0, hospitals: int = 3) -> cf.Silos:
    """Silos from a table with sex, a group and a label that belong to nothing else."""
    rng = np.random.default_rng(seed + 10_000)
    count = len(columns["age"])
    frame = pl.DataFrame({
        **columns, "sex": rng.choice(["f", "m"], count),
        "group": rng.choice(list("abcd"), count, p=[0.4, 0.3, 0.2, 0.1]),
        "smoker": rng.integers(2, size=count), "ill": rng.choice(["no", "yes"], count),
        "hospital": np.repeat([f"h{i}" for i in range(hospitals)], count // hospitals),
    }, nan_to_null=True)  # fmt: skip
    return cf.Silos.from_table(frame, label="ill", silo="hospital")


def planted(change: Callable[[dict[str, np.ndarray]], None], seed: int = 0, rows: int = ROWS) -> cf.Silos:
    """The same with a change of the first hospital's columns; arrays that are changed are its rows."""
    columns = table(seed, rows=rows)
    mine = {name: values[:rows] for name, values in columns.items()}
    change(mine)
    for name, values in mine.items():
        columns[name][:rows] = values
    return silos_of(columns, seed)
