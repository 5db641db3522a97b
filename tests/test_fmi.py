"""Weather stations: the published counts, features as the book scales them, and what is said without the files."""

import csv
import shutil

import numpy as np
import pytest

import confrere as cf
from confrere.data import fmi as fmi_function
from confrere.data.fetch import DataNotFound
from confrere.data.fmi import FILES, kustavi_hours, rows_of, weather_file


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "fmi_weather"


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_stations_come_in_order_of_first_appearance_with_the_published_counts(folder):
    silos = fmi_function()
    rows = read(folder / "FMI_data.csv")
    assert list(silos.names) == list(dict.fromkeys(row["name"] for row in rows))
    sizes = np.array(silos.sizes())
    assert (len(sizes), sizes.sum(), (sizes == 96).sum()) == (207, 19768, 203)
    assert sorted(sizes[sizes < 96].tolist()) == [39, 51, 95, 95]
    assert silos.kind == "real"
    assert "CC BY 4.0" in silos.origin


def test_features_of_a_row_are_place_and_time_as_the_book_scales_them(folder):
    rows = [row for row in read(folder / "FMI_data.csv") if row["name"] == "Sotkamo Kuolaniemi"]
    silo = fmi_function()["Sotkamo Kuolaniemi"]
    assert rows[0]["Timestamp"] == "2023-12-30 00:00:00"
    expected = [64.11197 / 100, 28.33639 / 100, 2023 / 2025, 12 / 13, 30 / 32, 0, 0]
    np.testing.assert_allclose(silo.X[0], expected, rtol=1e-15)
    np.testing.assert_array_equal(silo.y, [float(row["temp"]) for row in rows])
    np.testing.assert_allclose(silo.X[:, 5] * 25, [int(row["Timestamp"][11:13]) for row in rows], atol=1e-12)


@pytest.mark.parametrize(
    ("edition", "file", "name"), [("2024", "FMI_data.csv", "name"), ("2025", "FMI_data_2025.csv", "Name")]
)
def test_coordinates_are_in_the_order_of_the_silos(folder, edition, file, name):
    places = {row[name]: [float(row["Latitude"]), float(row["Longitude"])] for row in read(folder / file)}
    silos = fmi_function(edition)
    np.testing.assert_array_equal(cf.data.fmi_coordinates(edition), [places[n] for n in silos.names])


def test_coordinates_are_a_copy(folder):
    cf.data.fmi_coordinates()[:] = 0
    assert cf.data.fmi_coordinates().min() > 19


def test_the_second_edition_has_ten_rows_of_five_days(folder):
    silos = fmi_function("2025")
    assert (len(silos), set(silos.sizes())) == (192, {10})
    assert silos.feature_names[4:6] == ("Tmax day 5", "Tmin day 1")
    first = silos["Jomala Maarianhamina lentoasema"]
    np.testing.assert_array_equal(first.X[0], [0.3, -1.9, -1.2, 5.4, 7.7, -2.6, -4.9, -5.1, -9.6, 4.4])
    assert first.y[0] == 7.1


def test_rows_keep_the_order_of_the_file(folder):
    rows = rows_of("2024")
    np.testing.assert_array_equal(rows.y, [float(row["temp"]) for row in read(folder / "FMI_data.csv")])
    assert rows.station[:2].tolist() == [0, 1]


def test_hours_that_were_not_measured_are_zero(folder):
    hours = kustavi_hours()
    assert hours.values.shape == (720, 10)
    assert hours.columns[0] == "Average temperature [°C]"
    gap = np.flatnonzero(hours.times == np.datetime64("2023-04-26T18:00"))[0]
    assert hours.values[gap].tolist() == [4.6, 4.8, 4.4, 96, 0, 0, 0, 0, 0, 1002.9]
    assert (np.diff(hours.times) == np.timedelta64(60, "m")).all()


def test_without_files_the_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("CONFRERE_DATA", raising=False)
    with pytest.raises(DataNotFound, match=r"FMI_data\.csv.*CONFRERE_DATA.*fmi_weather/FMI_data\.csv.*github"):
        fmi_function()
    (tmp_path / "fmi_weather").mkdir()
    monkeypatch.setenv("CONFRERE_DATA", str(tmp_path))
    with pytest.raises(DataNotFound, match=r"fmi_weather/weather_data\.csv"):
        kustavi_hours()


def test_a_file_that_was_tampered_with_is_refused(folder, monkeypatch, tmp_path):
    shutil.copytree(folder, tmp_path / "fmi_weather")
    changed = tmp_path / "fmi_weather" / "FMI_data_2025.csv"
    changed.chmod(0o644)
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    monkeypatch.setenv("CONFRERE_DATA", str(tmp_path))
    with pytest.raises(DataNotFound, match="not the expected file"):
        fmi_function("2025")


def test_another_edition_is_refused(folder):
    with pytest.raises(ValueError, match="edition must be one of 2024, 2025, not '2026'"):
        fmi_function("2026")


def test_sums_are_those_of_the_description(folder):
    words = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"{digest}  {name}" in words for name, digest in FILES.items())
    assert weather_file("FMI_data.csv") == folder / "FMI_data.csv"
