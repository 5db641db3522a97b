"""The numbers on the page about networks hold."""

import re
from pathlib import Path

import numpy as np
import pytest

import confrere as cf
from confrere.networks import GTVMin, Network
from confrere.networks.accelerated import extreme_eigenvalues
from confrere.networks.free import LARGEST
from tests.network_problems import problem

PAGE = (Path(__file__).parents[1] / "docs" / "networks.md").read_text(encoding="utf-8")
nets = cf.networks


def said(pattern):
    """The numbers that the page names in a sentence."""
    found = re.search(pattern, PAGE)
    assert found, f"the page no longer says {pattern}"
    return [float(number) for number in found.groups()]


def ends(p):
    """Where every algorithm that minimises GTVMin ends."""
    low, high = extreme_eigenvalues(p)
    many = {"iterations": 3000}
    lr = nets.bounds.best_rate(low, high)
    return [
        nets.fedgd(p, lr=lr, **many).W,
        nets.fedrelax(p, **many).W,
        nets.async_fedgd(p, lr=lr, activation=0.5, delay=3, **many).W,
        nets.accelerated_fedgd(p, **many).W,
        nets.accelerated_fedgd(p, method="chebyshev", iterations=300).W,
    ]


def test_algorithms_end_as_near_as_the_page_says_in_single_precision():
    p = problem()
    (single, _) = said(r"about (1e-\d+) in single, (1e-\d+) in double")
    best = p.closed_form()
    assert max(np.abs(W - best).max() for W in ends(p)) < single


def test_algorithms_end_as_near_as_the_page_says_in_double_precision(x64):
    p = problem()
    (_, double) = said(r"about (1e-\d+) in single, (1e-\d+) in double")
    best = p.closed_form()
    assert max(np.abs(W - best).max() for W in ends(p)) < double


@pytest.mark.parametrize("seed", range(3))
def test_residuals_are_as_small_as_the_page_says(seed):
    p = problem(seed=seed)
    (least,) = said(r"residuals of (1e-\d+) can be had")
    Q, q, _ = p.quadratic
    W = p.solve(tol=least)
    off = np.einsum("nij,nj->ni", Q, W) + p.alpha * p.network.laplacian() @ W + q / 2
    assert np.linalg.norm(off) <= 2 * least * np.linalg.norm(q / 2)  # once more to round


def test_the_dense_solution_has_the_limit_that_the_page_names():
    assert said(r"all unknowns, up to (\d+)") == [LARGEST]
    n = LARGEST // 2 + 1
    p = GTVMin(Network.from_edges([], n), alpha=1.0, X=np.ones((n, 1, 2)), y=np.ones((n, 1)))
    with pytest.raises(ValueError, match=str(LARGEST)):
        p.closed_form()


def test_units_do_not_matter_as_the_page_says():
    assert "features scaled alike" in PAGE
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = X @ [1.0, 2.0]
    for scale in (1e-7, 1.0, 1e9):
        p = GTVMin(Network.from_edges([], 1), alpha=1.0, X=[X / [1.0, scale]], y=[y])
        for W in (p.closed_form(), p.solve(1e-12)):
            np.testing.assert_allclose(W[0] / [1.0, scale], [1, 2], rtol=1e-9)


def test_models_alone_err_as_much_more_as_the_page_says(capsys):
    block = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
    exec(block, {})
    assert capsys.readouterr().out == "True\n"


RESULTS = {"Autoencoder", "Curvature", "Diagnosis", "Faulty", "Predictors", "Run", "Stop", "Vertical"}  # of functions


@pytest.mark.parametrize("module", [nets, nets.bounds], ids=["networks", "bounds"])
def test_every_name_is_on_the_page_and_has_an_example(module):
    names = set(module.__all__) - {"bounds"}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", PAGE)] == []
    assert [name for name in sorted(names - RESULTS) if ">>>" not in (getattr(module, name).__doc__ or "")] == []
