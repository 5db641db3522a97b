"""A network too large for one machine: every process holds its own nodes' rows, and all solve together.

    python network_on_two_machines.py                             one process, all nodes
    python network_on_two_machines.py 0 2 localhost:12355 &       the first of two processes
    python network_on_two_machines.py 1 2 localhost:12355         the second

On two machines, start one process on each, and give both the first one's address. Both print what one prints.
"""

import sys

import jax
import numpy as np
from jax.experimental.multihost_utils import process_allgather

import confrere as cf

NODES, ROWS, FEATURES = 600, 10, 4

if len(sys.argv) > 1:
    jax.distributed.initialize(sys.argv[3], num_processes=int(sys.argv[2]), process_id=int(sys.argv[1]))

places = np.random.default_rng(0).random((NODES, 2))  # who is near whom is known to all
network = cf.networks.Network.nearest(places, k=6)
parts = cf.networks.partition(network, jax.device_count())
own = cf.networks.own_nodes(parts)


def rows_of(node):
    """A node's own data, which no other process sees."""
    rng = np.random.default_rng(1000 + node)
    X = rng.normal(size=(ROWS, FEATURES))
    return X, X @ np.sin(3 * places[node].sum() + np.arange(FEATURES)) + rng.normal(size=ROWS)


X, y = zip(*map(rows_of, own), strict=True)
W = cf.networks.solve_sharded(network, parts=parts, alpha=1.0, X=X, y=y)  # the own nodes' models

truth = np.sin(3 * places[own].sum(axis=1)[:, None] + np.arange(FEATURES))
alone = cf.networks.fitted_parameters(X, y)
errors = [np.square(models - truth).sum() for models in (W, alone)]
coupled, single = process_allgather(np.array(errors)).reshape(-1, 2).sum(axis=0) / (NODES * FEATURES)
print(f"process {jax.process_index()} of {jax.process_count()}: {len(own)} of {NODES} nodes, its first is {own[0]}")
print(f"mean squared error of all models: {coupled:.5f} coupled, {single:.5f} alone")
