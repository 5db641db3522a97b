"""The names of the algorithms that the command line and study.toml know; importing them imports no algorithm.

Those that need to be told more than numbers (which layers are normalisations) are for Python only.
"""

from typing import Literal

AlgorithmName = Literal[
    "auto", "ridge_local", "local", "fedsgd", "fedavg", "fedprox", "fedopt", "scaffold", "fine_tuned", "ditto",
    "pfedme", "per_fedavg", "apfl", "model_interpolation", "data_interpolation", "fedper", "fedrep", "featurised",
    "multi_task", "ifca", "clustered", "fedamp", "fedfomo", "weight_erosion", "waffle",
]  # fmt: skip
