"""Blocks: as many cases at a time as a memory limit allows, the same size each time, spread over the devices.

A block runs group by group; the cases of a group run side by side. How many those are follows from the shapes and the
limit alone and groups are filled up with copies, so that a case has the same bits whichever others run beside it. Where
the limit makes groups smaller, last bits may differ: what runs side by side is part of what determines a cell.
"""

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import QUICK_COMPILATION
from confrere.study.cases import Shape
from confrere.study.engine import Curves, Program, Runs, case_curves, over

SIDE_BY_SIDE = 1 << 16  # numbers (experiments x silos x rows) that keep a processor busy; more only needs more memory
AT_MOST = 64  # cases side by side


class Size(NamedTuple):
    """How cases are run: so many side by side, so many groups in a block, and what runs one after the other."""

    group: int
    groups: int
    side_by_side: tuple[bool, bool]
    bytes: int  # what a block is expected to take


def block_size(
    shape: Shape, folds: int, candidates: int, parameters: int, curves: int, cases: int, memory: int, devices: int = 1
) -> Size:
    """How many cases to run at a time; an estimate from shapes, since the compiler decides what it keeps.

    `parameters`: numbers of one model; `curves`: numbers kept of one experiment.
    """
    number = np.dtype(jnp.result_type(float)).itemsize
    rows = shape.silos * shape.rows
    held = max(shape.tests, shape.held) * (shape.features + 2 * shape.outputs)
    data = rows * (shape.features + 1) + held
    experiment = rows * (6 + 2 * shape.outputs) + 4 * shape.silos * parameters + 4 * held // shape.features + curves

    def working(folds_at_once: int, candidates_at_once: int) -> int:
        return number * folds_at_once * (2 * data + candidates_at_once * experiment)

    side_by_side = next(
        (way for way in ((True, True), (False, True))
         if devices * working(folds if way[0] else 1, candidates) <= memory // 2), (False, False),
    )  # fmt: skip
    case = working(folds if side_by_side[0] else 1, candidates if side_by_side[1] else 1)
    wanted = SIDE_BY_SIDE // max(1, folds * candidates * rows)
    group = (
        1 << max(0, min(wanted, AT_MOST, memory // 2 // (devices * case)).bit_length() - 1) if all(side_by_side) else 1
    )
    kept = number * (data + folds * held + folds * candidates * curves)
    fitting = max(1, (memory - devices * group * case) // (devices * group * kept))
    groups = min(fitting, -(-cases // (devices * group)))
    return Size(group, groups, side_by_side, devices * group * (groups * kept + case))


def run_blocks(
    program: Program, size: Size, runs: Sequence[Callable[[], Runs]], done: Callable[[int], None]
) -> Iterator[Curves]:
    """The curves of every case, in order; `done` is called with the number of cases after each block."""
    devices = tuple(jax.local_devices())
    per_block = size.group * size.groups * len(devices)
    for first in range(0, len(runs), per_block):
        made = [make() for make in runs[first : first + per_block]]
        filled = made + [made[-1]] * (per_block - len(made))
        block = jax.tree.map(lambda *leaves: np.stack(leaves), *filled)
        curves = jax.device_get(block_program(program, size.group, devices)(block))
        done(len(made))
        for k in range(len(made)):
            yield jax.tree.map(lambda a, k=k: a[k], curves)


@functools.lru_cache(maxsize=128)
def block_program(program: Program, group: int, devices: tuple[Any, ...]) -> Callable[[Runs], Curves]:
    """The compiled program of a block: its cases spread over the devices, on each group by group."""
    of_group = over(functools.partial(case_curves, program), side_by_side=True)

    def on_device(runs: Runs) -> Curves:
        groups = jax.tree.map(lambda a: a.reshape(-1, group, *a.shape[1:]), runs)
        curves = jax.lax.map(of_group, groups)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), curves)

    compile = functools.partial(jax.jit, compiler_options=QUICK_COMPILATION if program.make.whole else None)
    if len(devices) == 1:
        return compile(on_device)
    cases = jax.sharding.PartitionSpec("case")
    mesh = jax.sharding.Mesh(np.array(devices), ("case",))
    return compile(jax.shard_map(on_device, mesh=mesh, in_specs=cases, out_specs=cases, check_vma=False))


def ask_for_all_cores() -> None:
    """One CPU device per core, if JAX has not started and nobody has said otherwise.

    Small programs use one core each; with several devices a study runs several cases at the same time.
    """
    if getattr(jax.config, "jax_num_cpu_devices", -1) >= 0 or "host_platform_device_count" in os.environ.get(
        "XLA_FLAGS", ""
    ):
        return
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    except RuntimeError:  # JAX has started: its devices stay as they are
        return
