"""What all tests share: reproducible examples, and data that may be missing outside CI."""

import os
import tempfile
from pathlib import Path

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile("confrere", deadline=None, derandomize=True, print_blob=False)
hypothesis.settings.load_profile("confrere")

MOST_MAPS = 20_000
CACHE = Path(tempfile.gettempdir()) / "confrere-test-compilations"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.fixture(scope="module", autouse=True)
def few_programs_at_a_time():
    """Compiled programs are let go before they are too many: each takes some of the memory maps that Linux allows a
    process (65,530), and beyond them compilation ends in a crash."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; its absence is a reason to skip, but a failure in CI."""
    folder = os.environ.get("CONFRERE_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    if os.environ.get("CI") == "true":
        pytest.fail("CONFRERE_DATA must name the folder of data sets in CI")
    pytest.skip("CONFRERE_DATA names no folder: the tests on the authors' own run need it")


@pytest.fixture
def x64():
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield
