"""Nodes shared out over devices and processes: the same answer as one process gives, from the own nodes' rows only."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from confrere.networks import GTVMin, Network, own_nodes, partition, solve_sharded
from confrere.networks.halo import shard_arrays, shards_of
from tests.meeting import free_port
from tests.network_problems import connected, rows_of
from tests.sharded_worker import CASES, case

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 600  # on a busy machine; a minute is enough on an idle one


def together(commands: list[list[str]]) -> None:
    """Run processes that wait for one another; none outlives the others' failure or the time."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    started = [
        subprocess.Popen(c, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE, text=True) for c in commands
    ]
    try:
        for process in started:
            _, errors = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, errors
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture(scope="module", params=[(2, 1), (1, 3)], ids=lambda given: "{}x{}".format(*given))
def found(request, tmp_path_factory):
    """Models of every case, from some processes with some devices each."""
    processes, devices = request.param
    folder, address = tmp_path_factory.mktemp("models"), f"localhost:{free_port()}"
    worker = [sys.executable, str(ROOT / "tests" / "sharded_worker.py")]
    words = [[str(k), str(processes), str(devices), address, str(folder)] for k in range(processes)]
    together([worker + each for each in words])
    return folder, processes


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_processes_that_hold_their_own_nodes_only_find_what_one_finds(found, name):
    folder, processes = found
    files = [np.load(folder / f"{name}-{k}.npz") for k in range(processes)]
    nodes = np.concatenate([f["nodes"] for f in files])
    p = case(name)
    assert sorted(nodes) == list(range(p.n))
    W = np.empty((p.n, p.d))
    W[nodes] = np.concatenate([f["W"] for f in files])
    wanted = p.solve(1e-12)
    size = np.abs(wanted).max(axis=0)
    np.testing.assert_allclose(W / size, wanted / size, atol=2e-9)


def by_hand(network, parts, W):
    """L W, from what every shard has and is sent."""
    shards, count, out = shards_of(network, parts), len(parts), np.empty_like(W)
    arrays = [shard_arrays(shards, k, count, float, weighted=True) for k in range(count)]
    held = [np.pad(W[nodes], ((0, shards.S - len(nodes)), (0, 0))) for nodes in parts]
    for k, (layout, _) in enumerate(arrays):
        around = [held[(k - far) % count][arrays[(k - far) % count].sends[i]] for i, far in enumerate(shards.longest)]
        all_models = np.concatenate([held[k], *around])
        total = (layout.weight[:, :, None] * (held[k] - all_models[layout.neighbour])).sum(axis=0)
        np.add.at(
            total, layout.receiver, layout.strength[:, None] * (held[k][layout.receiver] - all_models[layout.sender])
        )
        out[parts[k]] = total[: len(parts[k])]
    return out


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["plain", "hub", "islands"])
def test_a_shard_and_its_halo_have_all_that_a_product_needs(name, count):
    net = case(name).network
    W = np.random.default_rng(0).normal(size=(net.n, 2))
    shuffled = np.array_split(np.random.default_rng(1).permutation(net.n), count)
    for parts in (partition(net, count), shuffled):
        np.testing.assert_allclose(by_hand(net, parts, W), net.laplacian() @ W, atol=1e-12)


def test_parts_are_even_and_halos_small():
    n = 4000
    net = Network.nearest(np.random.default_rng(0).random((n, 2)), k=8)
    parts = partition(net, 4)
    assert {len(part) for part in parts} == {1000}
    assert sorted(np.concatenate(parts)) == list(range(n))
    sent = len(shards_of(net, parts).key)
    assert sent < 0.3 * n  # three cuts of the order of sqrt(n) nodes on either side
    random = np.array_split(np.random.default_rng(1).permutation(n), 4)
    assert len(shards_of(net, random).key) > 5 * sent


def test_one_process_with_one_device_is_solve():
    X, y = rows_of(6)
    net = connected(6)
    parts = partition(net, 1)
    (own,) = parts
    W = solve_sharded(net, parts=parts, alpha=0.7, X=[X[i] for i in own], y=[y[i] for i in own])
    np.testing.assert_allclose(W, GTVMin(net, alpha=0.7, X=X, y=y).solve()[own], atol=1e-8)


def test_what_cannot_be_shared_out_is_refused_with_what_to_do():
    X, y = rows_of(3)
    net = connected(3)
    given = {"alpha": 1.0, "X": X, "y": y}
    with pytest.raises(ValueError, match="3 nodes cannot be shared out to 4 devices"):
        partition(net, 4)
    with pytest.raises(ValueError, match="2 parts of the nodes, but 1 devices"):
        own_nodes([[0], [1, 2]])
    with pytest.raises(ValueError, match="each of the 3 nodes once"):
        solve_sharded(net, parts=[[0, 1, 1]], **given)
    with pytest.raises(ValueError, match="3 parameters, but penalty has"):
        solve_sharded(net, parts=[[0, 1, 2]], penalty=[1.0, 2.0], **given)
    with pytest.raises(ValueError, match="norm as penalty"):
        solve_sharded(net, parts=[[0, 1, 2]], penalty="norm", **given)
    with pytest.raises(RuntimeError, match="after 1 iterations"):
        solve_sharded(net, parts=[[0, 1, 2]], most=1, **given)
    few = {"X": [rows[:1] for rows in X], "y": [labels[:1] for labels in y]}
    with pytest.raises(ValueError, match="couple all parameters"):
        solve_sharded(net, parts=[[0, 1, 2]], alpha=1.0, penalty=[1.0, 0.0, 1.0], **few)
