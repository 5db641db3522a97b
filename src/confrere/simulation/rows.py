"""The rows of a run as blocks, where they are worked on: one device, or silo by silo over several."""

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Block
from confrere.data.silo import PartName
from confrere.data.silos import Silos
from confrere.each import SILO, mesh_for
from confrere.models import Model
from confrere.program import Held

SHARD_BYTES = 1 << 20  # rows that are worth spreading over several devices


def held_out(silos: Silos, part: PartName, model: Model, user: int | None) -> Block | Held:
    """The rows to measure on, and the validation rows where (for the user) there are any; of a user its own alone."""

    def rows(of: PartName) -> Block:
        return in_shares(silos, of, model) if user is None else on_devices(silos.block(of, places=[user]), model)

    sizes = silos.sizes("validation")
    if (sum(sizes) if user is None else sizes[user]) == 0:
        return rows(part)
    return Held(rows(part), rows("validation"))


def in_shares(silos: Silos, part: PartName, model: Model) -> Block:
    """What `on_devices` makes of all silos' rows, made device by device: no block of all of them is kept beside it."""
    numbers_each = max(1, *silos.sizes(part)) * silos[0].X[0].size
    mesh = mesh_for(len(silos), len(silos) * numbers_each * np.dtype(jnp.result_type(float)).itemsize, SHARD_BYTES)
    if mesh is None:
        return on_devices(silos.block(part), model)
    devices = list(mesh.devices.flat)
    shares = np.split(np.arange(len(silos)), len(devices))
    pieces = [
        jax.device_put(with_classes(silos.block(part, places=share.tolist()), model), device)
        for share, device in zip(shares, devices, strict=True)
    ]
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(SILO))
    whole = lambda *a: jax.make_array_from_single_device_arrays((len(silos), *a[0].shape[1:]), spread, list(a))  # noqa: E731
    return jax.tree.map(whole, *pieces)


def with_classes(block: Block, model: Model) -> Block:
    """The rows with class numbers as 32-bit integers, if the labels are classes."""
    return block._replace(y=block.y.astype(np.int32)) if model.task == "classification" else block


def on_devices(block: Block, model: Model) -> Block:
    """The rows where they are worked on: spread over all devices, silo by silo, if that is worth it and comes out even.

    With several devices (on a CPU: those that `jax_num_cpu_devices` asks for before JAX starts) JAX then cuts the whole
    program along the silos. Below a megabyte the devices would wait for one another longer than they work.
    """
    block = with_classes(block, model)
    mesh = mesh_for(len(block.id), block.X.nbytes, SHARD_BYTES)
    if mesh is None:
        return jax.device_put(block)
    return jax.device_put(block, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(SILO)))
