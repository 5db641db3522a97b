"""Faults at random, one after the other, on real processes: the run goes on by itself, and ends where it should.

What came of it is told by `bench/faults.md`, which `python bench/faults.py` writes from the same campaign.
"""

import importlib.util

import pytest

from tests.conftest import in_ci

if importlib.util.find_spec("nvflare") is None and not in_ci():
    pytest.skip("NVIDIA FLARE is not installed (confrere[deploy])", allow_module_level=True)

from tests.campaign import campaign
from tests.memory import memory

MOST_GROWTH = 0.05  # of what a process has, over 1,000 rounds


@pytest.mark.slow
def test_a_run_that_is_struck_again_and_again_ends_with_the_models_of_those_who_took_part(tmp_path):
    told = campaign(tmp_path, count=50, seed=1)
    assert len(told.outcomes) == 52
    assert told.twice == 0
    assert told.states_kept <= 4
    assert told.difference < 1e-9


@pytest.mark.slow
def test_the_memory_of_no_process_grows_with_the_rounds(tmp_path):
    for trend in memory(tmp_path, rounds=1000, warm=300):
        assert trend.growth < MOST_GROWTH * trend.megabytes, trend
