"""What all tests share: reproducible examples, and data that may be missing outside CI."""

import os
import tempfile
from pathlib import Path

import hypothesis
import jax
import pytest
from _pytest.doctest import DoctestItem

hypothesis.settings.register_profile("confrere", deadline=None, derandomize=True, print_blob=False)
hypothesis.settings.load_profile("confrere")

MOST_MAPS = 20_000
CACHE = Path(tempfile.gettempdir()) / "confrere-test-compilations"
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def let_programs_go():
    """Compiled programs are let go before they are too many: each takes some of the memory maps that Linux allows a
    process (65,530), and beyond them compilation ends in a crash."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture(scope="module", autouse=True)
def few_programs_after_a_module():
    yield
    let_programs_go()


@pytest.fixture(autouse=True)
def few_programs_after_a_slow_test(request):
    """One slow test may leave thousands of maps, and a module has many; after a quick one it is not worth the look."""
    yield
    if request.node.get_closest_marker("slow") is not None:
        let_programs_go()


NO_DATA = "CONFRERE_DATA names no folder with the data sets that this needs"
OUTSIDE = (
    "data.mnist(",
    "data.fmi",
    "reproduce waffle",
    "reproduce book",
    "ebola_kenema",
)  # what reads data that the package lacks


def data_folder() -> Path | None:
    """The folder of real data, if there is one."""
    folder = Path(os.environ.get("CONFRERE_DATA") or "absent")
    return folder if folder.is_dir() else None


def in_ci() -> bool:
    """Whether nothing may be missing."""
    return os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; its absence is a reason to skip, but a failure in CI."""
    folder = data_folder()
    if folder is not None:
        return folder
    if in_ci():
        pytest.fail(NO_DATA)
    pytest.skip(NO_DATA)


def reads_outside_data(text: str) -> bool:
    """Whether an example or a command needs the folder of real data."""
    return any(words in text for words in OUTSIDE)


def pytest_collection_modifyitems(items):
    """Examples in docstrings cannot ask for a folder: where there is none, those that read it are skipped."""
    if data_folder() is not None or in_ci():
        return
    for item in items:
        if isinstance(item, DoctestItem) and reads_outside_data(item.dtest.docstring):
            item.add_marker(pytest.mark.skip(NO_DATA))


@pytest.fixture
def x64():
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield
