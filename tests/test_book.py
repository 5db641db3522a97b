"""The book's exercises: every number that has a reference agrees with it, and the report is as promised."""

import importlib

import pytest

from confrere.reproduce.book import ASSIGNMENTS, run_assignments
from confrere.reproduce.book.numbers import Reference, flat

SLOW = {"flavours"}  # mixtures of 207 stations


def module_of(name):
    return importlib.import_module(f"confrere.reproduce.book.{name.replace('-', '_')}")


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in ASSIGNMENTS]
)
def ran(request, shared_data):
    """An assignment's name and what it found, in double precision."""
    import jax

    with jax.enable_x64(True):
        return request.param, run_assignments([request.param])["assignments"][request.param]


def test_every_number_agrees_with_its_reference(ran):
    name, report = ran
    found, references = dict(flat(report)), module_of(name).REFERENCES
    assert set(references) <= set(found)
    wrong = {path: (found[path], r) for path, r in references.items() if not r.verdict(found[path])}
    assert wrong == {}


def test_a_number_agrees_to_six_digits_or_to_those_that_are_printed():
    assert Reference(33.5468).verdict(33.54684)
    assert not Reference(0.0896).verdict(0.08966)
    assert Reference(33.5468, 33.728273).verdict(33.72827)
    assert not Reference(33.5468, 33.728273).verdict(33.5468)
    assert Reference(12.17, within=(12, 14)).verdict(13.9)
    assert Reference().verdict(1.0) is None
