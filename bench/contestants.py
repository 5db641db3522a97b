"""Who is compared, and what is to be reached against each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

OURS, SKETCH = "confrere", "sketch"
_NONE: Mapping[str, int] = MappingProxyType({})


class Contestant(NamedTuple):
    """A script to time. `rounds` and `repeats` cap the slow ones, by task."""

    name: str
    title: str
    script: str
    environment: str | None
    """The peer's environment; None is the interpreter that runs the comparison."""
    rounds: Mapping[str, int] = _NONE
    repeats: Mapping[str, int] = _NONE
    tasks: tuple[str, ...] = ("L", "S", "C")


CONTESTANTS: tuple[Contestant, ...] = (
    Contestant(OURS, "confrere", "ours.py", None),
    Contestant(SKETCH, "the sketch, bare JAX", "sketch.py", None),
    Contestant("numpy_loop", "plain numpy loop", "peers/numpy_loop.py", "numpy", {"S": 10, "C": 3}),
    Contestant("torch_loop", "plain torch loop", "peers/torch_loop.py", "torch", {"S": 3}, {"S": 3}),
    Contestant("torch_vmap", "torch.func.vmap over silos", "peers/torch_vmap.py", "torch"),
    Contestant("fedjax_loop", "FedJAX", "peers/fedjax_loop.py", "fedjax", {"S": 10, "C": 3}),
    Contestant("pfl_loop", "pfl", "peers/pfl_loop.py", "pfl", {"S": 3}, {"S": 3}),
    Contestant(
        "flower",
        "Flower simulation",
        "peers/flower.py",
        "flower",
        {"L": 30, "S": 2},
        {"L": 2, "S": 1},
        ("L", "S"),
    ),
    Contestant(
        "flower_global",
        "Flower, data in a global",
        "peers/flower_global.py",
        "flower",
        {"S": 1},
        {"S": 1},
        ("S",),
    ),
    Contestant("flower_torch", "Flower simulation", "peers/flower.py", "flower_torch", tasks=("C",)),
    Contestant(
        "matrix_product", "a matrix product of as many operations", "peers/matrix_product.py", "numpy", {"C": 20},
        tasks=("C",),
    ),
)  # fmt: skip

QUICK_ROUNDS: Mapping[str, int] = {"L": 10, "S": 1, "C": 1}

# Milliseconds per round, measured before the library was written: of the sketch, and of each peer beside it.
_SKETCH_MS: Mapping[str, float] = {"L": 0.087, "S": 8.6, "C": 376}
_PEER_MS: Mapping[str, Mapping[str, float]] = {
    "numpy_loop": {"L": 0.236, "S": 156},
    "torch_loop": {"L": 1.60, "S": 1419, "C": 1070},
    "torch_vmap": {"L": 1.34, "S": 23.3, "C": 973},
    "fedjax_loop": {"L": 2.0, "S": 512, "C": 3800},
    "pfl_loop": {"L": 3.7, "S": 2400, "C": 1795},
    "flower": {"L": 103, "S": 100_000},
    "flower_global": {"S": 100_000},
    "flower_torch": {"C": 1823},
    "matrix_product": {"C": 62.2},
}

GOALS: Mapping[str, Mapping[str, float]] = {
    "numpy_loop": {"L": 5, "S": 30},
    "torch_vmap": {"L": 30, "S": 5, "C": 4},
    "fedjax_loop": {"L": 40, "S": 100, "C": 12},
    "pfl_loop": {"L": 80, "S": 400, "C": 6},
    "flower": {"L": 1000, "S": 10_000},
    "flower_global": {"S": 10_000},
    "flower_torch": {"C": 5},
    "matrix_product": {"C": 0.3},
}

REMARKS: Mapping[tuple[str, str], str] = {
    ("flower", "L"): (
        "Flower's simulation looks for new messages every 0.1 s, and a round of task L is mostly that wait."
    ),
    ("flower", "S"): "each worker makes the data once; the first measurement had the client of the next line.",
    ("flower_global", "S"): (
        "a worker gets a fresh copy of the client with every message, and with it an empty global, so that the data of "
        "all silos are made anew each time. The first measurement, which its required ratio and its goal go by, had "
        "this client."
    ),
}


def first_ratio(name: str, task: str) -> float | None:
    """The ratio that the sketch had when it was first measured."""
    peer_ms = _PEER_MS.get(name, {}).get(task)
    return None if peer_ms is None else peer_ms / _SKETCH_MS[task]
