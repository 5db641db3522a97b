"""Budgets: a run is stopped before the round that would take more bytes than it may.

What a round costs is known from shapes before it is run (see `program.traffic`): a budget is kept by running only as
many rounds as fit, never exceeded and found out later. Counted is what all silos together send and receive.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from confrere.checks import check_numbers

UNITS = {
    "": 1, "b": 1, "byte": 1, "bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:e[0-9]+)?|\.[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
WAYS = "say bytes=2000000 or bytes=2MB (kB, MB, GB, or KiB, MiB, GiB)"


def bytes_of(budget: Any) -> int | None:
    """A budget in bytes, from a number, words such as "2MB" or "bytes=2MB", or {"bytes": ...}; None: there is none.

    >>> bytes_of(1500), bytes_of("bytes=2MB"), bytes_of("1.5 KiB"), bytes_of({"bytes": "3kB"}), bytes_of(None)
    (1500, 2000000, 1536, 3000, None)
    """
    if budget is None:
        return None
    if isinstance(budget, Mapping):
        if set(budget) != {"bytes"}:
            raise ValueError(f"budget: only bytes can be limited, not {', '.join(map(str, budget))}: {WAYS}")
        return bytes_of(budget["bytes"])
    if isinstance(budget, str):
        name, equals, value = budget.rpartition("=")
        found = AMOUNT.fullmatch(value)
        if (equals and name.strip() != "bytes") or found is None or found[2].lower() not in UNITS:
            raise ValueError(f"budget: {budget!r} is not understood: {WAYS}")
        budget = float(found[1]) * UNITS[found[2].lower()]
    check_numbers(budget=budget)
    return int(budget)


def rounds_within(budget: int, per_round: Any) -> int:
    """How many of the first rounds take no more than the budget together, from the bytes of each.

    >>> rounds_within(10, [4, 4, 4])
    2
    """
    return int((np.cumsum(np.asarray(per_round, np.int64)) <= budget).sum())


def in_words(count: float) -> str:
    """Bytes in words.

    >>> in_words(900), in_words(12_300), in_words(4_560_000)
    ('900 bytes', '12.3 kB', '4.6 MB')
    """
    if count < 1000:
        return f"{count:.0f} bytes"
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def why_stopped(budget: int, done: int, asked: int) -> str:
    """That a run was stopped by its budget, and when.

    >>> why_stopped(2_000_000, 14, 30)
    'stopped after round 14 of 30 by the budget of 2.0 MB'
    """
    return f"stopped after round {done} of {asked} by the budget of {in_words(budget)}"
