"""Every recipe keeps to the contract."""

import pytest

import confrere as cf
from confrere.testing import check_algorithm
from tests.helpers import ALGORITHMS

DEAR = ("evidence", "evidence-user", "fedrep")  # minutes of compilation
KIN = (
    "local-batches",
    "fedsgd",
    "weight-erosion-updates",
    "fine-tuned",
    "fedsgd-uniform",
    "ridge-local",
    "scaffold-option-one",
    "scaffold-bounded",
    "waffle-bounded",
    "waffle-literal",
    "waffle-untempered",
    "fedbn",
    "model-interpolation",
    "model-interpolation-given",
    "data-interpolation",
    "fedprox",
    "pfedme",
    "fedopt-yogi",
    "fedopt-adagrad",
    "fedopt-sgd",
    "per-fedavg-first-order",
    "multi-task-batches",
    "ifca",
    "fedamp",
    "fedopt",
    "per-fedavg",
    "featurised",
    "fedper",
    "clustered",
    "fedfomo",
    "gtv-sgd",
    "gtv-async",
    "gtv-relax",
    "fedavg-prox",
)  # of others that are checked at once


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in DEAR + KIN else name for name in ALGORITHMS]
)
def test_every_recipe_conforms(name):
    row = ALGORITHMS[name]
    check_algorithm(row.make, row.problem and row.problem(), row.local)


def test_every_public_recipe_is_checked():
    assert {row.make([0, 1, 2, 3]).name for row in ALGORITHMS.values()} == set(cf.algorithms.__all__)
