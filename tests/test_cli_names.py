"""The command line and names that are hard to print or to name, and the exit codes that the help promises."""

import json

import numpy as np
import polars as pl
import pytest

from tests.test_cli import confrere, every_command
from tests.test_saved import table

NAMED = ("--label", "ill", "--silo", "clinic")
ODD = {"a": "north [/ward]", "b": "south, [red]east"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Patients of two clinics whose names have brackets and commas, and a model for one of them."""
    place = tmp_path_factory.mktemp("odd")
    patients = table().with_columns(clinic=pl.col("clinic").replace(ODD)).rename({"age": "age [/y]"})
    patients.write_csv(place / "patients.csv")
    patients.drop("clinic").head(60).write_csv(place / "new.csv")
    chosen = ("--user", ODD["a"], "--out", "model", "--algorithm", "ridge_local", "--quiet")
    done = confrere("train", "patients.csv", *NAMED, *chosen, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "[/ward]" in done.stdout
    return place


def test_brackets_in_names_are_shown_as_they_are(odd):
    for command in (("check", "patients.csv", *NAMED), ("monitor", "model", "new.csv")):
        done = confrere(*command, cwd=odd)
        assert done.returncode == 0, done.stderr
        for name in ("[/ward]", "[/y]"):
            assert name in done.stdout
