"""Small studies that several files test, and cells made by hand."""

import numpy as np

import confrere as cf
from confrere.study.cell import Cell

NAMES = ("a", "b", "c")


def small_silos(sizes=(40, 40, 40), seed=0, features=3, noise=0.5) -> cf.Silos:
    """Three silos of noisy two-class problems, without test rows."""
    rng = np.random.default_rng(seed)
    law = rng.normal(size=features)
    pairs = []
    for rows in sizes:
        X = rng.normal(size=(rows, features))
        y = X @ (law + 0.5 * rng.normal(size=features)) + noise * rng.normal(size=rows) > 0
        pairs.append((X, y.astype(int)))
    return cf.Silos.from_arrays(pairs, NAMES[: len(sizes)] if len(sizes) <= 3 else None)


def cell(algorithm="x", user="a", seed=0, curve=(0.5, 0.6, 0.7), **other) -> Cell:
    """A cell whose accuracy follows the given curve."""
    rounds = len(curve) - 1
    known = {
        "train_rows": 10, "test_rows": 5, "hyper": ({"lr": 0.1},), "round": (rounds,), "score": (float("nan"),),
        "curves": {"accuracy": np.array([curve], float)}, "partners": np.full((1, rounds), 2),
        "borrowed": np.full((1, rounds), 0.5), "bytes_each": 10, "bytes_total": 30, "tried": np.zeros((0, 0)),
    }  # fmt: skip
    return Cell(algorithm, user, seed, **{**known, **other})


def result(cells, metrics=("accuracy",), intervals="plain", **config) -> cf.StudyResult:
    """A result that holds the given cells."""
    names = dict.fromkeys(c.algorithm for c in cells)
    algorithms = {n: {"static": {}, "rounds": 2, "candidates": [{"lr": 0.1}, {"lr": 1.0}]} for n in names}
    seeds = sorted({c.seed for c in cells})
    known = {"metrics": list(metrics), "intervals": intervals, "algorithms": algorithms, "seeds": seeds, "kind": "real"}
    return cf.StudyResult({**known, **config}, tuple(cells))
