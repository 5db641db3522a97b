"""Large arrays on the way into JAX: made piece by piece on all cores, in memory that JAX takes as it is.

A new array of JAX's costs more than what is computed in it, where the system hands memory out in small pages: about two
microseconds for every 4 kB on a virtual machine. numpy asks for large pages, and JAX takes over arrays that begin
at a multiple of 64 bytes. So what is large is made by numpy, and what JAX makes of it is small, one piece at a time.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

PIECE = 1000  # nodes at a time: their matrices fit in the cache
ALIGNED = 64


def room(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array without content that JAX can take over."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNED, np.uint8)
    first = -raw.ctypes.data % ALIGNED
    return raw[first : first + size].view(dtype).reshape(shape)


def handed(array: np.ndarray) -> jax.Array:
    """The array in JAX, without a copy if it is from `room`: nobody may write to it any more."""
    array.flags.writeable = False
    return jax.device_put(array, may_alias=True)


def in_pieces(n: int, work: Callable[[slice], None]) -> None:
    """Call `work` for slices of `PIECE` nodes that cover all n, on all cores; the last one may overlap the one before.

    The threads see JAX's precision as it is here.
    """
    if n <= PIECE:
        work(slice(0, n))
        return
    double = jnp.result_type(float) == np.float64

    def one(start: int) -> None:
        with jax.enable_x64(double):
            work(slice(start, start + PIECE))

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        for done in [threads.submit(one, min(start, n - PIECE)) for start in range(0, n, PIECE)]:
            done.result()
