"""One process of several that solve a problem together: see test_networks_sharded.py.

python sharded_worker.py PROCESS PROCESSES DEVICES ADDRESS FOLDER
"""

import sys
from pathlib import Path

import jax
import numpy as np

from confrere.networks import GTVMin, Network, own_nodes, partition, solve_sharded
from tests.conftest import CACHE


def case(name: str) -> GTVMin:
    """A problem, the same in every process."""
    rng = np.random.default_rng(7)
    n, d = {"large": (6000, 4)}.get(name, (37, 3))
    net = Network.nearest(rng.random((n, 2)), k=5, weight=None if name == "large" else lambda gaps: 0.3 + gaps)
    if name == "hub":
        edges = np.vstack([net.edges, [[0, j] for j in range(1, n)]])
        net = Network.from_edges(np.unique(edges, axis=0), n)
    if "islands" in name:  # the last component has no labels, node 36 no neighbours, and columns 0 and 1 are the same
        inside = (net.edges < 15).all(axis=1) | ((net.edges >= 15) & (net.edges < 36)).all(axis=1)
        net = Network.from_edges(net.edges[inside], n, net.weights[inside])
    X = rng.normal(size=(n, 6, d))
    y = np.einsum("nmd,d->nm", X, np.arange(1.0, d + 1)) + rng.normal(size=(n, 6))
    alpha = 1e5 if "stiff" in name else 0.4
    if name == "units":
        X = X * [1e-4, 1, 1e4]
    if "islands" in name:
        X[:, :, 1] = X[:, :, 0]
        return GTVMin(net, alpha=alpha, X=list(X), y=[None if 15 <= i < 36 else b for i, b in enumerate(y)])
    penalty = {"partial": np.array([1.0, 0, 2]), "units": np.array([1e-8, 1, 1e8])}.get(name, "squared")
    return GTVMin(net, alpha=alpha, X=list(X), y=list(y), penalty=penalty)


CASES = ("plain", "hub", "islands", "partial", "units", "stiff", "stiff islands", "large")


def main() -> None:
    """Solve every case, from the rows of the own nodes, and write the models."""
    process, processes, devices = map(int, sys.argv[1:4])
    jax.config.update("jax_num_cpu_devices", devices)
    jax.config.update("jax_compilation_cache_dir", str(CACHE))
    if processes > 1:
        jax.distributed.initialize(sys.argv[4], processes, process, initialization_timeout=60)
    for name in CASES:
        p = case(name)
        parts = partition(p.network, processes * devices)
        own = own_nodes(parts)
        X, y = ([rows[i] for i in own] for rows in p.rows)
        W = solve_sharded(p.network, parts=parts, alpha=p.alpha, X=X, y=y, penalty=p.strengths, tol=1e-11)
        np.savez(Path(sys.argv[5]) / f"{name}-{process}.npz", nodes=own, W=W)


if __name__ == "__main__":
    main()
