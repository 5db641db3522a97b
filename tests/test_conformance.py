"""Every recipe keeps to the contract."""

import pytest

from confrere.testing import check_algorithm
from tests.helpers import ALGORITHMS


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_recipe_conforms(name):
    row = ALGORITHMS[name]
    check_algorithm(row.make, local=row.local)
