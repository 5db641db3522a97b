"""Task G of bench/: all contestants solve the same problem, and the page tells what was measured."""

from pathlib import Path

import numpy as np
import pytest

from confrere.networks import GTVMin, fedgd

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def task(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import gtv_task

    return gtv_task


def test_the_sketch_and_scipy_find_what_solve_finds(task):
    import sketch_gtv

    net, quadratic = task.problem(40)
    W = GTVMin(net, quadratic, alpha=task.ALPHA).solve()
    np.testing.assert_allclose(task.scipy_solve(task.scipy_setup(net, quadratic), quadratic, 60), W, atol=1e-8)
    given = sketch_gtv.arrays(net, quadratic)
    found = sketch_gtv.solve(given, sketch_gtv.setup(given.blocks, given.degree), 30)
    np.testing.assert_allclose(found, W, atol=1e-4)


def test_the_measured_iterations_are_those_of_solve(task):
    import jax.numpy as jnp

    import gtv_measure

    net, quadratic = task.problem(40)
    W = GTVMin(net, quadratic, alpha=task.ALPHA).solve()
    np.testing.assert_allclose(gtv_measure.Ours(net, quadratic, jnp.float64).models(60), W, atol=1e-8)


def test_the_networkx_loop_is_an_iteration_of_fedgd(task):
    net, quadratic = task.problem(30)
    zeros = np.zeros(quadratic.q.shape)
    once = task.networkx_step(net.to_networkx(), quadratic, zeros, lr=0.02)
    twice = task.networkx_step(net.to_networkx(), quadratic, once, lr=0.02)
    p = GTVMin(net, quadratic, alpha=task.ALPHA)
    np.testing.assert_allclose(fedgd(p, lr=0.02, iterations=2).W, twice, atol=1e-5)


def measured(n, ms, **more):
    parts = ("confrere, setup", "confrere, solve", "confrere, all", "sketch, setup", "sketch, solve", "fedgd")
    laps = {part: [ms, ms] for part in parts} | more
    gaps = {"confrere": 9e-7, "sketch": 8e-7} | ({"scipy": 7e-7} if "scipy, setup" in laps else {})
    return {
        "n": n, "edges": 5 * n, "iterations": 17, "gaps": gaps, "peak_gb": 6.5, "laps": laps, "step_ms": ms / 17,
        "bytes": 1e6 * ms, "bandwidth": 30.0,
    }  # fmt: skip


def test_the_page_has_the_ratios_the_exponent_and_the_memory(task):
    from sections.gtv import exponent, page

    assert exponent([10, 100, 1000], [3, 30, 300]) == pytest.approx(1)
    assert exponent([1, 4, 16], [1, 8, 64]) == pytest.approx(1.5)
    scipy = {"scipy, setup": [3000.0, 3000.0], "scipy, solve": [500.0, 700.0]}
    said = "\n".join(page([measured(100_000, 100.0, **scipy), measured(1_000_000, 1000.0)], {100_000: "6.8"}))
    assert "| scipy CG, with setup | 100,000 | 18x | 18x, reached | 14.7x, reached | 20x, **missed** |" in said
    assert "| scipy CG, solve only | 100,000 | 6x | 6x, reached | 7.58x, **missed** | 10x, **missed** |" in said
    assert "edges to the power 1.00, fitted" in said
    assert "6.50 GB at most (at most 8 GB: kept)" in said
    assert "| CHOLMOD (cvxopt), without setup | 6.8 | - |" in said
    assert "| `fedgd`, ONE iteration and its objective | 0.01 | 0.1 |" in said


def test_the_page_tells_where_setup_and_an_iteration_spend_their_time(task):
    from sections.gtv import page

    parts = {"setup: checks": [7.0, 9.0], "iteration: models of neighbours": [40.0, 60.0]}  # ten of them
    said = "\n".join(page([measured(n, 100.0, **parts) for n in (1000, 2000)], {}))
    assert "| setup: checks | 8 | 8 |" in said
    assert "| iteration: models of neighbours | 5 | 5 |" in said


def test_the_fewest_iterations_are_found(task):
    from gtv_measure import fewest

    for wanted in (1, 2, 15, 16, 17, 100):
        assert fewest(lambda k, wanted=wanted: k >= wanted) == wanted
