"""What a site says of its rows before round 1: nothing of a few of them, not even by a difference."""

import shutil

import polars as pl
import pytest

import confrere as cf
from confrere.data.intake.messages import Summary
from confrere.deploy.opening import common_plan
from confrere.deploy.rows import OwnRows
from confrere.deploy.telling import told
from confrere.deploy.twin import twin_silos
from tests.hospitals import SITES, make_sites, study, tables

LEAST = 5  # min_level of these studies


def asked(test: float, data: str = ""):
    return study(more=f"test = {test}", data=data)


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path)


def messages_of(place, test: float, data: str = ""):
    """All that a site says once columns are agreed on, and its rows."""
    rows = OwnRows(asked(test, data), place.name, place / "patients.csv")
    plan = common_plan([rows.survey()], rows.study)
    return (rows.layout(plan), *rows.summaries(plan)), rows


def change(place, rows, **cells) -> None:
    """Other cells, in some rows of a table."""
    file = place / "patients.csv"
    frame = pl.read_csv(file, infer_schema=False)
    row = pl.int_range(pl.len())
    for name, value in cells.items():
        frame = frame.with_columns(pl.when(row.is_in(list(rows))).then(pl.lit(value)).otherwise(name).alias(name))
    frame.write_csv(file)


@pytest.mark.parametrize("scale", ["shared", "silo"])
@pytest.mark.parametrize("test", [1 / 60, 4 / 60])
def test_test_rows_that_are_too_few_to_be_told_of_change_nothing_that_is_sent(test, scale, places):
    data = f'scale = "{scale}"'
    before, rows = messages_of(places["ash"], test, data)
    held = (rows.part != 0).nonzero()[0]
    assert 0 < len(held) < LEAST
    change(places["ash"], held, age="1e6", dose=None, ward="Z")
    assert messages_of(places["ash"], test, data)[0] == before
    change(places["ash"], held, ward=None)
    assert messages_of(places["ash"], test, data)[0] == before


def test_test_rows_of_which_too_few_know_a_column_change_nothing_that_is_sent_of_it(places):
    _, rows = messages_of(places["ash"], 0.25)
    held = (rows.part != 0).nonzero()[0]
    assert len(held) > 2 * LEAST
    change(places["ash"], held[: 1 - LEAST], dose=None, ward=None)
    change(places["ash"], held[1 - LEAST :], dose="2.0", ward="A")
    before = messages_of(places["ash"], 0.25)[0]
    change(places["ash"], held[1 - LEAST :], dose="77.5", ward="Z")
    assert messages_of(places["ash"], 0.25)[0] == before


@pytest.mark.parametrize("test", [0.0, 1 / 60, 0.1, 0.25, 0.9])
def test_no_number_of_all_rows_is_sent_beside_that_of_training_rows(test, places):
    _, everything, training = messages_of(places["ash"], test)[0]
    assert everything == Summary("ash", {}, {}, {"age": True, "dose": True}, {})
    assert set(training.moments) == {"age", "dose"}


TABLES = {
    "as they are": {},
    "constant in all rows": {"dose": ("all", "1.0")},
    "constant in training rows": {"dose": ("train", "1.0")},
    "constant at each site": {"dose": ("own", "")},
    "one level in training rows": {"ward": ("train", "A")},
}


@pytest.mark.filterwarnings("ignore::confrere.data.notes.DataWarning")
@pytest.mark.parametrize("case", TABLES)
def test_columns_and_scales_are_those_of_the_simulator_from_the_tables_themselves(case, places, tmp_path):
    chosen = study()
    for number, (name, place) in enumerate(places.items()):
        part = OwnRows(chosen, name, place / "patients.csv").part
        for column, (where, value) in TABLES[case].items():
            rows = (part == 0).nonzero()[0] if where == "train" else range(60)
            change(place, rows, **{column: value or f"{number}.0"})
    folder = tmp_path / "together"
    folder.mkdir()
    for name, path in tables(places).items():
        shutil.copy(path, folder / f"{name}.csv")
    parts = [OwnRows(chosen, name, path).part for name, path in tables(places).items()]
    simulated = cf.Silos.from_folder(folder, label="ill", min_level=LEAST).source.encode(parts)
    deployed = twin_silos(chosen, tables(places))
    assert deployed.feature_names == simulated.feature_names
    for one, other in zip(deployed.silos, simulated.silos, strict=True):
        assert abs(one.X - other.X).max() < 1e-12


def test_the_page_of_a_study_says_how_many_rows_are_set_aside_and_which_columns_are_made():
    page = "\n".join(told(study(more="test = 0.05\n[derive]\nbmi = 'dose / age'"), SITES[0]))
    assert "Set aside for test: 0.05 of this site's rows, drawn by the site itself." in page
    assert "Columns made from others: bmi = dose / age." in page
