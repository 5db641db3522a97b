"""A study shared out over processes that met by `jax.distributed.initialize`, on one machine or on several.

Case k of a study is computed by process k mod N; who computes it changes none of its bits. At the end every process
is told the cells of all others, so that each has the whole result. A process alone has all cases.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from confrere.study.cases import Case
from confrere.study.cell import Cell

Place = tuple[str, int, int]  # algorithm, user, seed


def own_share(cases: Sequence[Case]) -> list[Case]:
    """The cases that this process computes."""
    return list(cases[jax.process_index() :: jax.process_count()])


def gathered(cells: Mapping[Place, Cell]) -> dict[Place, Cell]:
    """This process's cells and those of all others."""
    if jax.process_count() == 1:
        return dict(cells)
    told = json.dumps([[list(place), cell.plain()] for place, cell in cells.items()])
    return {place_of(place): Cell.from_plain(plain) for said in told_by_all(told) for place, plain in json.loads(said)}


def place_of(listed: Sequence[Any]) -> Place:
    """A place from its list in JSON."""
    algorithm, user, seed = listed
    return algorithm, user, seed


def told_by_all(text: str) -> list[str]:
    """What every process has to tell, in the order of the processes: each calls this with its own."""
    own = np.frombuffer(text.encode(), np.uint8)
    sizes = np.asarray(multihost_utils.process_allgather(np.array([len(own)], np.int32))).ravel()
    filled = np.zeros(sizes.max(), np.uint8)
    filled[: len(own)] = own
    every = np.asarray(multihost_utils.process_allgather(filled)).reshape(len(sizes), -1)
    return [bytes(row[:size]).decode() for row, size in zip(every, sizes, strict=True)]
